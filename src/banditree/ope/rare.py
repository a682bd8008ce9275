"""Intervals where rewards are rare: a few dozen clicks decide, and a standard error by itself is too small.

Where nearly all rewards are equal (mostly 0), the others are events. An estimate is a constant plus a weighted sum of
Poisson events, and its interval is that of Fay and Feuer 1997: exact for equal weights (Clopper and Pearson's limit
for rare events), conservative for others. One event more, of the size that an event of the target has, is added for the
upper end; so an arm without a single click so far has an interval too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.intervals import Z95

RARE = 0.1  # events are rare if at most this share of the rewards differ from the most frequent one
MANY_EVENTS = 1000.0  # effective number of events from which value ± 1.96 se is as good


@dataclass(frozen=True, eq=False)
class Events:
    """Rewards minus the most frequent one, where nearly all rewards are equal; groups of equal rows are entries."""

    sizes: Floats  # (groups,)
    counts: Floats  # (groups,)
    spread: Floats | float = 0.0  # (groups,) variance of the sizes in a group
    # Of groups that are not of equal rows: how many rewards are events, and the lowest and the highest size.
    different: float | None = None
    ends: tuple[float, float] | None = None

    @property
    def n(self) -> int:
        return round(float(self.counts[self.sizes != 0].sum()) if self.different is None else self.different)

    def effective(self, multipliers: Floats) -> float:
        """Return how many events of equal size would vary as much as these, multiplied."""
        total, squares = self._sums(multipliers)
        return total**2 / squares if squares > 0 else 0.0

    def _sums(self, multipliers: Floats) -> tuple[float, float]:
        """Sum the sizes of multiplied events, and their squares."""
        total = float(self.counts @ np.abs(multipliers * self.sizes))
        return total, float(self.counts @ (multipliers**2 * (self.sizes**2 + self.spread)))

    def _typical(self, multipliers: Floats) -> float:
        """Return the multiplier of a row that is drawn in proportion to its multiplier."""
        total = float(self.counts @ multipliers)
        return float(self.counts @ multipliers**2) / total if total > 0 else 0.0

    def reach(self, multipliers: Floats, confidence: float) -> tuple[float, float] | None:
        r"""Return how far the expectation of :math:`\sum_i m_i e_i` may be below and above it; None with many events.

        Positive and negative terms have an interval each; those of their difference follow from both (Zou and Donner
        2008).
        """
        if self.effective(multipliers) >= MANY_EVENTS:
            return None
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        low, high = self.ends or (float(self.sizes.min()), float(self.sizes.max()))
        lowest, highest = min(low, 0.0), max(high, 0.0)
        if highest == lowest == 0:
            highest = 1.0
        up, down = self._typical(np.maximum(multipliers, 0.0)), self._typical(np.maximum(-multipliers, 0.0))
        is_gain = multipliers * self.sizes > 0
        gain = _ends(*self._sums(multipliers * is_gain), max(up * highest, -down * lowest), z)
        loss = _ends(*self._sums(multipliers * ~is_gain), max(down * highest, -up * lowest), z)
        return math.hypot(gain[0], loss[1]), math.hypot(gain[1], loss[0])


def rare_events(rewards: Floats, counts: Floats) -> Events | None:
    """Return the events of a log if nearly all of its rewards are equal; None otherwise."""
    n = float(counts.sum())
    usual = 0.0
    if counts[rewards != 0].sum() > RARE * n:
        order = np.argsort(rewards, kind="stable")
        usual = float(rewards[order][np.searchsorted(np.cumsum(counts[order]), n / 2)])
        if counts[rewards != usual].sum() > RARE * n:
            return None
    return Events(rewards - usual, counts)


def events_in_groups(
    rewards: Floats, counts: Floats, spread: Floats, ends: tuple[Floats, Floats], unusual: tuple[float, Floats]
) -> Events | None:
    """Return the same for groups of rows, by their means, variances, ends, and how many differ from a usual reward."""
    usual, different = unusual[0], float(unusual[1].sum())
    if different > RARE * counts.sum():
        return None
    lowest_and_highest = float(ends[0].min()) - usual, float(ends[1].max()) - usual
    return Events(rewards - usual, counts, spread, different, lowest_and_highest)


def widen(
    value: float, se: float, confidence: float, multipliers: Floats | None, events: Events | None
) -> tuple[float, float]:
    """Return the interval of a value: normal, and with rare events at least as wide as `Events.reach` says."""
    z = Z95 if confidence == 0.95 else NormalDist().inv_cdf((1 + confidence) / 2)
    below = above = z * se
    if multipliers is not None and events is not None and not math.isnan(se):
        low, high = events.reach(multipliers, confidence) or (0.0, 0.0)
        below, above = max(below, low), max(above, high)
    return value - below, value + above


def _ends(total: float, squares: float, one_more: float, z: float) -> tuple[float, float]:
    """Return how far the expectation of a sum of terms that are at least 0 may be below and above it.

    Terms are known by their sum and the sum of their squares; one more term counts for the upper end.
    """
    low = _gamma_quantile(total**2 / squares, -z) * squares / total if squares > 0 else 0.0
    larger, larger_squares = total + one_more, squares + one_more**2
    high = _gamma_quantile(larger**2 / larger_squares, z) * larger_squares / larger if larger_squares > 0 else 0.0
    return total - low, high - total


def _gamma_quantile(shape: float, z: float) -> float:
    """Return the quantile of a gamma distribution of scale 1 and shape at least 1 (Wilson and Hilferty 1931)."""
    return shape * max(1 - 1 / (9 * shape) + z / (3 * math.sqrt(shape)), 0.0) ** 3
