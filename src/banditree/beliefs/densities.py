"""The densities that winning probabilities integrate: Beta on the log-odds scale, and Normal.

Both are log-concave, with ln f(t) = ln f(c) + slope(c) (t - c) - weight * bend(t - c) around any c, where ``bend`` is
the same function for every child. So a panel of nodes costs one logarithm per child and one exponential per node.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Points = NDArray[np.float64] | np.float64  # one for all classes, one per class, or (classes, points)

MOST_PLAYS = 1e18  # with more successes and more failures, one sd is lost in the rounding of the log odds
LEAST = 1e-100  # least sd of a Normal relative to the widest: a smaller one overflows in its square, and wins as often
NARROWEST = 1e-13  # least sd of a Normal relative to its distance from the highest mean, which rounding limits


class Densities(Protocol):
    """One log-concave density per class of children."""

    mode: Floats  # (classes,)
    weight: Floats  # (classes,) of the bend

    def take(self, order: NDArray[np.intp] | slice) -> Densities: ...
    def log_density(self, t: Points) -> Floats: ...
    def slope(self, t: Points) -> Floats: ...  # of ln f
    def curvature(self, t: Points) -> Floats: ...  # of -ln f
    def bend(self, c: float, d: Floats) -> Floats: ...
    def top(self, depth: Floats) -> Floats: ...  # the point above the mode where ln f is `depth` below its peak
    def longest(self, right: Points) -> Floats: ...  # longest panel ending here that avoids complex poles


def stirling_rest(x: Floats) -> Floats:
    """Return ln Gamma(x) minus Stirling's (x - 1/2) ln x - x + ln(2 pi) / 2, for x > 0."""
    far = np.where(x < 10, x + 10, x)
    i = 1 / far
    q = i * i
    rest = i * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q * (1 / 1188 - q * (691 / 360360))))))
    small = x < 10
    if small.any():  # apply x Gamma(x) = Gamma(x + 1) ten times
        near = np.where(small, x, 10.0)
        product = np.prod([near + i for i in range(1, 10)], axis=0)
        step = (near + 9.5) * np.log1p(10 / near) - 10 + 10 * np.log(near) - np.log(near) - np.log(product)
        rest = np.where(small, rest + step, rest)
    return np.asarray(rest)


def log_beta(x: Floats, y: Floats) -> Floats:
    """Return ln B(x, y), by Stirling's formula, of whose terms the large ones cancel."""
    n = x + y
    rest = stirling_rest(x) + stirling_rest(y) - stirling_rest(n)
    return np.asarray((x - 0.5) * np.log(x / n) + (y - 0.5) * np.log(y / n) - 0.5 * np.log(n / (2 * np.pi)) + rest)


