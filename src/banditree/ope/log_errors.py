"""Collect and print everything that is wrong with a log, grouped by kind, with column and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.errors import InvalidValue
from banditree.report.words import count

ROWS_SHOWN = 3
KINDS_SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One kind of problem: its column, the affected rows, and what to do.

    In a file the header is row 1; in a data frame the first row is row 0.
    """

    column: str | None
    rows: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        where = [] if self.column is None else [f"column {self.column!r}"]
        if self.rows:
            shown = ", ".join(f"{row:,}" for row in self.rows[:ROWS_SHOWN])
            more = f" and {len(self.rows) - ROWS_SHOWN:,} more" if len(self.rows) > ROWS_SHOWN else ""
            where.append(f"row{'' if len(self.rows) == 1 else 's'} {shown}{more}")
        return f"{', '.join(where)}: {self.message}" if where else self.message


class LogError(InvalidValue):
    """A table cannot be read as a log. ``problems`` lists every kind of problem with all of its rows."""

    problems: list[Problem]

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        lines = [f"  {problem}" for problem in self.problems[:KINDS_SHOWN]]
        if len(self.problems) > KINDS_SHOWN:
            lines.append(f"  ... and {count(len(self.problems) - KINDS_SHOWN, 'more kind')}")
        super().__init__("\n".join([f"{count(len(self.problems), 'kind')} of problem in {source}", *lines]))


class ProblemCollector:
    """Collects problems while a table is read."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers  # row numbers as users count them
        self.problems: list[Problem] = []

    def add(self, column: str | None, where: Any, message: str) -> None:
        """Record one kind of problem for the rows given as a mask or indices, if there are any."""
        places = np.asarray(where)
        places = np.flatnonzero(places) if places.dtype == bool else places
        if len(places):
            self.problems.append(Problem(column, tuple(self.numbers[at] for at in places.tolist()), message))
