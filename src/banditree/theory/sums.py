"""Quotients and sums that overflow to infinity without a warning."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf

import numpy as np

from banditree.theory.divergence import Floats


def over(value: Floats | float, by: Floats) -> Floats:
    """Return value / by, elementwise, for positive numbers: 0 for an infinite ``by``, infinity where it underflows."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(value, by)


def total(terms: Iterable[float]) -> float:
    """Add positive terms exactly, so that the order of arms and clusters cannot change the sum."""
    try:
        return fsum(terms)
    except OverflowError:
        return inf
