"""Compute the exact probability that each child has the highest draw, by numerical integration.

Child i has the highest draw with probability P_i = integral of f_i times the product of the other F_j. The panels of
nodes start at the highest value that a draw can have, and end where the highest draw is practically never below;
docs/exact-probabilities.md derives them. Twin of native/beliefs/winning.hpp.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats, Places

Points = Floats | np.float64  # one for all classes, one per class, or (classes, points)

MOST_PLAYS = 1e18  # with more successes and more failures, one sd is lost in the rounding of the log odds
LEAST = 1e-100  # least sd of a Normal relative to the widest: a smaller one overflows in its square, and wins as often
NARROWEST = 1e-13  # least sd of a Normal relative to its distance from the highest mean, which rounding limits


class Densities(Protocol):
    """One log-concave density per class of children."""

    mode: Floats  # (classes,)
    weight: Floats  # (classes,) of the bend

    def take(self, order: Places | slice) -> Densities: ...
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

    def take(self, order: Places | slice) -> BetaLogOdds:
        taken = object.__new__(BetaLogOdds)
        taken.__dict__ = {name: values[order] for name, values in self.__dict__.items()}
        return taken

    def drop(self, t: Points) -> Floats:
        """Return ln f(mode) - ln f(t) = n (ln(q + p e^u) - p u) with u = t - mode; (-u, q, p) gives the same.

        Computed from the side where p is at most 1/2, as ln(1 + p (e^u - 1)) - p u, its relative error is small.
        """
        p, q, n, mode = (_as_column(values, t) for values in (self.p, self.q, self.weight, self.mode))
        u = np.where(p < q, t - mode, mode - t)
        p = np.minimum(p, q)
        near = np.minimum(u, 700.0)  # beyond 700, the 1 is negligible compared with p e^u
        return np.asarray(n * (np.log1p(p * np.expm1(near)) + (u - near) - p * u))

    def log_density(self, t: Points) -> Floats:
        return np.asarray(_as_column(self.log_peak, t) - self.drop(t))

    def slope(self, t: Points) -> Floats:
        a, b = _as_column(self.a, t), _as_column(self.b, t)
        e = np.exp(-np.abs(t))
        return np.asarray(np.where(t < 0, a - b * e, a * e - b) / (1 + e))

    def curvature(self, t: Points) -> Floats:
        e = np.exp(-np.abs(t))
        return np.asarray(_as_column(self.weight, t) * (e / (1 + e) ** 2))

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

    def take(self, order: Places | slice) -> Normal:
        return Normal(self.mode[order], self.sd[order])

    def drop(self, t: Points) -> Floats:
        return np.asarray(0.5 * ((t - _as_column(self.mode, t)) / _as_column(self.sd, t)) ** 2)

    def log_density(self, t: Points) -> Floats:
        return np.asarray(-np.log(_as_column(self.sd, t)) - 0.5 * np.log(2 * np.pi) - self.drop(t))

    def slope(self, t: Points) -> Floats:
        return np.asarray((_as_column(self.mode, t) - t) * _as_column(self.weight, t))

    def curvature(self, t: Points) -> Floats:
        return np.asarray(_as_column(self.weight, t) + 0 * t)

    def bend(self, c: float, d: Floats) -> Floats:
        return np.asarray(0.5 * d**2)

    def top(self, depth: Floats) -> Floats:
        """Find where ln f is ``depth`` (classes,) below its peak, above the mode."""
        return np.asarray(self.mode + self.sd * np.sqrt(2 * depth))

    def longest(self, right: Points) -> Floats:
        return np.full_like(right, np.inf)


def _as_column(values: Floats, t: Points) -> Floats:
    """Shape values per class for points t: (classes,) if t is a number or (classes,), (classes, 1) if (classes, m)."""
    return values[:, None] if np.ndim(t) == 2 else values


NODES = 16  # per panel
NEVER = 42.0  # e^-42 = 6e-19 is the chance that the highest draw lies beyond the panels, on either side
STEEPEST = 12.0  # how far ln f may fall within a panel
SMALL = 1e-3  # below this, F is integrated from the left, not as 1 minus the rest, to keep its digits
AGREE = 1e-10  # a panel whose integral differs from the rise of the product by more is halved
ROUNDING = 1e-6  # if halving does not remove a difference below this, the panel's length is not its cause
TOO_NARROW = 1e-14  # relative length of a panel that cannot be halved


class Rule(NamedTuple):
    """Gauss-Legendre nodes and weights on [-1, 1], and the matrix from f at the nodes to its integrals to 1."""

    node: Floats
    weight: Floats
    above: Floats


@cache
def _rule() -> Rule:
    x, w = np.polynomial.legendre.leggauss(NODES)
    legendre = np.polynomial.legendre.legvander(x, NODES)  # (nodes, degree)
    degree = np.arange(NODES)
    # The coefficients of the interpolant, then the integral of each Legendre polynomial from x to 1.
    coefficients = (degree[:, None] + 0.5) * legendre[:, :NODES].T * w  # (degree, nodes)
    above = np.empty((NODES, NODES))  # (node, degree)
    above[:, 0] = 1 - x
    above[:, 1:] = (legendre[:, : NODES - 1] - legendre[:, 2:]) / (2 * degree[1:] + 1)
    return Rule(x, w, (above @ coefficients).T)


def beta_wins(a: Floats, b: Floats) -> Floats:
    """Return the probability that each child's draw from Beta(a, b) is the highest: (k,) from (k,), sums to 1.

    >>> beta_wins(np.array([1.0, 1.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0])).round(6)
    array([0.2, 0.2, 0.2, 0.4])
    """
    a, b, kind_of, size = _classes(a, b)
    return _wins(BetaLogOdds(a, b), size)[0][kind_of]


def normal_wins(mean: Floats, sd: Floats) -> Floats:
    """Return the probability that each child's draw from N(mean, sd^2) is the highest: (k,) from (k,), sums to 1.

    A child whose sd is 0 always draws its mean; such children with the same mean share their probability.

    >>> normal_wins(np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))
    array([0.5, 0.5, 0. ])
    """
    mean, sd, kind_of, size = _classes(mean, sd)
    mean = mean - mean.max()  # differences of close doubles are exact
    sure = sd == 0
    floor = mean[sure].max(initial=-np.inf)
    chances = np.zeros(len(size))
    rest = 1.0
    if not sure.all():
        sd = np.maximum(sd, NARROWEST * -mean)[~sure]
        scale = sd.max()
        densities = Normal(mean[~sure] / scale, np.maximum(sd / scale, LEAST))
        chances[~sure], rest = _wins(densities, size[~sure], floor / scale)
    best = sure & (mean == floor)
    if best.any():
        chances[best] = rest / size[best].sum()
    return chances[kind_of]


def ties(scores: Floats) -> Floats:
    """Return the probability of each child if the highest score wins and ties are broken evenly: (k,) from (k,).

    >>> ties(np.array([0.2, 0.7, 0.7]))
    array([0. , 0.5, 0.5])
    """
    best = scores == scores.max()
    return np.asarray(best / best.sum())


def _classes(x: Floats, y: Floats) -> tuple[Floats, Floats, Places, Floats]:
    """Group equal children: return x and y (classes,), the class of each child (k,), and the sizes of the classes."""
    pairs = np.empty(len(x), np.complex128)  # NumPy sorts complex numbers as pairs, and fast
    pairs.real, pairs.imag = x, y
    kinds, kind_of, size = np.unique(pairs, return_inverse=True, return_counts=True)
    return kinds.real.copy(), kinds.imag.copy(), kind_of.reshape(-1), size.astype(np.float64)


def _wins(densities: Densities, size: Floats, floor: float = -np.inf) -> tuple[Floats, float]:
    """Return the probabilities that one member of each class has the highest draw, and that all are below ``floor``."""
    k = len(size)
    if k == 1 and floor == -np.inf:
        return 1 / size, 0.0
    top = densities.top(NEVER + np.log(size * k))
    order = np.argsort(-top)
    densities, size, top = densities.take(order), size[order], top[order]
    rate = np.abs(densities.slope(top))
    won, above = np.zeros((2, k))  # so far, and P(one draw is above the panels to come)
    right, log_below = top[0], 0.0
    while right > floor and log_below > -NEVER:
        left, before = max(_left(densities, top, rate, right), floor), np.inf
        while True:
            n = int(np.searchsorted(-top, -left))
            gained, so_far, rise = _panel(densities.take(slice(n)), size[:n], above[:n], left, right)
            error = abs(size[:n] @ gained - (np.exp(log_below) - np.exp(rise)))
            if error < AGREE or before / 2 < error < ROUNDING or right - left < TOO_NARROW * abs(right):
                break
            left, before = (left + right) / 2, error
        won[:n] += gained
        above[:n], right, log_below = so_far, left, rise
    below = float(np.exp(log_below)) if right <= floor else 0.0
    total = float(size @ won) + below
    chances = np.empty(k)
    chances[order] = won / total
    return chances, below / total


def _step(slope: Floats, curvature: Floats) -> Floats:
    """Return how long a panel with this slope and curvature of ln f may be for f to be almost a polynomial."""
    return 2 * STEEPEST / (np.abs(slope) + np.sqrt(slope**2 + 4 * STEEPEST * curvature))


def _too_long(step: Floats | float, slope: Floats, curvature: Floats) -> NDArray[np.bool_]:
    """Whether f is too steep at the end of a panel of this length."""
    return np.asarray(step * (np.abs(slope) + step * curvature) > 2 * STEEPEST)


def _left(densities: Densities, top: Floats, rate: Floats, right: float) -> float:
    """Find where the panel that ends at ``right`` may start; ``rate`` (classes,) is how steep ln f is at its top."""
    there = np.float64(right)
    before = int(np.searchsorted(-top, -right, side="right"))
    started = densities.take(slice(before))
    left = right - float(min(_step(started.slope(there), started.curvature(there)).min(), densities.longest(there)))
    while right - left > TOO_NARROW * abs(right):
        there, n = np.float64(left), int(np.searchsorted(-top, -left))
        started = densities.take(slice(n))
        steep = _too_long(right - left, started.slope(there), started.curvature(there))
        steep[before:] |= rate[before:n] * (top[before:n] - left) > 2 * STEEPEST
        if not steep.any():
            break
        if steep[:before].any():
            left = (left + right) / 2
        if steep[before:].any():  # a class begins inside the panel: let the panel start there
            left = max(left, top[before:n][steep[before:]][0])
    return left


def _panel(
    densities: Densities, size: Floats, above: Floats, left: float, right: float
) -> tuple[Floats, Floats, float]:
    """Return what each class's members win in a panel, and ln P(all are below left), as the last.

    Between them, P(a draw is above left) of each class.
    """
    centre, half = (left + right) / 2, (right - left) / 2
    rule = _rule()
    d = half * rule.node
    c = np.float64(centre)
    f = np.exp(
        densities.log_density(c)[:, None]
        + densities.slope(c)[:, None] * d
        - densities.weight[:, None] * densities.bend(centre, d)
    )  # (classes, nodes)
    higher = above[:, None] + half * (f @ rule.above)
    in_all = above + half * (f @ rule.weight)
    below, left_below = 1 - higher, 1 - in_all
    low = np.flatnonzero(in_all > 1 - SMALL)
    if len(low):
        left_below[low] = _tail(densities.take(low), left)
        below[low] = left_below[low, None] + np.maximum(half * (f[low] @ (rule.weight[:, None] - rule.above)), 0.0)
    product = np.exp(size @ _log_of_rest(higher, below))  # (nodes,)
    won = half * ((f / np.maximum(below, 1e-300)) @ (rule.weight * product))
    return won, in_all, float(size @ _log_of_rest(in_all, left_below))


def _log_of_rest(p: Floats, rest: Floats) -> Floats:
    """Return ln(1 - p), where ``rest`` is 1 - p with the digits of a small number."""
    return np.where(p < 1 - SMALL, np.log1p(-np.minimum(p, 1 - SMALL)), np.log(np.maximum(rest, 1e-300)))


def _tail(densities: Densities, left: float) -> Floats:
    """Return P(a draw is below left) of each class, for small probabilities."""
    right = np.full(len(densities.mode), left)
    tail, rule = np.zeros(len(right)), _rule()
    while True:
        step = np.minimum(_step(densities.slope(right), densities.curvature(right)), densities.longest(right))
        while (long := _too_long(step, densities.slope(right - step), densities.curvature(right - step))).any():
            step = np.where(long, step / 2, step)
        half = step / 2
        f = np.exp(densities.log_density((right - half)[:, None] + half[:, None] * rule.node))
        tail += half * (f @ rule.weight)
        right = right - step
        # The rest is at most the area under the tangent of ln f, and hardly less.
        slope = densities.slope(right)
        rest = np.where(slope > 0, np.exp(densities.log_density(right)) / np.maximum(slope, 1e-300), np.inf)
        if (rest <= 1e-9 * tail).all():
            return tail + rest
