r"""Weight the rows of a log that a learning policy wrote (Hadad, Hirshberg, Zhan, Wager and Athey 2021).

While a policy learns, the variance of a row's score depends on what it has seen: once an arm has become rare, later
rows are far noisier for it than early ones. The plain mean of such scores is unbiased, but not normally distributed,
however long the log is, and its interval does not cover the truth as often as it should. Weighting each row by the
inverse standard deviation of its score makes the rows comparable again, and the interval valid.
"""

from __future__ import annotations

import numpy as np

from banditree.ope.by_row import ByRow, Floats


def scales(target: ByRow, behaviour: ByRow, *, contexts: bool) -> Floats:
    r"""Compute the weight h of each row, known before its arm was chosen: (n,).

    .. math:: h_t = \Big( \sum_a \frac{\pi(a \mid x_t)^2}{e_t(a \mid x_t)} \Big)^{-1/2}

    Here e_t are the logging policy's probabilities at row t; for a single arm the weight is the square root of e_t, the
    paper's constant allocation. If rows have contexts, the sum is averaged over earlier rows, because a weight that
    depended on the row's own context would favour some contexts over others.
    """
    inverse = np.where(behaviour.table > 0, 1 / np.maximum(behaviour.table, np.finfo(float).tiny), 0.0)
    spread = target.map(target.table**2).dot(behaviour.map(inverse))
    if contexts:
        spread = _mean_before(spread)
    return np.asarray(1 / np.sqrt(np.maximum(spread, np.finfo(float).tiny)))


def _mean_before(values: Floats) -> Floats:
    """Average the values of the preceding rows, about sqrt(n) of them; the first row gets 1: (n,)."""
    n = len(values)
    reach = max(10, int(np.sqrt(n)))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(n)
    start = np.maximum(end - reach, 0)
    return np.where(end > 0, (sums[end] - sums[start]) / np.maximum(end - start, 1), 1.0)
