"""Summarise over seeds: mean, standard deviation, standard error, and 95% intervals by Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_DEGREES = 1000  # degrees of freedom above which the normal distribution and a first-order correction are used


@cache
def student(n: int, confidence: float = 0.95) -> float:
    """Return how many standard errors a confidence interval for a mean of ``n`` values extends to either side.

    This is the quantile of Student's t with n - 1 degrees of freedom; NaN for a single value.

    >>> [round(student(n), 3) for n in (2, 3, 16, 100, 10_000)]
    [12.706, 4.303, 2.131, 1.984, 1.96]
    """
    degrees = n - 1
    if degrees < 1:
        return math.nan
    if degrees > MAX_DEGREES:
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return z + (z**3 + z) / (4 * degrees)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _two_sided_probability(middle, degrees) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def chance_below(t: float, n: int) -> float:
    """Return P(T < t) for Student's t with n - 1 degrees of freedom.

    >>> [round(chance_below(t, 5), 4) for t in (-math.inf, 0.0, 2.776)]
    [0.0, 0.5, 0.975]
    """
    degrees = n - 1
    if degrees > MAX_DEGREES:
        return NormalDist().cdf(t)
    return 0.5 + math.copysign(_two_sided_probability(math.atan(abs(t) / math.sqrt(degrees)), degrees) / 2, t)


def _two_sided_probability(angle: float, degrees: int) -> float:
    """Return P(|T| < sqrt(degrees) tan(angle)) by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, degrees + 1, 2):  # 1 + cos^2 / 2 + 3 cos^4 / 8 + ..., or cos + 2 cos^3 / 3 + ...
        total += term
        term *= (k - 1) / k * cosine**2
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def interval(mean: Any, se: Any, n: int) -> tuple[Any, Any]:
    """Return the ends of a 95% interval for a mean of ``n`` values with this standard error."""
    reach = student(n) * se
    return mean - reach, mean + reach


@dataclass(frozen=True)
class OverSeeds:
    """Mean, standard deviation and standard error over seeds, of one number or of an array."""

    mean: Any
    sd: Any  # NaN for a single seed
    se: Any
    seeds: int

    @property
    def interval(self) -> tuple[Any, Any]:
        """The ends of a 95% interval for the mean, by Student's t."""
        return interval(self.mean, self.se, self.seeds)


def over_seeds(values: NDArray[np.float64]) -> OverSeeds:
    """Summarise an array with one row per seed: (seeds, ...).

    >>> summary = over_seeds(np.array([1.0, 2.0, 4.0, 5.0]))
    >>> summary.mean, round(summary.sd, 4), round(summary.se, 4)
    (3.0, 1.8257, 0.9129)
    """
    n = len(values)
    mean = values.mean(axis=0)
    sd = values.std(axis=0, ddof=1) if n > 1 else np.full_like(mean, np.nan)
    se = sd / math.sqrt(n)
    if values.ndim == 1:
        mean, sd, se = float(mean), float(sd), float(se)
    return OverSeeds(mean, sd, se, n)
