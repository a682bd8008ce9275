"""Quotients and sums that give an infinity where the truth is past the largest float, and never a warning."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf

import numpy as np

from banditree.theory.divergence import Floats


def over(value: Floats | float, by: Floats) -> Floats:
    """value / by, elementwise, for positive numbers: an infinite ``by`` makes it 0, one that underflows infinite."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(value, by)


def total(terms: Iterable[float]) -> float:
    """The sum of positive terms, exact to the last digit, so that the order of arms and clusters never shows in it."""
    try:
        return fsum(terms)
    except OverflowError:
        return inf
