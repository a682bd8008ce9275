"""How wide an interval of a mean over few seeds has to be."""

from __future__ import annotations

import math
from functools import cache

NORMAL = 1.959963984540054  # what 95% of a normal's draws are within, in standard deviations
MANY = 1000


@cache
def student(n: int) -> float:
    """How many standard errors the 95% interval of a mean over ``n`` values reaches to either side.

    The quantile of Student's t with n - 1 degrees of freedom; NaN for a single value, of which nothing is known.

    >>> [round(student(n), 3) for n in (2, 3, 16, 100, 10_000)]
    [12.706, 4.303, 2.131, 1.984, 1.96]
    """
    degrees = n - 1
    if degrees < 1:
        return math.nan
    if degrees > MANY:  # the first term of the expansion around the normal's
        return NORMAL + (NORMAL**3 + NORMAL) / (4 * degrees)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 0.95 else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """P(|T| < sqrt(degrees) tan(angle)): the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, degrees + 1, 2):  # 1 + cos^2 / 2 + 3 cos^4 / 8 + ..., or cos + 2 cos^3 / 3 + ...
        total += term
        term *= (k - 1) / k * cosine**2
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
