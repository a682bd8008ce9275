"""Choose an estimator's setting from the data with SLOPE (Su, Srinath and Krishnamurthy 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable

REACH = 2.0  # standard errors to either side


def slope(estimates: Iterable[tuple[float, float]]) -> int:
    """Return the index of the chosen (value, standard error), given in order of growing bias and shrinking error.

    Each interval is value ± 2 se, the paper's 2 CNF with a confidence width CNF of one standard error. The choice is
    the last estimate up to which all intervals have a point in common: while they do, chance can explain the
    differences, and the later estimate is more precise (Lepski's principle).

    >>> slope([(0.50, 0.10), (0.40, 0.05), (0.38, 0.02), (0.10, 0.01)])
    2
    """
    low, high = float("-inf"), float("inf")
    chosen = 0
    for place, (value, error) in enumerate(estimates):
        low, high = max(low, value - REACH * error), min(high, value + REACH * error)
        if not (low <= high and math.isfinite(value) and math.isfinite(error)):
            break
        chosen = place
    return chosen
