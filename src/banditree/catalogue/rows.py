"""Turn the rows of a table into arms with paths and numbers, collecting defects and notes on what was cleaned up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import cells, columns
from banditree.catalogue.defects import Defect, shown
from banditree.problems.rewards import FARTHEST
from banditree.report.words import count

Floats = NDArray[np.float64]
Path = tuple[Any, ...]
SEPARATOR = ", "  # between the values of columns that form one id


class Rows:
    """The arm and path of every row. ``arm`` lists the columns that form an id, ``path`` those of the categories."""

    def __init__(self, table: columns.Columns, arm: Sequence[str], path: Sequence[str]) -> None:
        self.table, self.arm, self.path = table, arm, path
        self.notes: list[str] = []
        self.ids = self._ids()
        levels = [[cells.name(value) for value in table.values[column]] for column in path]
        self.paths: list[Path] = list(zip(*levels, strict=True)) if path else [()] * len(self.ids)
        self._fill_gaps()
        kept = {name for level in levels for name in level if isinstance(name, str) and cells.looks_empty(name)}
        for name in sorted(kept):
            self.notes.append(f"the category {name!r} was taken as a name; leave a cell empty if it has no category")

    def report(self, at: int, column: str, message: str, kind: str = "") -> None:
        """Record a defect. Those of the same ``kind`` are grouped; by default it is the message without the value."""
        kind = kind or message.replace(shown(self.table.values[column][at]), "")
        self.table.defects.append(Defect(self.table.rows[at], column, message, kind))

    def _ids(self) -> list[Any]:
        parts = [[cells.name(value) for value in self.table.values[column]] for column in self.arm]
        for column, names in zip(self.arm, parts, strict=True):
            for at in [at for at, name in enumerate(names) if name is None]:
                self.report(at, column, "empty; every row needs an arm")
        if len(parts) == 1:
            return parts[0]
        ids: list[Any] = []
        whole: dict[str, tuple[tuple[Any, ...], int]] = {}
        for at, together in enumerate(zip(*parts, strict=True)):
            if None in together:
                ids.append(None)
                continue
            joined = SEPARATOR.join(map(str, together))
            before, row = whole.setdefault(joined, (together, at))
            if before != together:
                again = f"{shown(joined)} is joined from {shown(together)} here, but from {shown(before)} in row "
                self.report(at, self.arm[0], f"{again}{self.table.rows[row]}; rename one of them", kind="joined")
            ids.append(joined)
        return ids

    def _fill_gaps(self) -> None:
        """Shorten paths that end in empty cells, and name clusters that have no name."""
        short = unnamed = 0
        for at, path in enumerate(self.paths):
            if None not in path:
                continue
            last = max((level for level, name in enumerate(path) if name is not None), default=0)
            kept = path[: last + 1]
            short += last + 1 < len(path)
            unnamed += None in kept
            self.paths[at] = tuple(
                f"(no {self.path[level]})" if name is None else name for level, name in enumerate(kept)
            )
        if unnamed:
            self.notes.append(
                f"{count(unnamed, 'row')} without a category: put in a cluster named '(no {self.path[0]})' or similar"
            )
        if short:
            self.notes.append(
                f"{count(short, 'row')} with fewer categories than others: put directly below the last one given"
            )
        for level, column in enumerate(self.path[1:], start=1):
            parents: dict[Any, set[Path]] = defaultdict(set)
            for above, name in dict.fromkeys((path[:level], path[level]) for path in self.paths if len(path) > level):
                parents[name].add(above)
            shared = [name for name, above in parents.items() if len(above) > 1]
            if shared:
                what = f"{column} {shown(shared[0])}" + (f" and {len(shared) - 1:,} more" if len(shared) > 1 else "")
                self.notes.append(f"{what} under several parents: kept as separate clusters")

    def numbers(self, column: str, *, low: float = 0.0, needed: Any = True, truths: bool = False) -> Floats:
        """Read a column of numbers, none below ``low`` and none missing where they are ``needed``: (rows,).

        With ``truths``, cells may also say true and false, for 1 and 0.
        """
        values = self.table.values[column]
        values = [cells.truth(value) for value in values] if truths else values
        found, wrong = cells.numbers(values)
        for at, message in wrong.items():
            self.report(at, column, message)
        for at in np.flatnonzero(np.isnan(found) & needed).tolist():
            if at not in wrong:
                self.report(at, column, f"{shown(values[at])} is not a number; give one (0 is allowed)")
        for at in np.flatnonzero(found < low).tolist():
            if at not in wrong:
                self.report(at, column, f"{shown(values[at])} is negative; give 0 or more")
        for at in np.flatnonzero(np.abs(found) > FARTHEST).tolist():
            if at not in wrong:
                self.report(at, column, f"{shown(values[at])} is too large to compute with; use a smaller unit")
        return found

    def counts(self, column: str) -> Floats:
        """Read a column of whole numbers; others become NaN, so that they are reported only once."""
        found = self.numbers(column)
        for at, (value, number) in enumerate(zip(self.table.values[column], found.tolist(), strict=True)):
            wrong = cells.not_a_count(value, number)
            if wrong is not None:
                self.report(at, column, wrong, kind="count")
                found[at] = np.nan
        return found

    def arms(self, *, once: str = "") -> tuple[list[int], NDArray[np.intp]]:
        """Return the first row of each arm, (arms,), and the arm index of every row, (rows,).

        If rows of one arm cannot be added up, ``once`` is the remedy that the error suggests.
        """
        seen: dict[Any, int] = {}
        first: list[int] = []
        place = np.zeros(len(self.ids), np.intp)
        repeated = set()
        for at, arm in enumerate(self.ids):
            if arm is None:
                continue
            known = seen.setdefault(arm, len(first))
            place[at] = known
            if known == len(first):
                first.append(at)
                continue
            before = first[known]
            repeated.add(arm)
            if self.paths[at] != self.paths[before]:
                here, there = (" / ".join(map(str, self.paths[row])) or "no category" for row in (at, before))
                places = f"{shown(arm)} is in {here:.60} here, but in {there:.60} in row {self.table.rows[before]}"
                what = f"{places}; an arm has only one place: correct one of the rows, or rename one of the arms"
                self.report(at, self.arm[0], what, kind="place")
            elif once:
                again = f"{shown(arm)} is already in row {self.table.rows[before]}"
                self.report(at, self.arm[0], f"{again}; {once}", kind="again")
        if repeated:
            self.notes.append(f"{count(len(repeated), 'arm')} on several rows: added up")
        return first, place
