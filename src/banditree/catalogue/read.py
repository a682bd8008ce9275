"""Read a catalogue from a table: clean up what can be cleaned up, note it, and report all other problems at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from banditree.catalogue import columns, reward_columns
from banditree.catalogue.content import MOST
from banditree.catalogue.defects import CatalogueError, Defect
from banditree.catalogue.from_log import from_log
from banditree.catalogue.items import Catalogue
from banditree.catalogue.rows import Rows
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.tree import Tree

WAYS: dict[tuple[str, ...], Callable[..., reward_columns.Fields]] = {  # named columns -> the function that reads them
    ("plays", "successes"): reward_columns.counts,
    ("mean",): reward_columns.means,
    ("mean", "weight"): reward_columns.means,
    ("plays", "reward_mean", "reward_sd"): reward_columns.normal,
    ("reward",): reward_columns.events,
}
EITHER = "plays and successes, mean, plays with reward_mean and reward_sd, or reward"


def read_catalogue(
    source: Any,
    *,
    arm: str | Sequence[str] | None = None,
    path: Sequence[str] = (),
    plays: str | None = None,
    successes: str | None = None,
    mean: str | None = None,
    weight: str | None = None,
    reward_mean: str | None = None,
    reward_sd: str | None = None,
    reward: str | None = None,
    max_bytes: int = MOST,
    tree: Tree | None = None,
) -> Catalogue:
    """Read a catalogue from a CSV or Parquet file, any data frame, or a mapping of columns.

    ``arm`` names the column of the items, or several columns whose values are joined by ", " to one id; ``path`` names
    the columns of their categories from coarse to fine. Rewards are described by one of:

    - ``plays`` and ``successes``, the columns of past counts;
    - ``mean``, the column of known rates;
    - ``plays``, ``reward_mean`` and ``reward_sd``, for rewards that are not rates: their number, mean and
      standard deviation;
    - ``reward``, in a log with one row per event. Rewards of 0 and 1 are counted, others are summarised by their
      mean and standard deviation.

    White space around names is removed. Several rows of one arm are combined: counts are added, means are averaged by
    ``weight`` (without it, repeated means are an error). Empty cells at the end of a path make the path shorter; a gap,
    or no category at all, becomes a cluster named "(no ...)". All problems are reported at once in a
    ``CatalogueError``. A gzipped file that expands to more than ``max_bytes`` is refused.

    For a log from `read_log`, ``read_catalogue(log, tree=tree)`` counts its rows per arm.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", " head", "foot"]}
    >>> table |= {"views": [90, "1,200", 75], "buys": [9, 60, 5]}
    >>> catalogue = read_catalogue(table, arm="item", path=["kind"], plays="views", successes="buys")
    >>> catalogue.tree.clusters, catalogue.plays.tolist()
    ({'head': ['hat', 'cap'], 'foot': ['boot']}, [90.0, 1200.0, 75.0])
    >>> log = {"item": ["hat", "cap", "hat"], "kind": ["head"] * 3, "click": [1, 0, 0]}
    >>> read_catalogue(log, arm="item", path=["kind"], reward="click")
    Catalogue(2 arms, 1 cluster, depth 1; 1 success in 3 plays)
    """
    if tree is not None or arm is None:
        return from_log(source, tree)
    given = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
    given |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
    named = {what: column for what, column in given.items() if column is not None}
    if weight is not None and mean is None:
        raise InvalidType("weight is used only with mean; counts have their own weight")
    if tuple(named) not in WAYS:
        raise InvalidType(f"name the columns of {EITHER}; got {' and '.join(named) or 'none of them'}")
    rows = _rows(source, arm, path, list(named.values()), max_bytes)
    known = WAYS[tuple(named)](rows, **named)
    first, place = rows.arms(once="to average means, name a column of weights" if tuple(named) == ("mean",) else "")
    tree = _tree(rows, first)
    return Catalogue(tree, **known(reward_columns.adding_up(place, len(first)), place), notes=rows.notes)


def read_tree(source: Any, *, arm: str | Sequence[str], path: Sequence[str] = (), max_bytes: int = MOST) -> Tree:
    """Read only the tree from a table of items; ``arm`` and ``path`` name columns as in `read_catalogue`.

    >>> read_tree({"item": ["hat", "boot"], "kind": ["head", "foot"]}, arm="item", path=["kind"]).clusters
    {'head': ['hat'], 'foot': ['boot']}
    """
    rows = _rows(source, arm, path, [], max_bytes)
    return _tree(rows, rows.arms()[0])


def _tree(rows: Rows, first: Sequence[int]) -> Tree:
    """Build the tree from the first row of each arm, or report all defects of the table."""
    if rows.table.defects:
        raise CatalogueError(rows.table.source, rows.table.defects)
    return Tree.from_paths([(*rows.paths[row], rows.ids[row]) for row in first])


def _rows(source: Any, arm: str | Sequence[str], path: Sequence[str], others: Sequence[str], max_bytes: int) -> Rows:
    """Load the rows of a table, with these columns."""
    arms = [arm] if isinstance(arm, str) else columns.listed("arm", arm)
    path = columns.listed("path", path, "from coarse to fine")
    parts = [name for name in arms if len(arms) == 1 or name not in path]  # a category may be a part of an id
    wanted = [*parts, *path, *others]
    columns.check_once(wanted)
    if not arms:
        raise InvalidValue("arm is an empty list; name the column of the items")
    table = columns.load(source, wanted, max_bytes=whole("max_bytes", max_bytes, 1))
    if not table.rows and not table.defects:
        raise CatalogueError(table.source, [Defect(None, None, "no rows; a catalogue needs at least one arm")])
    return Rows(table, arms, path)
