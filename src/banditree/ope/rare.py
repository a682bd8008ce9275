"""Intervals where rewards are rare: a few dozen clicks decide, and a standard error by itself is too small.

Where nearly all rewards are equal (mostly 0), the others are events. An estimate is a constant plus a weighted sum of
Poisson events, and its interval is that of Fay and Feuer 1997: exact for equal weights (Clopper and Pearson's limit
for rare events), conservative for others. One event more, of the size that an event of the target has, is added for the
upper end; so an arm without a single click so far has an interval too.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from banditree.base.intervals import Z95
from banditree.data.cells import Floats

RARE = 0.1  # events are rare if at most this share of the rewards differ from the most frequent one
MANY_EVENTS = 1000.0  # effective number of events from which value ± 1.96 se is as good


def rare_events(rewards: Floats) -> Floats | None:
    """Return rewards minus the most frequent one, if nearly all rewards are equal; None otherwise: (n,)."""
    usual = 0.0
    if np.count_nonzero(rewards) > RARE * len(rewards):
        usual = float(np.median(rewards))
        if np.count_nonzero(rewards != usual) > RARE * len(rewards):
            return None
    return rewards - usual


def reach_of_events(multipliers: Floats, events: Floats, confidence: float) -> tuple[float, float] | None:
    r"""Return how far the expectation of :math:`\sum_i m_i e_i` may be below and above it; None with many events.

    Positive and negative terms have an interval each; those of their difference follow from both (Zou and Donner 2008).
    """
    terms = multipliers * events
    if effective(terms) >= MANY_EVENTS:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    highest, lowest = max(float(events.max()), 0.0), min(float(events.min()), 0.0)
    if highest == lowest == 0:
        highest = 1.0
    up, down = np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)
    gain = _ends(np.maximum(terms, 0.0), max(_typical(up) * highest, -_typical(down) * lowest), z)
    loss = _ends(np.maximum(-terms, 0.0), max(_typical(down) * highest, -_typical(up) * lowest), z)
    return math.hypot(gain[0], loss[1]), math.hypot(gain[1], loss[0])


def widen(
    value: float, se: float, confidence: float, multipliers: Floats | None, events: Floats | None
) -> tuple[float, float]:
    """Return the interval of a value: normal, and with rare events at least as wide as `reach_of_events` says."""
    z = Z95 if confidence == 0.95 else NormalDist().inv_cdf((1 + confidence) / 2)
    below = above = z * se
    if multipliers is not None and events is not None and not math.isnan(se):
        low, high = reach_of_events(multipliers, events, confidence) or (0.0, 0.0)
        below, above = max(below, low), max(above, high)
    return value - below, value + above


def effective(terms: Floats) -> float:
    """Return how many events of equal size would vary as much."""
    squares = float(terms @ terms)
    return float(np.abs(terms).sum()) ** 2 / squares if squares > 0 else 0.0


def _typical(multipliers: Floats) -> float:
    """Return the multiplier of a row that is drawn in proportion to its multiplier."""
    total = float(multipliers.sum())
    return float(multipliers @ multipliers) / total if total > 0 else 0.0


def _ends(terms: Floats, one_more: float, z: float) -> tuple[float, float]:
    """Return how far the expectation of a sum of terms that are at least 0 may be below and above it."""
    total, squares = float(terms.sum()), float(terms @ terms)
    low = _gamma_quantile(total**2 / squares, -z) * squares / total if squares > 0 else 0.0
    larger, larger_squares = total + one_more, squares + one_more**2
    high = _gamma_quantile(larger**2 / larger_squares, z) * larger_squares / larger if larger_squares > 0 else 0.0
    return total - low, high - total


def _gamma_quantile(shape: float, z: float) -> float:
    """Return the quantile of a gamma distribution of scale 1 and shape at least 1 (Wilson and Hilferty 1931)."""
    return shape * max(1 - 1 / (9 * shape) + z / (3 * math.sqrt(shape)), 0.0) ** 3
