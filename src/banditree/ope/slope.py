"""SLOPE: choose an estimator's setting from the data (Su, Srinath and Krishnamurthy 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable

REACH = 1.96  # standard errors in a confidence interval


def slope(estimates: Iterable[tuple[float, float]]) -> int:
    """The place of the chosen one among (value, standard error), in the order of growing bias and shrinking error.

    Each interval is twice as wide as a confidence interval: value ± 2 · 1.96 se. The choice is the last estimate up to
    which all intervals have a point in common: while they do, the bias is within what chance explains, and the later
    estimate is the surer one. Lepski's principle; the error of the chosen one is at most a constant times the best's.

    >>> slope([(0.50, 0.10), (0.40, 0.05), (0.38, 0.02), (0.10, 0.01)])
    2
    """
    low, high = float("-inf"), float("inf")
    chosen = 0
    for place, (value, error) in enumerate(estimates):
        low, high = max(low, value - 2 * REACH * error), min(high, value + 2 * REACH * error)
        if not (low <= high and math.isfinite(value) and math.isfinite(error)):
            break
        chosen = place
    return chosen
