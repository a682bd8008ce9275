"""Arithmetic of the bounds: the Kullback-Leibler divergence, and quotients and sums that overflow without a warning."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_NEAR = 0.2  # below this relative change the logarithm loses digits, and the series is used
_ODD = 1 / np.arange(3.0, 23.0, 2.0)  # (10,) 1/3, 1/5, ...: enough for double precision up to _NEAR


def kl(p: ArrayLike, q: ArrayLike) -> Floats:
    """Return :math:`D(p, q) = p \\log(p / q) + (1 - p) \\log((1 - p) / (1 - q))`, elementwise; 0 log 0 is 0.

    >>> round(float(kl(0.4, 0.5)), 6)
    0.020136
    >>> float(kl(0.4, 1.0)), float(kl(0.0, 0.0))
    (inf, 0.0)
    """
    old: Floats = np.asarray(p, np.float64)
    new: Floats = np.asarray(q, np.float64)
    change = new - old
    # The plain formula subtracts two numbers of the size of the change to get its square. Adding and subtracting the
    # change makes both parts positive, so that no digits cancel.
    return _part(old, new, change) + _part(1 - old, 1 - new, -change)


def _part(old: Floats, new: Floats, change: Floats) -> Floats:
    """Return ``change - old * log(new / old)``, which is never negative; change is new - old."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio, x = new / old, change / old
        # The ratio is infinite if old is zero, or so much smaller than new that the term with its logarithm vanishes.
        far = np.where(np.isfinite(ratio), change - old * np.log(ratio), change)
        # x - log(1 + x) by log(1 + x) = 2 artanh(r), r = x / (2 + x).
        r = x / (2 + x)
        near = old * r * (x - 2 * r * r * np.polynomial.polynomial.polyval(r * r, _ODD))
    return np.where(np.abs(x) < _NEAR, near, far)


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
