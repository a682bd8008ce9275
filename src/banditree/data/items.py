"""Read items in categories: the id and the path of every row of a table, and the tree that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from banditree.base.arrays import Places
from banditree.base.words import count
from banditree.data import cells
from banditree.data.cells import Name
from banditree.data.defects import TableError, quote
from banditree.data.sources import MAX_BYTES, Columns, check_named, load, require_list
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.tree import Tree

ItemPath = tuple[Name, ...]
SEPARATOR = ", "  # between the values of columns that form one id


def read_tree(
    source: object,
    *,
    arm: str | Sequence[str],
    path: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    error: type[TableError] = TableError,
) -> Tree:
    """Read only the tree from a table of items.

    Parameters
    ----------
    source
        A CSV or Parquet file, a data frame, or a mapping of columns.
    arm
        The column of the items, or several columns whose values are joined by ", " to one id.
    path
        The columns of the categories, from coarse to fine.
    max_bytes, error
        As for `load`.

    >>> read_tree({"item": ["hat", "boot"], "kind": ["head", "foot"]}, arm="item", path=["kind"]).clusters
    {'head': ['hat'], 'foot': ['boot']}
    """
    items = load_items(source, arm, path, max_bytes=max_bytes, error=error)
    return items.tree(items.arms()[0], error)


def load_items(
    source: object,
    arm: str | Sequence[str],
    path: Sequence[str],
    others: Sequence[str] = (),
    *,
    max_bytes: int = MAX_BYTES,
    error: type[TableError] = TableError,
) -> Items:
    """Load the items of a table, with other columns."""
    arms = [arm] if isinstance(arm, str) else require_list("arm", arm)
    path = require_list("path", path, "from coarse to fine")
    parts = [name for name in arms if len(arms) == 1 or name not in path]  # a category may be a part of an id
    wanted = [*parts, *path, *others]
    check_named(wanted)
    if not arms:
        raise InvalidValue("arm is an empty list; name the column of the items")
    table = load(source, wanted, max_bytes=whole("max_bytes", max_bytes, 1), error=error)
    if not len(table) and not table.problems:
        table.report_table("no rows; a catalogue needs at least one arm")
        table.check(error)
    return Items(table, arms, path)


class Items:
    """The arm and path of every row. ``arm`` lists the columns that form an id, ``path`` those of the categories."""

    def __init__(self, table: Columns, arm: Sequence[str], path: Sequence[str]) -> None:
        self.table, self.arm, self.path = table, arm, path
        self.ids = self._ids()
        levels = [table.names(column) for column in path]
        self.paths: list[ItemPath] = list(zip(*levels, strict=True)) if path else [()] * len(self.ids)
        self._fill_gaps()
        odd = {name for level in levels for name in level if isinstance(name, str) and cells.looks_missing(name)}
        for name in sorted(odd):
            table.notes.append(f"the category {name!r} was taken as a name; leave a cell empty if it has no category")

    def _ids(self) -> list[Name]:
        parts = [self.table.names(column, if_empty="empty; every row needs an arm") for column in self.arm]
        if len(parts) == 1:
            return parts[0]
        ids: list[Name] = []
        first_use: dict[str, tuple[tuple[Name, ...], int]] = {}
        for at, values in enumerate(zip(*parts, strict=True)):
            if None in values:
                ids.append(None)
                continue
            joined = SEPARATOR.join(map(str, values))
            before, row = first_use.setdefault(joined, (values, at))
            if before != values:
                again = f"{quote(joined)} is joined from {quote(values)} here, but from {quote(before)} in row "
                self.table.report(at, self.arm[0], f"{again}{self.table.rows[row]}; rename one of them", kind="joined")
            ids.append(joined)
        return ids

    def _fill_gaps(self) -> None:
        """Shorten paths that end in empty cells, and name clusters that have no name."""
        notes = self.table.notes
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
            cluster = f"put in a cluster named '(no {self.path[0]})' or similar"
            notes.append(f"{count(unnamed, 'row')} without a category: {cluster}")
        if short:
            notes.append(
                f"{count(short, 'row')} with fewer categories than others: put directly below the last one given"
            )
        for level, column in enumerate(self.path[1:], start=1):
            parents: dict[Name, set[ItemPath]] = defaultdict(set)
            for above, name in dict.fromkeys((path[:level], path[level]) for path in self.paths if len(path) > level):
                parents[name].add(above)
            shared = [name for name, above in parents.items() if len(above) > 1]
            if shared:
                what = f"{column} {quote(shared[0])}" + (f" and {len(shared) - 1:,} more" if len(shared) > 1 else "")
                notes.append(f"{what} under several parents: kept as separate clusters")

    def arms(self, *, if_repeated: str = "") -> tuple[list[int], Places]:
        """Return the first row of each arm, (arms,), and the arm index of every row, (rows,).

        If rows of one arm cannot be added up, ``if_repeated`` is the remedy that the error suggests.
        """
        index: dict[Name, int] = {}
        first: list[int] = []
        places = np.zeros(len(self.ids), np.intp)
        repeated = set()
        for at, arm in enumerate(self.ids):
            if arm is None:
                continue
            place = index.setdefault(arm, len(first))
            places[at] = place
            if place == len(first):
                first.append(at)
                continue
            before = first[place]
            repeated.add(arm)
            if self.paths[at] != self.paths[before]:
                one, other = (" / ".join(map(str, self.paths[row])) or "no category" for row in (at, before))
                where = f"{quote(arm)} is in {one:.60} here, but in {other:.60} in row {self.table.rows[before]}"
                what = f"{where}; an arm has only one place: correct one of the rows, or rename one of the arms"
                self.table.report(at, self.arm[0], what, kind="place")
            elif if_repeated:
                again = f"{quote(arm)} is already in row {self.table.rows[before]}"
                self.table.report(at, self.arm[0], f"{again}; {if_repeated}", kind="again")
        if repeated:
            self.table.notes.append(f"{count(len(repeated), 'arm')} on several rows: added up")
        return first, places

    def tree(self, first: Sequence[int], error: type[TableError]) -> Tree:
        """Build the tree from the first row of each arm, or report all problems of the table."""
        self.table.check(error)
        return Tree.from_paths([(*self.paths[row], self.ids[row]) for row in first])
