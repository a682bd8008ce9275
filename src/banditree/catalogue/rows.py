"""The rows of a table on their way to arms: names, paths and numbers, gathering what is wrong and what was mended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import cells, columns
from banditree.catalogue.troubles import Trouble, shown
from banditree.output.words import count
from banditree.problems.rewards import FARTHEST

Floats = NDArray[np.float64]
Path = tuple[Any, ...]
JOINT = ", "  # between the values of columns that make one id


class Rows:
    """Every row's arm and path. ``arm`` are the columns that make an id, ``path`` those of the categories."""

    def __init__(self, table: columns.Columns, arm: Sequence[str], path: Sequence[str]) -> None:
        self.table, self.arm, self.path = table, arm, path
        self.notes: list[str] = []
        self.ids = self._ids()
        levels = [[cells.name(value) for value in table.values[column]] for column in path]
        self.paths: list[Path] = list(zip(*levels, strict=True)) if path else [()] * len(self.ids)
        self._fill_gaps()
        kept = {name for level in levels for name in level if isinstance(name, str) and cells.looks_empty(name)}
        for name in sorted(kept):
            self.notes.append(f"the category {name!r} was taken for a name; leave cells empty where there is none")

    def trouble(self, at: int, column: str, message: str, kind: str = "") -> None:
        """Keep a trouble; ``kind`` is what it has in common with others, by default the message but for the value."""
        kind = kind or message.replace(shown(self.table.values[column][at]), "")
        self.table.troubles.append(Trouble(self.table.rows[at], column, message, kind))

    def _ids(self) -> list[Any]:
        parts = [[cells.name(value) for value in self.table.values[column]] for column in self.arm]
        for column, names in zip(self.arm, parts, strict=True):
            for at in [at for at, name in enumerate(names) if name is None]:
                self.trouble(at, column, "empty; every row needs an arm")
        if len(parts) == 1:
            return parts[0]
        ids: list[Any] = []
        whole: dict[str, tuple[tuple[Any, ...], int]] = {}
        for at, together in enumerate(zip(*parts, strict=True)):
            if None in together:
                ids.append(None)
                continue
            joined = JOINT.join(map(str, together))
            before, row = whole.setdefault(joined, (together, at))
            if before != together:
                again = f"{shown(joined)} is joined from {shown(together)} here, from {shown(before)} in row "
                self.trouble(at, self.arm[0], f"{again}{self.table.rows[row]}; rename one of the two", kind="joined")
            ids.append(joined)
        return ids

    def _fill_gaps(self) -> None:
        """Shorten paths that end in empty cells, and name the clusters that have no name."""
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
                f"{count(unnamed, 'row')} without a category: in a cluster named '(no {self.path[0]})' or the like"
            )
        if short:
            self.notes.append(f"{count(short, 'row')} with fewer categories than others: below the last one named")
        for level, column in enumerate(self.path[1:], start=1):
            parents: dict[Any, set[Path]] = defaultdict(set)
            for above, name in dict.fromkeys((path[:level], path[level]) for path in self.paths if len(path) > level):
                parents[name].add(above)
            shared = [name for name, above in parents.items() if len(above) > 1]
            if shared:
                what = f"{column} {shown(shared[0])}" + (f" and {len(shared) - 1:,} more" if len(shared) > 1 else "")
                self.notes.append(f"{what} under several parents: kept apart, as clusters of their own")

    def numbers(self, column: str, *, low: float = 0.0, needed: Any = True, truths: bool = False) -> Floats:
        """A column of numbers, none of them below ``low``, and none missing where they are ``needed``: (rows,).

        With ``truths`` cells may say true and false, for 1 and 0.
        """
        values = self.table.values[column]
        values = [cells.truth(value) for value in values] if truths else values
        found, wrong = cells.numbers(values)
        for at, message in wrong.items():
            self.trouble(at, column, message)
        for at in np.flatnonzero(np.isnan(found) & needed).tolist():
            if at not in wrong:
                self.trouble(at, column, f"{shown(values[at])} is not a number; give one (0 is one)")
        for at in np.flatnonzero(found < low).tolist():
            if at not in wrong:
                self.trouble(at, column, f"{shown(values[at])} is negative")
        for at in np.flatnonzero(np.abs(found) > FARTHEST).tolist():
            if at not in wrong:
                self.trouble(at, column, f"{shown(values[at])} is too large to compute with")
        return found

    def counts(self, column: str) -> Floats:
        """A column of whole numbers; NaN where one is not, so that nothing more is said of it."""
        found = self.numbers(column)
        for at, (value, number) in enumerate(zip(self.table.values[column], found.tolist(), strict=True)):
            wrong = cells.not_a_count(value, number)
            if wrong is not None:
                self.trouble(at, column, wrong, kind="count")
                found[at] = np.nan
        return found

    def arms(self, *, once: str = "") -> tuple[list[int], NDArray[np.intp]]:
        """(the first row of each arm, the arm's place for every row): (arms,) and (rows,).

        ``once`` says what to do about an arm on several rows where they cannot be added up.
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
                places = f"{shown(arm)} is in {here:.60} here, in {there:.60} in row {self.table.rows[before]}"
                what = f"{places}; an arm has one place: correct a row, or give two arms two names"
                self.trouble(at, self.arm[0], what, kind="place")
            elif once:
                again = f"{shown(arm)} was in row {self.table.rows[before]} already"
                self.trouble(at, self.arm[0], f"{again}; {once}", kind="again")
        if repeated:
            self.notes.append(f"{count(len(repeated), 'arm')} on several rows: added up")
        return first, place
