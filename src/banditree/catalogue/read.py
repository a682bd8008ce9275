"""Read a catalogue: which columns describe rewards, and how the rows of an arm are combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.base.words import count
from banditree.catalogue.items import Catalogue
from banditree.data.defects import Defect, TableError
from banditree.data.items import load_items, read_tree
from banditree.data.log import Log, read_log
from banditree.data.sources import MAX_BYTES, Columns, distinct, is_lazy, require_list
from banditree.errors import InvalidType, InvalidValue
from banditree.tree import Tree

Fields = dict[str, Floats]


class CatalogueError(TableError):
    """A table cannot be read as a catalogue. ``problems`` lists every problem, one per row and column."""

    @staticmethod
    def list_problems(problems: Sequence[Defect]) -> list[Defect]:
        single = [replace(problem, row=row, rows=()) for problem in problems for row in problem.rows or (None,)]
        return sorted(single, key=lambda problem: -1 if problem.row is None else problem.row)


def read_catalogue(
    source: object,
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
    max_bytes: int = MAX_BYTES,
    tree: Tree | None = None,
) -> Catalogue:
    """Read a catalogue from a CSV or Parquet file, any data frame, or a mapping of columns.

    White space around names is removed. Several rows of one arm are combined: counts are added, means are averaged by
    ``weight`` (without it, repeated means are an error). Empty cells at the end of a path make the path shorter; a gap,
    or no category at all, becomes a cluster named "(no ...)". All problems are reported at once in a
    ``CatalogueError``.

    If no column of rewards is named, no arm has been played yet: ``catalogue.tree`` and ``catalogue.policy`` work, and
    what asks for rewards (`inspect`, `simulate`, `advise`) says that there are none.

    Parameters
    ----------
    source
        The table, or a log from `read_log`: ``read_catalogue(log, tree=tree)`` counts its rows per arm. With ``tree``,
        ``arm`` and ``reward``, the table is read as such a log, by its engine if it is a lazy frame.
    arm
        The column of the items, or several columns whose values are joined by ", " to one id.
    path
        The columns of the categories, from coarse to fine.
    plays, successes
        The columns of past counts.
    mean, weight
        The column of known rates, and the column of weights to average rows of the same item.
    reward_mean, reward_sd
        With ``plays``, for rewards that are not rates: the columns of their mean and standard deviation.
    reward
        The column of rewards in a log with one row per event. Rewards of 0 and 1 are counted, others are summarised by
        their mean and standard deviation. Rows without a reward are counted and left out. The engine of a lazy frame
        sums them, and arms are in the order of their paths.
    max_bytes
        The most bytes that a gzipped file may expand to.
    tree
        The tree of a log's arms.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", " head", "foot"]}
    >>> table |= {"views": [90, "1,200", 75], "buys": [9, 60, 5]}
    >>> catalogue = read_catalogue(table, arm="item", path=["kind"], plays="views", successes="buys")
    >>> catalogue.tree.clusters, catalogue.plays.tolist()
    ({'head': ['hat', 'cap'], 'foot': ['boot']}, [90.0, 1200.0, 75.0])
    >>> log = {"item": ["hat", "cap", "hat"], "kind": ["head"] * 3, "click": [1, 0, 0]}
    >>> read_catalogue(log, arm="item", path=["kind"], reward="click")
    Catalogue(2 arms, 1 cluster, depth 1; 1 success in 3 plays)
    >>> read_catalogue(log, arm="item", path=["kind"])
    Catalogue(2 arms, 1 cluster, depth 1; 0 successes in 0 plays)
    """
    if tree is not None and isinstance(arm, str) and reward is not None:
        source = read_log(source, arm=arm, reward=reward, max_bytes=max_bytes)
    if tree is not None or arm is None:
        return _count_log(source, tree)
    given = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
    given |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
    named = {what: column for what, column in given.items() if column is not None}
    if weight is not None and mean is None:
        raise InvalidType("weight is used only with mean; counts have their own weight")
    if tuple(named) not in WAYS:
        raise InvalidType(f"name the columns of {EITHER}, or none of them; got {' and '.join(named)}")
    arms = [arm] if isinstance(arm, str) else require_list("arm", arm)
    if tuple(named) == ("reward",) and len(arms) == 1 and is_lazy(source):
        table = distinct(source, [*require_list("path", path), *arms], CatalogueError)
        its_tree = read_tree(table, arm=arms, path=path, error=CatalogueError)
        return read_catalogue(source, arm=arms[0], reward=reward, tree=its_tree)
    items = load_items(source, arm, path, list(named.values()), max_bytes=max_bytes, error=CatalogueError)
    means_only = tuple(named) == ("mean",)
    first, places = items.arms(if_repeated="to average means, name a column of weights" if means_only else "")
    fields = WAYS[tuple(named)](items.table, places, len(first), **named)
    tree = items.tree(first, CatalogueError)
    # That an arm has several rows says nothing in a log of events.
    notes = [note for note in items.table.notes if reward is None or "on several rows" not in note]
    return Catalogue(tree, **fields, notes=notes)


# ---------------------------------------------------------------- columns of rewards
# Each function reads its columns, reports problems row by row, and combines the rows of an arm.


def _sum_by_arm(numbers: Floats, places: Places, n_arms: int) -> Floats:
    """Sum (rows,) to (arms,)."""
    return np.bincount(places, numbers, minlength=n_arms).astype(np.float64, copy=False)


def _read_nothing(table: Columns, places: Places, n_arms: int) -> Fields:
    """Read items without rewards: no arm has been played yet."""
    return {"plays": np.zeros(n_arms), "successes": np.zeros(n_arms)}


def _read_counts(table: Columns, places: Places, n_arms: int, *, plays: str, successes: str) -> Fields:
    """Read past plays and successes."""
    n, s = table.counts(plays), table.counts(successes)
    for at in np.flatnonzero((s > n) & (s >= 0)).tolist():
        message = f"{s[at]:.12g} successes in {n[at]:.12g} plays (column {plays!r}); there cannot be more than plays"
        table.report(at, successes, message, kind="successes")
    _check_played(table, plays, n)
    return {"plays": _sum_by_arm(n, places, n_arms), "successes": _sum_by_arm(s, places, n_arms)}


def _read_means(table: Columns, places: Places, n_arms: int, *, mean: str, weight: str | None = None) -> Fields:
    """Read known rates, averaged by weight if an arm has several rows."""
    m = table.numbers(mean, low=0.0)
    w = np.ones(len(m)) if weight is None else table.numbers(weight, low=0.0)
    for at in np.flatnonzero(m > 1).tolist():
        rate = "a mean is a rate from 0 to 1 (or a percentage such as '3.5%')"
        other = "for other rewards name plays, reward_mean and reward_sd"
        table.report(at, mean, f"{m[at]:.12g} is above 1; {rate}; {other}", kind="above 1")
    if weight is not None:
        table.report(w == 0, weight, "0; give a weight above 0")
    with np.errstate(invalid="ignore"):  # weights of 0 are problems already
        return {"means": _sum_by_arm(m * w, places, n_arms) / _sum_by_arm(w, places, n_arms)}


def _read_summaries(
    table: Columns, places: Places, n_arms: int, *, plays: str, reward_mean: str, reward_sd: str
) -> Fields:
    """Read the number of rewards, their mean and their standard deviation, which may be empty if there are too few."""
    n = table.counts(plays)
    m = table.numbers(reward_mean, needed=n > 0)
    s = table.numbers(reward_sd, low=0.0, needed=n > 1)
    _check_played(table, plays, n)
    fields = _summarise(n, np.where(n > 0, m, 0.0), np.where(n > 1, (n - 1) * s**2, 0.0), places, n_arms)
    _check_spread(table, reward_sd, fields["reward_sd"])
    return fields


def _read_events(table: Columns, places: Places, n_arms: int, *, reward: str) -> Fields:
    """Read one row per event: rewards of 0 and 1 are counted, others become a mean and a standard deviation."""
    rewards, is_known = table.rewards(reward)
    if not is_known.any() and not table.problems:
        table.report_table("no row has a reward; give at least one", reward)
    table.notes.append(f"{count(int(is_known.sum()), 'event')}: counted per arm")
    fields = _count_rewards(Log((), places[is_known], rewards[is_known]), places[is_known], n_arms)
    if "reward_sd" in fields:
        table.notes.append("rewards other than 0 and 1: modelled as normal around the mean of their arm")
        _check_spread(table, reward, fields["reward_sd"])
    return fields


WAYS: dict[tuple[str, ...], Callable[..., Fields]] = {  # named columns -> the function that reads them
    (): _read_nothing,
    ("plays", "successes"): _read_counts,
    ("mean",): _read_means,
    ("mean", "weight"): _read_means,
    ("plays", "reward_mean", "reward_sd"): _read_summaries,
    ("reward",): _read_events,
}
EITHER = "plays and successes, mean, plays with reward_mean and reward_sd, or reward"


def _count_rewards(log: Log, places: Places, n_arms: int) -> Fields:
    """Count rewards per arm: those of 0 and 1 as successes, others by mean and standard deviation."""
    n = log.counted
    if log.is_binary:
        return {"plays": _sum_by_arm(n, places, n_arms), "successes": _sum_by_arm(n * log.rewards, places, n_arms)}
    return _summarise(n, log.rewards, log.squares, places, n_arms)


def _summarise(n: Floats, mean: Floats, squares: Floats, places: Places, n_arms: int) -> Fields:
    """Compute each arm's plays, mean and standard deviation from rows that summarise n rewards each.

    ``squares`` is each row's sum of squares about its own mean. The sum of squares about the arm's mean is the sum of
    these plus n (row mean - arm mean)^2 for each row.
    """
    plays = _sum_by_arm(n, places, n_arms)
    with np.errstate(invalid="ignore"):
        average = _sum_by_arm(n * mean, places, n_arms) / np.where(plays > 0, plays, np.nan)  # (arms,)
        about_average = squares + n * (mean - np.nan_to_num(average)[places]) ** 2
        sd = np.sqrt(_sum_by_arm(about_average, places, n_arms) / np.where(plays > 1, plays - 1, np.nan))
    return {"plays": plays, "reward_mean": average, "reward_sd": sd}


def _check_spread(table: Columns, column: str, sd: Floats) -> None:
    if not (sd > 0).any() and not table.problems:
        table.report_table("no arm has rewards that differ, so their spread is unknown; add more rewards", column)


def _check_played(table: Columns, column: str, n: Floats) -> None:
    if n.sum() == 0 and not table.problems:
        table.report_table("no arm was ever played; give at least one arm with plays", column)


def _count_log(log: object, tree: object) -> Catalogue:
    """Count the rows of a log per arm: rewards of 0 and 1 as successes, others by mean and standard deviation."""
    if not isinstance(log, Log):
        raise InvalidType("name the column of the items, arm=...; tree= goes with a log from bt.read_log")
    if not isinstance(tree, Tree):
        raise InvalidType("a log has no categories; give the tree of its arms: read_catalogue(log, tree=tree)")
    log = log.summed()
    notes = [*log.notes, f"{count(len(log), 'row')} of a log: counted per arm"]
    fields = _count_rewards(log, log.places(tree), tree.n_arms)
    if "reward_sd" in fields and not (fields["reward_sd"] > 0).any():
        raise InvalidValue("no arm of the log has rewards that differ, so their spread is unknown; add rows")
    return Catalogue(tree, **fields, notes=notes)
