r"""Weights of rows for a log that a learning policy wrote (Hadad, Hirshberg, Zhan, Wager and Athey 2021).

While a policy learns, the variance of a row's score changes by what it has seen: rows late in the log, where an arm has
become rare, are far noisier for it than rows early on. A plain mean of such scores is unbiased, but it is not normal,
however long the log, and its interval does not cover. Weighting each row by one over the standard deviation of its
score makes all rows alike again, and the interval holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditree.ope.by_row import ByRow

Floats = NDArray[np.float64]


def scales(target: ByRow, behaviour: ByRow, *, contexts: bool) -> Floats:
    r"""The weight h of each row, known before its arm was chosen: (n,).

    .. math:: h_t = \Big( \sum_a \frac{\pi(a \mid x_t)^2}{e_t(a \mid x_t)} \Big)^{-1/2}

    With e_t the logging policy's probabilities at row t; for a single arm this is the square root of e_t, the paper's
    constant allocation. Where rows have contexts, the sum is averaged over the rows before: a weight that depended on
    the row's own context would favour some contexts over others.
    """
    inverse = np.where(behaviour.table > 0, 1 / np.maximum(behaviour.table, np.finfo(float).tiny), 0.0)
    spread = target.map(target.table**2).dot(behaviour.map(inverse))
    if contexts:
        spread = _mean_before(spread)
    return np.asarray(1 / np.sqrt(np.maximum(spread, np.finfo(float).tiny)))


def _mean_before(values: Floats) -> Floats:
    """The mean over the last rows before each row, about the square root of their number; the first has 1: (n,)."""
    n = len(values)
    reach = max(10, int(np.sqrt(n)))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(n)
    start = np.maximum(end - reach, 0)
    return np.where(end > 0, (sums[end] - sums[start]) / np.maximum(end - start, 1), 1.0)
