"""Read the reward columns of a table: counts, known rates, means and deviations, or a log of single events.

Each function here reads its columns, reports what is wrong row by row, and returns a function that aggregates rows to
arms. Called with ``add_up``, which sums (rows,) to (arms,), and the arm index of each row, that function returns the
fields of a `Catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.defects import CatalogueError, Defect
from banditree.catalogue.rows import Rows
from banditree.report.words import count

Floats = NDArray[np.float64]
AddUp = Callable[[Floats], Floats]
Fields = Callable[[AddUp, NDArray[np.intp]], dict[str, Any]]


def adding_up(place: NDArray[np.intp], n_arms: int) -> AddUp:
    """Return a function that sums (rows,) to (arms,), given the arm index of each row."""
    return lambda numbers: np.bincount(place, numbers, minlength=n_arms).astype(np.float64, copy=False)


def counts(rows: Rows, *, plays: str, successes: str) -> Fields:
    """Read past plays and successes."""
    n, s = rows.counts(plays), rows.counts(successes)
    for at in np.flatnonzero(s > n).tolist():
        message = f"{s[at]:.12g} successes in {n[at]:.12g} plays (column {plays!r}); there cannot be more than plays"
        rows.report(at, successes, message, kind="successes")

    def fields(add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Any]:
        _check_played(rows, plays, n)
        return {"plays": add_up(n), "successes": add_up(s)}

    return fields


def means(rows: Rows, *, mean: str, weight: str | None = None) -> Fields:
    """Read known rates, averaged by weight if an arm has several rows."""
    m = rows.numbers(mean)
    w = np.ones(len(m)) if weight is None else rows.numbers(weight)
    for at in np.flatnonzero(m > 1).tolist():
        rate = "a mean is a rate from 0 to 1 (or a percentage such as '3.5%')"
        other = "for other rewards name plays, reward_mean and reward_sd"
        rows.report(at, mean, f"{m[at]:.12g} is above 1; {rate}; {other}", kind="above 1")
    for at in np.flatnonzero(w == 0).tolist():
        if weight is not None:
            rows.report(at, weight, "0; give a weight above 0")

    def fields(add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Any]:
        return {"means": add_up(m * w) / add_up(w)}

    return fields


def normal(rows: Rows, *, plays: str, reward_mean: str, reward_sd: str) -> Fields:
    """Read the number of rewards, their mean and their standard deviation, which may be empty if there are too few."""
    n = rows.counts(plays)
    m = rows.numbers(reward_mean, low=-np.inf, needed=n > 0)
    s = rows.numbers(reward_sd, needed=n > 1)

    def fields(add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Any]:
        _check_played(rows, plays, n)
        known = np.where(n > 0, m, 0.0)
        inside = np.where(n > 1, (n - 1) * s**2, 0.0)
        found = _summed_up(n, known, inside, add_up, place)
        _check_spread(rows, reward_sd, found["reward_sd"])
        return found

    return fields


def events(rows: Rows, *, reward: str) -> Fields:
    """Read one row per event: rewards of 0 and 1 are counted, others become a mean and a standard deviation."""
    r = rows.numbers(reward, low=-np.inf, truths=True)

    def fields(add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Any]:
        rows.notes = [note for note in rows.notes if "on several rows" not in note]
        rows.notes.append(f"{count(len(r), 'event')}: counted per arm")
        found = counted(r, add_up, place)
        if "reward_sd" in found:
            rows.notes.append("rewards other than 0 and 1: modelled as normal around the mean of their arm")
            _check_spread(rows, reward, found["reward_sd"])
        return found

    return fields


def counted(rewards: Floats, add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Floats]:
    """Count single rewards per arm: those of 0 and 1 as successes, others by mean and standard deviation."""
    ones = np.ones(len(rewards))
    if np.isin(rewards, (0.0, 1.0)).all():
        return {"plays": add_up(ones), "successes": add_up(rewards)}
    return _summed_up(ones, rewards, np.zeros(len(rewards)), add_up, place)


def _summed_up(n: Floats, mean: Floats, inside: Floats, add_up: AddUp, place: NDArray[np.intp]) -> dict[str, Floats]:
    """Compute each arm's plays, mean and standard deviation from rows that summarise n rewards each.

    ``inside`` is each row's sum of squares about its own mean. The sum of squares about the arm's mean is the sum of
    these plus n (row mean - arm mean)^2 for each row.
    """
    plays = add_up(n)
    with np.errstate(invalid="ignore"):
        average = add_up(n * mean) / np.where(plays > 0, plays, np.nan)  # (arms,)
        squares = add_up(inside + n * (mean - np.nan_to_num(average)[place]) ** 2)
        sd = np.sqrt(squares / np.where(plays > 1, plays - 1, np.nan))
    return {"plays": plays, "reward_mean": average, "reward_sd": sd}


def _check_spread(rows: Rows, column: str, sd: Floats) -> None:
    if not (sd > 0).any():
        what = "no arm has rewards that differ, so their spread is unknown; add more rewards"
        raise CatalogueError(rows.table.source, [Defect(None, column, what)])


def _check_played(rows: Rows, column: str, n: Floats) -> None:
    if n.sum() == 0:
        what = "no arm was ever played; give at least one arm with plays"
        raise CatalogueError(rows.table.source, [Defect(None, column, what)])
