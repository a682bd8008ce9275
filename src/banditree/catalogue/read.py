"""From a table to a catalogue: clean what can be cleaned, say so, and report everything else at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import columns, measures
from banditree.catalogue.content import MOST
from banditree.catalogue.from_log import from_log
from banditree.catalogue.items import Catalogue
from banditree.catalogue.rows import Rows
from banditree.catalogue.troubles import CatalogueError, Trouble
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.tree import Tree

Floats = NDArray[np.float64]
WAYS: dict[tuple[str, ...], Callable[..., measures.Fields]] = {  # the columns that are named -> how they are read
    ("plays", "successes"): measures.counts,
    ("mean",): measures.means,
    ("mean", "weight"): measures.means,
    ("plays", "reward_mean", "reward_sd"): measures.normal,
    ("reward",): measures.events,
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

    ``arm`` names the column of the items, or several whose values are joined by ", " to one id; ``path`` the columns of
    their categories from coarse to fine. What is known of rewards is one of:

    - ``plays`` and ``successes``, the columns of past counts;
    - ``mean``, the column of rates that are known;
    - ``plays``, ``reward_mean`` and ``reward_sd``, for rewards that are not rates: how many, their mean and their
      standard deviation;
    - ``reward``, in a log with one row per event. Rewards of 0 and 1 are counted, others are summed up by their mean
      and standard deviation.

    Names lose the white space around them. Rows of the same arm are added up: counts as they are, means by ``weight``,
    without which they are an error. Empty cells at the end of a path make a shorter path; a gap, or no category at
    all, is a cluster named "(no ...)". All that is wrong is reported at once in a ``CatalogueError``. A gzipped file
    that unpacks to more than ``max_bytes`` is refused.

    A log that `read_log` read has columns already: ``read_catalogue(log, tree=tree)`` counts its rows by arm.

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
        raise InvalidType("weight goes with mean; counts carry their own weight")
    if tuple(named) not in WAYS:
        raise InvalidType(f"name the columns of {EITHER}; not of {' and '.join(named) or 'nothing'}")
    arms = [arm] if isinstance(arm, str) else _listed("arm", arm)
    path = _listed("path", path, "from coarse to fine")
    parts = [name for name in arms if len(arms) == 1 or name not in path]  # a category may be a part of an id
    wanted = [*parts, *path, *named.values()]
    twice = [name for name in wanted if wanted.count(name) > 1]
    if twice:
        raise InvalidValue(f"column {twice[0]!r} is named twice; each column has one meaning")
    if not arms:
        raise InvalidValue("arm is an empty list; name the column of the items")

    table = columns.load(source, wanted, max_bytes=whole("max_bytes", max_bytes, 1))
    if not table.rows and not table.troubles:
        raise CatalogueError(table.source, [Trouble(None, None, "no rows; a catalogue needs at least one arm")])
    rows = Rows(table, arms, path)
    known = WAYS[tuple(named)](rows, **named)
    first, place = rows.arms(once="to average means, name a column of weights" if tuple(named) == ("mean",) else "")
    if table.troubles:
        raise CatalogueError(table.source, table.troubles)

    tree = Tree.from_paths([(*rows.paths[row], rows.ids[row]) for row in first])

    def add_up(numbers: Floats) -> Floats:
        return np.bincount(place, numbers, minlength=len(first)).astype(np.float64, copy=False)

    fields = known(add_up, place)
    return Catalogue(tree, **fields, notes=rows.notes)


def _listed(what: str, given: Any, order: str = "") -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = [column.strip() for column in str(given).split(",")]
        ordered = f" {order}" if order else ""
        raise InvalidType(f"{what}={given!r} must be a list of columns{ordered}, for example {example}")
    return list(given)