class BetaLogOdds:
    """The log odds t of a Beta(a, b): ln f(t) = a t - (a + b) ln(1 + e^t) - ln B(a, b), smooth for any a, b > 0.

    Expanded around the mode ln(a / b), where Stirling's terms cancel, it stays accurate for a million plays and more.
    """

    def __init__(self, a: Floats, b: Floats) -> None:  # (classes,) each
        self.fewer = np.minimum(1.0, MOST_PLAYS / np.minimum(a, b))
        a, b = a * self.fewer, b * self.fewer
        self.a, self.b = a, b
        self.weight = n = a + b
        self.p, self.q = a / n, b / n
        self.mode = np.log(a) - np.log(b)
        rest = stirling_rest(n) - stirling_rest(a) - stirling_rest(b)
        self.log_peak = 0.5 * (np.log(self.p) + np.log(b) - np.log(2 * np.pi)) + rest

    def take(self, order: NDArray[np.intp] | slice) -> BetaLogOdds:
        found = object.__new__(BetaLogOdds)
        found.__dict__ = {name: each[order] for name, each in self.__dict__.items()}
        return found

    def drop(self, t: Points) -> Floats:
        """Return ln f(mode) - ln f(t) = n (ln(q + p e^u) - p u) with u = t - mode; (-u, q, p) gives the same.

        Computed from the side where p is at most 1/2, as ln(1 + p (e^u - 1)) - p u, its relative error is small.
        """
        p, q, n, mode = (_beside(each, t) for each in (self.p, self.q, self.weight, self.mode))
        u = np.where(p < q, t - mode, mode - t)
        p = np.minimum(p, q)
        near = np.minimum(u, 700.0)  # beyond 700, the 1 is negligible compared with p e^u
        return np.asarray(n * (np.log1p(p * np.expm1(near)) + (u - near) - p * u))

    def log_density(self, t: Points) -> Floats:
        return np.asarray(_beside(self.log_peak, t) - self.drop(t))

    def slope(self, t: Points) -> Floats:
        a, b = _beside(self.a, t), _beside(self.b, t)
        e = np.exp(-np.abs(t))
        return np.asarray(np.where(t < 0, a - b * e, a * e - b) / (1 + e))

    def curvature(self, t: Points) -> Floats:
        e = np.exp(-np.abs(t))
        return np.asarray(_beside(self.weight, t) * (e / (1 + e) ** 2))

    def bend(self, c: float, d: Floats) -> Floats:
        """Return ln(1 + e^t) minus its tangent at c, for t = c + d; (-c, -d) gives the same."""
        d = d if c < 0 else -d
        e = np.exp(-abs(c))
        sigma = e / (1 + e)
        near = np.abs(d) < 1  # further away, e^c or e^d may overflow where e^(c + d) does not
        rise = np.where(near, sigma * np.expm1(np.where(near, d, 0.0)), (np.exp(d - abs(c)) - e) / (1 + e))
        return np.asarray(np.log1p(rise) - sigma * d)

    def top(self, depth: Floats) -> Floats:
        """Find where ln f is ``depth`` (classes,) below its peak, above the mode. About e^-depth lies beyond."""
        # Newton from beyond the root of a convex function: ln f is below its asymptote and, near the mode, a parabola.
        # Where ln f falls like -e^t a step is about 1, and the way to go at most ln(a / b), some hundreds.
        steep = np.sqrt(2 * np.e * depth / (self.weight * self.p * self.q))
        u = np.where(steep <= 1, steep, (depth - self.weight * np.log(self.p)) / self.b)
        t = self.mode + u
        for _ in range(1000):
            over = self.drop(t) - depth
            step = over / -self.slope(t)
            t = t - step
            if ((np.abs(step) < 1e-2 * (t - self.mode)) & (over < depth)).all():
                break
        return t

    def longest(self, right: Points) -> Floats:
        # the poles of ln(1 + e^t) nearest to the real line are +-i pi
        return np.asarray(np.maximum(3.0, np.maximum(right / 2, -right)))


class Normal:
    """Normal densities: ln f(t) = -(t - mean)^2 / (2 sd^2) - ln(sd sqrt(2 pi)), sd > 0."""

    def __init__(self, mean: Floats, sd: Floats) -> None:  # (classes,) each
        self.mode, self.sd = mean, sd
        self.weight = sd**-2

    def take(self, order: NDArray[np.intp] | slice) -> Normal:
        return Normal(self.mode[order], self.sd[order])

    def drop(self, t: Points) -> Floats:
        return np.asarray(0.5 * ((t - _beside(self.mode, t)) / _beside(self.sd, t)) ** 2)

    def log_density(self, t: Points) -> Floats:
        return np.asarray(-np.log(_beside(self.sd, t)) - 0.5 * np.log(2 * np.pi) - self.drop(t))

    def slope(self, t: Points) -> Floats:
        return np.asarray((_beside(self.mode, t) - t) * _beside(self.weight, t))

    def curvature(self, t: Points) -> Floats:
        return np.asarray(_beside(self.weight, t) + 0 * t)

    def bend(self, c: float, d: Floats) -> Floats:
        return np.asarray(0.5 * d**2)

    def top(self, depth: Floats) -> Floats:
        """Find where ln f is ``depth`` (classes,) below its peak, above the mode."""
        return np.asarray(self.mode + self.sd * np.sqrt(2 * depth))

    def longest(self, right: Points) -> Floats:
        return np.full_like(right, np.inf)


def _beside(values: Floats, t: Points) -> Floats:
    """Shape values per class for points t: (classes,) if t is a number or (classes,), (classes, 1) if (classes, m)."""
    return values[:, None] if np.ndim(t) == 2 else values
