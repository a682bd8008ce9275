"""Compute 95% intervals: normal ones, and those of a mean over a few seeds by Student's t."""

from __future__ import annotations

import math
from functools import cache
from typing import TypeVar

from banditree.base.arrays import Floats

Number = TypeVar("Number", float, Floats)
Z95 = 1.96  # standard errors to either side in a normal 95% interval
MANY = 1000  # degrees of freedom above which the normal distribution and a first-order correction are used


def normal_interval(mean: Number, se: Number) -> tuple[Number, Number]:
    """Return the ends of a 95% interval for a number, or an array of them, with a normal error: mean ± 1.96 se."""
    return mean - Z95 * se, mean + Z95 * se


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """Return the ends of a 95% interval for a probability, given the share of successes in ``n`` trials (Wilson 1927).

    >>> low, high = wilson_interval(0.0, 3)
    >>> round(low, 3), round(high, 3)
    (0.0, 0.562)
    """
    if not n > 0:
        return math.nan, math.nan
    centre = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    reach = Z95 / (1 + Z95**2 / n) * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2))
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def student_interval(mean: Number, se: Number, n: int) -> tuple[Number, Number]:
    """Return the ends of a 95% interval for a mean of ``n`` values with this standard error."""
    reach = student(n) * se
    return mean - reach, mean + reach


@cache
def student(n: int, confidence: float = 0.95) -> float:
    """Return how many standard errors a confidence interval for a mean of ``n`` values extends to either side.

    This is the quantile of Student's t with n - 1 degrees of freedom; NaN for a single value.

    >>> [round(student(n), 3) for n in (2, 3, 16, 100, 10_000)]
    [12.706, 4.303, 2.131, 1.984, 1.96]
    """
    from statistics import NormalDist

    degrees = n - 1
    if degrees < 1:
        return math.nan
    if degrees > MANY:
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return z + (z**3 + z) / (4 * degrees)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _central_share(middle, degrees) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def chance_below(t: float, n: int) -> float:
    """Return P(T < t) for Student's t with n - 1 degrees of freedom.

    >>> [round(chance_below(t, 5), 4) for t in (-math.inf, 0.0, 2.776)]
    [0.0, 0.5, 0.975]
    """
    from statistics import NormalDist

    degrees = n - 1
    if degrees > MANY:
        return NormalDist().cdf(t)
    return 0.5 + math.copysign(_central_share(math.atan(abs(t) / math.sqrt(degrees)), degrees) / 2, t)


def _central_share(angle: float, degrees: int) -> float:
    """Return P(|T| < sqrt(degrees) tan(angle)) by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, degrees + 1, 2):  # 1 + cos^2 / 2 + 3 cos^4 / 8 + ..., or cos + 2 cos^3 / 3 + ...
        total += term
        term *= (k - 1) / k * cosine**2
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
