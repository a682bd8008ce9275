"""The pages of the docs that programs make, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.__main__ import PAGE as BENCHMARKS
from contest.__main__ import Contest
from tools.pages import advice_table, estimator_table, paper, probability_table, robustness


class Made(Protocol):
    """A page that a program makes."""

    @property
    def name(self) -> str: ...

    def digest(self) -> str:
        """What the page depends on."""

    def make(self, folder: Path, until: float = ...) -> int:
        """Make what is missing until a time (`monotonic`), write the page, and return how much is left."""


@dataclass(frozen=True)
class Paper:
    """The claims of docs/paper.md."""

    name = "paper"

    def digest(self) -> str:
        return paper.digest()

    def make(self, folder: Path, until: float = float("inf")) -> int:
        return paper.make(folder, until)


EVERY: tuple[Made, ...] = (
    estimator_table.PAGE,
    probability_table.PAGE,
    robustness.TREES,
    robustness.CONTEXTUAL,
    advice_table.PAGE,
    Paper(),
    BENCHMARKS,
    Contest(),
)
PAGES = {page.name: page for page in EVERY}
