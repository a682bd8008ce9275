"""The pages of the docs that programs make, by name."""

from __future__ import annotations

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


EVERY: tuple[Made, ...] = (
    estimator_table.PAGE,
    probability_table.PAGE,
    robustness.TREES,
    robustness.CONTEXTUAL,
    advice_table.PAGE,
    paper.PAGE,
    BENCHMARKS,
    Contest(),
)
PAGES = {page.name: page for page in EVERY}

# Pages that are not yet made whole with this code, and why. Each of them says on itself with which version it was made,
# or what is missing. A page that is made leaves this list; a test sees to both.
PENDING: dict[str, str] = {}
