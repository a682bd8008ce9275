"""Measure shapes: whether regret rises, is a line or a logarithm in a parameter, and bends over time."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from banditree.paper.claims.checks import Floats, Measured, jackknife, mean
from banditree.paper.claims.data import Missing


def slope_weights(x: Floats) -> Floats:
    """Return the weights whose weighted sum of numbers at x is their least-squares slope on x: (settings,) both."""
    centred = x - x.mean()
    weights: Floats = centred / (centred**2).sum()
    return weights


def slope(x: Floats, y: Floats) -> Measured:
    """Measure the least-squares slope of regret on a parameter, from x (settings,) and y (seeds, settings)."""
    return mean(y @ slope_weights(x))


def steps(y: Floats, *, rising: bool) -> Measured:
    """Measure the step from one setting to a later one that goes most clearly the wrong way: y is (seeds, settings).

    A step against the trend is positive.
    """
    pairs = list(combinations(range(y.shape[1]), 2))
    found = [mean(y[:, i] - y[:, j] if rising else y[:, j] - y[:, i]) for i, j in pairs]
    worst = max(found, key=lambda step: step.value / step.se if step.se > 0 else np.sign(step.value) * np.inf)
    return replace(worst, among=len(pairs))


def residual(x: Floats, y: Floats) -> float:
    """Return the residual sum of squares of a straight line in x fitted to y: (settings,) both."""
    line = np.column_stack([np.ones_like(x), x])
    fitted = line @ np.linalg.lstsq(line, y, rcond=None)[0]
    return float(((y - fitted) ** 2).sum())


def straighter(x: Floats, than: Floats, y: Floats) -> Measured:
    """Measure whether regret is a line in x rather than in another scale, from -1 (exactly that) to 1 (exactly x).

    (r_than - r_x) / (r_than + r_x) of the residual sums of squares of the two fits, from x and ``than`` (settings,)
    and y (seeds, settings).
    """

    def score(means: Floats) -> float:
        ours, theirs = residual(x, means), residual(than, means)
        return (theirs - ours) / (ours + theirs) if ours + theirs > 0 else 0.0

    return jackknife(score, y)


def explained(x: Floats, y: Floats) -> Measured:
    """Measure R squared, the share of the variance between settings that a straight line in x explains."""

    def share(means: Floats) -> float:
        spread = float(((means - means.mean()) ** 2).sum())
        return 1.0 - residual(x, means) / spread if spread > 0 else 0.0

    return jackknife(share, y)


def log_ratio(a: Floats, b: Floats) -> Measured:
    """Measure the log of mean a over mean b, paired: (seeds,) both."""
    return jackknife(lambda means: float(np.log(means[0] / means[1])), np.stack([a, b], axis=1))


def ratio_slope(x: Floats, a: Floats, b: Floats) -> Measured:
    """Measure the slope on x of the log of mean a over mean b: x (settings,), a and b (seeds, settings), paired."""
    n = len(x)
    weights = slope_weights(x)
    both = np.concatenate([a, b], axis=1)  # (seeds, 2 settings)
    return jackknife(lambda means: float(weights @ np.log(means[:n] / means[n:])), both)


def quarters(times: NDArray[np.int64], regret: Floats) -> tuple[Floats, Floats]:
    """Return regret gained from T/4 to T/2 and from T/2 to T: (seeds,) each, from regret (seeds, times)."""
    end = times[-1]
    found = []
    for part in (4, 2):
        at = np.flatnonzero(part * times <= end)
        if len(at) == 0 or part * times[at[-1]] < 0.95 * end:
            raise Missing(f"regret at T/{part}")
        found.append(int(at[-1]))
    quarter, half = found
    return regret[:, half] - regret[:, quarter], regret[:, -1] - regret[:, half]


def bending(times: NDArray[np.int64], regret: Floats, exponent: float) -> Measured:
    """Measure how much more regret the second half of a run adds than growth like t^exponent would.

    Regret that grows like a + b t^exponent gains 2^exponent times as much from T/2 to T as from T/4 to T/2, whatever a
    and b are, so that regret from the start of the run does not count.
    """
    before, after = quarters(times, regret)
    return mean(after - 2**exponent * before)


def exponent(times: NDArray[np.int64], regret: Floats) -> float:
    """Estimate that exponent: log2 of the ratio of the gains, minus infinity if either is not positive."""
    before, after = (float(gain.mean()) for gain in quarters(times, regret))
    return float(np.log2(after / before)) if before > 0 and after > 0 else -np.inf
