"""From a table to a catalogue: clean what can be cleaned, say so, and report everything else at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import cells, columns
from banditree.catalogue.items import Catalogue
from banditree.catalogue.troubles import CatalogueError, Trouble
from banditree.errors import InvalidType, InvalidValue
from banditree.output.words import count
from banditree.tree import Tree

Floats = NDArray[np.float64]
Path = tuple[Any, ...]


def read_catalogue(
    source: Any,
    *,
    arm: str,
    path: Sequence[str] = (),
    plays: str | None = None,
    successes: str | None = None,
    mean: str | None = None,
    weight: str | None = None,
) -> Catalogue:
    """A catalogue from a CSV or Parquet file, any data frame, or a mapping of columns.

    ``arm`` names the column of the items, ``path`` the columns of their categories from coarse to fine, and either
    ``plays`` and ``successes`` the columns of past counts, or ``mean`` that of known means. Names lose the white space
    around them. Rows of the same arm are added up: counts as they are, means by ``weight``, without which they are an
    error. Empty cells at the end of a path make a shorter path; a gap, or no category at all, is a cluster named
    "(no ...)". All that is wrong is reported at once in a ``CatalogueError``.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", " head", "foot"]}
    >>> table |= {"views": [90, "1,200", 75], "buys": [9, 60, 5]}
    >>> catalogue = read_catalogue(table, arm="item", path=["kind"], plays="views", successes="buys")
    >>> catalogue.tree.clusters, catalogue.plays.tolist()
    ({'head': ['hat', 'cap'], 'foot': ['boot']}, [90.0, 1200.0, 75.0])
    """
    given = [plays is not None, successes is not None, mean is not None]
    if given not in ([True, True, False], [False, False, True]):
        raise InvalidType("name the columns of plays and successes, or the column of the mean")
    if weight is not None and mean is None:
        raise InvalidType("weight goes with mean; counts carry their own weight")
    if isinstance(path, str) or not isinstance(path, Iterable):
        listed = [column.strip() for column in str(path).split(",")]
        raise InvalidType(f"path={path!r} must be a list of columns from coarse to fine, for example {listed}")
    path = list(path)
    numbers = [name for name in (plays, successes, mean, weight) if name is not None]
    wanted = [arm, *path, *numbers]
    twice = [name for name in wanted if wanted.count(name) > 1]
    if twice:
        raise InvalidValue(f"column {twice[0]!r} is named twice; each column has one meaning")

    table = columns.load(source, wanted)
    if not table.rows and not table.troubles:
        raise CatalogueError(table.source, [Trouble(None, None, "no rows; a catalogue needs at least one arm")])
    read = _Reader(table, arm, path)
    values = {name: read.counts(name) if name in (plays, successes) else read.numbers(name) for name in numbers}
    if plays is not None and successes is not None:
        read.check_counts(plays, values[plays], successes, values[successes])
    elif mean is not None:
        read.check_mean(mean, values[mean], weight, None if weight is None else values[weight])
    first, place = read.arms(repeat_by=None if mean is not None and weight is None else "adding")
    if table.troubles:
        raise CatalogueError(table.source, table.troubles)

    tree = Tree.from_paths([(*read.paths[row], read.ids[row]) for row in first])

    def add_up(numbers: Floats) -> Floats:
        return np.bincount(place, numbers, minlength=len(first)).astype(np.float64, copy=False)

    notes = tuple(read.notes)
    if mean is not None:
        weights = values[weight] if weight is not None else np.ones(len(place))
        return Catalogue(tree, means=add_up(values[mean] * weights) / add_up(weights), notes=notes)
    assert plays is not None
    assert successes is not None
    if values[plays].sum() == 0:
        raise CatalogueError(table.source, [Trouble(None, plays, "no arm was ever played; there is nothing to go by")])
    return Catalogue(tree, plays=add_up(values[plays]), successes=add_up(values[successes]), notes=notes)


class _Reader:
    """The rows on their way to arms, gathering troubles and notes."""

    def __init__(self, table: columns.Columns, arm: str, path: Sequence[str]) -> None:
        self.table, self.arm, self.path = table, arm, path
        self.notes: list[str] = []
        self.ids = [cells.name(value) for value in table.values[arm]]
        for at in [at for at, name in enumerate(self.ids) if name is None]:
            self.trouble(at, arm, "empty; every row needs an arm")
        levels = [[cells.name(value) for value in table.values[column]] for column in path]
        self.paths: list[Path] = list(zip(*levels, strict=True)) if path else [()] * len(self.ids)
        self._fill_gaps()
        kept = {name for level in levels for name in level if isinstance(name, str) and cells.looks_empty(name)}
        for name in sorted(kept):
            self.notes.append(f"the category {name!r} was taken for a name; leave cells empty where there is none")

    def trouble(self, at: int, column: str, message: str) -> None:
        self.table.troubles.append(Trouble(self.table.rows[at], column, message))

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
                what = f"{column} {shared[0]!r}" + (f" and {len(shared) - 1:,} more" if len(shared) > 1 else "")
                self.notes.append(f"{what} under several parents: kept apart, as clusters of their own")

    def numbers(self, column: str) -> Floats:
        """A column of numbers, none of them missing."""
        found, wrong = cells.numbers(self.table.values[column])
        for at, message in wrong.items():
            self.trouble(at, column, message)
        for at in np.flatnonzero(np.isnan(found)).tolist():
            if at not in wrong:
                self.trouble(at, column, f"{self.table.values[column][at]!r} is no number; give one (0 is one)")
        for at in np.flatnonzero(found < 0).tolist():
            if at not in wrong:
                self.trouble(at, column, f"{self.table.values[column][at]!r} is negative")
        return found

    def counts(self, column: str) -> Floats:
        """A column of whole numbers; NaN where one is not, so that nothing more is said of it."""
        found = self.numbers(column)
        for at, (value, number) in enumerate(zip(self.table.values[column], found.tolist(), strict=True)):
            wrong = cells.not_a_count(value, number)
            if wrong is not None:
                self.trouble(at, column, wrong)
                found[at] = np.nan
        return found

    def check_counts(self, plays: str, n: Floats, successes: str, s: Floats) -> None:
        for at in np.flatnonzero(s > n).tolist():
            self.trouble(at, successes, f"{s[at]:.12g} successes in {n[at]:.12g} plays (column {plays!r})")

    def check_mean(self, mean: str, m: Floats, weight: str | None, w: Floats | None) -> None:
        for at in np.flatnonzero(m > 1).tolist():
            self.trouble(
                at, mean, f"{m[at]:.12g} is above 1; a mean is a rate from 0 to 1 (or a percentage, as '3.5%')"
            )
        if weight is not None and w is not None:
            for at in np.flatnonzero(w == 0).tolist():
                self.trouble(at, weight, "0; a weight is above 0")

    def arms(self, *, repeat_by: str | None) -> tuple[list[int], NDArray[np.intp]]:
        """(the first row of each arm, the arm's place for every row): (arms,) and (rows,)."""
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
                places = f"{arm!r} is in {here} here, in {there} in row {self.table.rows[before]}"
                self.trouble(at, self.arm, f"{places}; an arm has one place: correct a row, or give two arms two names")
            elif repeat_by is None:
                again = f"{arm!r} was in row {self.table.rows[before]} already"
                self.trouble(at, self.arm, f"{again}; to average means, name a column of weights")
        if repeated:
            self.notes.append(f"{count(len(repeated), 'arm')} on several rows: added up")
        return first, place
