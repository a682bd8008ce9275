"""What a section hands to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.timing import Spread


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; numbers are aligned right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # columns of words


@dataclass(frozen=True)
class Target:
    """A number to reach: at least so much, or at most."""

    what: str
    measured: Spread
    goal: float
    at_most: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool:
        return self.measured.median <= self.goal if self.at_most else self.measured.median >= self.goal


@dataclass(frozen=True)
class Plot:
    """A picture: its file name, what it shows in words, and how to draw it."""

    name: str
    shows: str
    draw: Callable[[Path], None]


@dataclass
class Section:
    """One part of the report."""

    title: str
    text: str
    tables: list[tuple[str, Table]] = field(default_factory=list)  # (heading, table)
    targets: list[Target] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peer_wins: list[str] = field(default_factory=list)
