"""Numbers of the theory: the means that users pass, divergences, and sums that overflow without a warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from banditree.base.arrays import Floats
from banditree.errors import InvalidValue
from banditree.tree import Tree
from banditree.tree.build import Name
from banditree.tree.lookup import by_arm, numbers

Means = Mapping[Any, float] | Sequence[float] | Floats  # by arm, or in the order of tree.arms

NEAR_CHANGE = 0.2  # below this relative change the logarithm loses digits, and the series is used
ODD_RECIPROCALS = 1 / np.arange(3.0, 23.0, 2.0)  # (10,) 1/3, 1/5, ...: enough for double precision up to NEAR_CHANGE


def read_means(tree: Tree, means: Means) -> Floats:
    """Return the mean of every arm, in the order of ``tree.arms``: (arms,)."""
    return _check_means(by_arm(tree, "means", means), tree.arms)


def read_flat_means(means: Means) -> tuple[Sequence[Name], Floats]:
    """Return arms (positions if ``means`` is not a mapping) and their means: (arms,)."""
    if isinstance(means, Mapping):
        arms = list(means)
        return arms, _check_means(numbers("means", list(means.values())), arms)
    mu = _check_means(numbers("means", means), None)
    return range(len(mu)), mu


def _check_means(mu: Floats, arms: Sequence[Name] | None) -> Floats:
    """Check that there is one number in [0, 1] per arm; if ``arms`` is None, at least one number."""
    if mu.ndim > 1 or not mu.size or (arms is not None and len(arms) != len(mu)):
        wanted = "one number per arm" if arms is None else f"{len(arms):,} numbers, one per arm"
        raise InvalidValue(f"means has shape {mu.shape}; give {wanted}")
    is_wrong = ~((mu >= 0) & (mu <= 1))  # also true for NaN
    if is_wrong.any():
        first = int(is_wrong.argmax())
        arm = first if arms is None else arms[first]
        raise InvalidValue(f"mean {mu[first]} of arm {arm!r} is not in [0, 1]; the theory is for Bernoulli rewards")
    return mu


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
    return _kl_part(old, new, change) + _kl_part(1 - old, 1 - new, -change)


def _kl_part(old: Floats, new: Floats, change: Floats) -> Floats:
    """Return ``change - old * log(new / old)``, which is never negative; change is new - old."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio, x = new / old, change / old
        # The ratio is infinite if old is zero, or so much smaller than new that the term with its logarithm vanishes.
        far = np.where(np.isfinite(ratio), change - old * np.log(ratio), change)
        # x - log(1 + x) by log(1 + x) = 2 artanh(r), r = x / (2 + x).
        r = x / (2 + x)
        near = old * r * (x - 2 * r * r * np.polynomial.polynomial.polyval(r * r, ODD_RECIPROCALS))
    return np.where(np.abs(x) < NEAR_CHANGE, near, far)


def divide(value: Floats | float, by: Floats) -> Floats:
    """Return value / by, elementwise, for positive numbers: 0 for an infinite ``by``, infinity where it underflows."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(value, by)


def add_exactly(terms: Iterable[float]) -> float:
    """Add positive terms exactly, so that the order of arms and clusters cannot change the sum."""
    try:
        return fsum(terms)
    except OverflowError:
        return inf
