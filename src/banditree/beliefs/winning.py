"""Compute the exact probability that each child has the highest draw, by numerical integration.

Child i has the highest draw with probability P_i = integral of f_i times the product of the other F_j. The panels of
nodes start at the highest value that a draw can have, and end where the highest draw is practically never below;
docs/exact-probabilities.md derives them. Twin of native/beliefs/winning.hpp.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.densities import LEAST, NARROWEST, BetaLogOdds, Densities, Normal

Floats = NDArray[np.float64]

NODES = 16  # per panel
NEVER = 42.0  # e^-42 = 6e-19 is the chance that the highest draw lies beyond the panels, on either side
NEVER_MIXED = 28.0  # of mixtures, which are averaged over copies of a belief, it is e^-28 = 7e-13
STEEPEST = 12.0  # how far ln f may fall within a panel
SMALL = 1e-3  # below this, F is integrated from the left, not as 1 minus the rest, to keep its digits
AGREE = 1e-10  # a panel whose integral differs from the rise of the product by more is halved
ROUNDING = 1e-6  # if halving does not remove a difference below this, the panel's length is not its cause
FINISHED = 1e-18  # a part of a mixture with less than this left of it is over
ROUNDED = 1e-12  # a smaller difference between 1 and the shares of a class is rounding
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
    found = np.zeros(len(size))
    rest = 1.0
    if not sure.all():
        sd = np.maximum(sd, NARROWEST * -mean)[~sure]
        scale = sd.max()
        each = Normal(mean[~sure] / scale, np.maximum(sd / scale, LEAST))
        found[~sure], rest = _wins(each, size[~sure], floor / scale)
    best = sure & (mean == floor)
    if best.any():
        found[best] = rest / size[best].sum()
    return found[kind_of]


def beta_mixed_wins(a: Floats, b: Floats, c: Floats, d: Floats, share: Floats, size: Floats) -> Floats:
    """Return the probability that a member of each class has the highest draw: (classes,).

    A class has ``size`` members, each drawn from Beta(c, d) with probability ``share``, and else from Beta(a, b).

    >>> one, two = np.ones(2), np.array([2.0, 1.0])
    >>> beta_mixed_wins(one, one, two, one, np.array([1.0, 0.0]), np.array([1.0, 3.0])).round(6)
    array([0.4, 0.2])
    """
    both = BetaLogOdds(np.append(a, c), np.append(b, d))
    return _wins(both, size, share=share)[0]


def normal_mixed_wins(mean: Floats, sd: Floats, other: Floats, other_sd: Floats, share: Floats, size: Floats) -> Floats:
    """The same for draws from N(other, other_sd^2) with probability ``share``, and else from N(mean, sd^2)."""
    means, sds = np.append(mean, other), np.append(sd, other_sd)
    means = means - means.max()
    sds = np.maximum(sds, NARROWEST * -means)
    each = Normal(means / sds.max(), np.maximum(sds / sds.max(), LEAST))
    return _wins(each, size, share=share)[0]


def beta_wins_one(a: Floats, b: Floats, i: int) -> float:
    """Return the probability that the draw of child i from Beta(a, b) is the highest: ``beta_wins(a, b)[i]``."""
    return float(beta_wins(a, b)[i])


def normal_wins_one(mean: Floats, sd: Floats, i: int) -> float:
    """Return the probability that child i's draw from N(mean, sd^2) is the highest: ``normal_wins(mean, sd)[i]``."""
    return float(normal_wins(mean, sd)[i])


def ties(scores: Floats) -> Floats:
    """Return the probability of each child if the highest score wins and ties are broken evenly: (k,) from (k,).

    >>> ties(np.array([0.2, 0.7, 0.7]))
    array([0. , 0.5, 0.5])
    """
    best = scores == scores.max()
    return np.asarray(best / best.sum())


def _classes(x: Floats, y: Floats) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
    """Group equal children: return x and y (classes,), the class of each child (k,), and the sizes of the classes."""
    pairs = np.empty(len(x), np.complex128)  # NumPy sorts complex numbers as pairs, and fast
    pairs.real, pairs.imag = x, y
    kinds, kind_of, size = np.unique(pairs, return_inverse=True, return_counts=True)
    return kinds.real.copy(), kinds.imag.copy(), kind_of.reshape(-1), size.astype(np.float64)


class Parts(NamedTuple):
    """The densities that the classes are mixtures of, the one that begins highest first: (parts,) each."""

    of: NDArray[np.intp]  # class
    share: Floats  # in the class

    def take(self, order: NDArray[np.intp] | slice) -> Parts:
        return Parts(self.of[order], self.share[order])


def _wins(each: Densities, size: Floats, floor: float = -np.inf, share: Floats | None = None) -> tuple[Floats, float]:
    """Return the probabilities that one member of each class has the highest draw, and that all are below ``floor``.

    With ``share``, (classes,), there are two densities per class; the second half of ``each`` has these shares.
    """
    k = len(size)
    if k == 1 and floor == -np.inf:
        return 1 / size, 0.0
    negligible = NEVER if share is None else NEVER_MIXED
    parts = Parts(np.arange(k), np.ones(k))
    if share is not None:
        parts = Parts(np.tile(np.arange(k), 2), np.append(1 - share, share))
        some = np.flatnonzero(parts.share > 0)
        each, parts = each.take(some), parts.take(some)
    top = each.top(negligible + np.log(size * k)[parts.of])
    order = np.argsort(-top)
    each, parts, top = each.take(order), parts.take(order), top[order]
    rate = np.abs(each.slope(top))
    won = np.zeros(k)  # (classes,) so far
    above = np.zeros(len(top))  # (parts,) P(one draw is above the panels to come)
    over = np.zeros(k)  # (classes,) share of the parts that have ended: all their draws are above
    right, log_below = top[0], 0.0
    while right > floor and log_below > -negligible:
        right = min(right, float(top[0]))  # there may be a gap below the parts that have ended
        left, before = max(_left(each, top, rate, right), floor), np.inf
        while True:
            n = int(np.searchsorted(-top, -left))
            these = parts.take(slice(n))
            gained, so_far, below_left, rise = _panel(each.take(slice(n)), these, size, over, above[:n], left, right)
            error = abs(size @ gained - (np.exp(log_below) - np.exp(rise)))
            if error < AGREE or before / 2 < error < ROUNDING or right - left < TOO_NARROW * abs(right):
                break
            left, before = (left + right) / 2, error
        won += gained
        above[:n], right, log_below = so_far, left, rise
        ends = np.flatnonzero((below_left < FINISHED) & (these.share < 1))
        if len(ends):  # what is left of it need not make the panels short
            np.add.at(over, these.of[ends], these.share[ends])
            kept = np.delete(np.arange(len(top)), ends)
            each, parts, top, rate, above = each.take(kept), parts.take(kept), top[kept], rate[kept], above[kept]
    below = float(np.exp(log_below)) if right <= floor else 0.0
    total = float(size @ won) + below
    return won / total, below / total


def _step(slope: Floats, curvature: Floats) -> Floats:
    """Return how long a panel with this slope and curvature of ln f may be for f to be almost a polynomial."""
    return 2 * STEEPEST / (np.abs(slope) + np.sqrt(slope**2 + 4 * STEEPEST * curvature))


def _too_long(step: Floats | float, slope: Floats, curvature: Floats) -> NDArray[np.bool_]:
    """Whether f is too steep at the end of a panel of this length."""
    return np.asarray(step * (np.abs(slope) + step * curvature) > 2 * STEEPEST)


def _left(each: Densities, top: Floats, rate: Floats, right: float) -> float:
    """Find where the panel that ends at ``right`` may start; ``rate`` (classes,) is how steep ln f is at its top."""
    there = np.float64(right)
    before = int(np.searchsorted(-top, -right, side="right"))
    started = each.take(slice(before))
    left = right - float(min(_step(started.slope(there), started.curvature(there)).min(), each.longest(there)))
    while right - left > TOO_NARROW * abs(right):
        there, n = np.float64(left), int(np.searchsorted(-top, -left))
        started = each.take(slice(n))
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
    each: Densities, parts: Parts, size: Floats, over: Floats, above: Floats, left: float, right: float
) -> tuple[Floats, Floats, Floats, float]:
    """Return what each class's members win in a panel, and ln P(all are below left), as the last.

    Between them, P(a draw is above left) and P(a draw is below left) of each part.
    """
    centre, half = (left + right) / 2, (right - left) / 2
    rule = _rule()
    d = half * rule.node
    c = np.float64(centre)
    f = np.exp(
        each.log_density(c)[:, None] + each.slope(c)[:, None] * d - each.weight[:, None] * each.bend(centre, d)
    )  # (classes, nodes)
    higher = above[:, None] + half * (f @ rule.above)
    in_all = above + half * (f @ rule.weight)
    below, left_below = 1 - higher, 1 - in_all
    low = np.flatnonzero(in_all > 1 - SMALL)
    if len(low):
        left_below[low] = _tail(each.take(low), left)
        below[low] = left_below[low, None] + np.maximum(half * (f[low] @ (rule.weight[:, None] - rule.above)), 0.0)
    # From parts to classes. A part that has not begun yet has all its draws below.
    f, higher, below = (_mixed(parts, x, len(size)) for x in (f, higher, below))
    to_come = 1 - over - _mixed(parts, np.ones(len(above)), len(size))
    to_come[to_come < ROUNDED] = 0.0
    higher, below = higher + over[:, None], np.maximum(below + to_come[:, None], 1e-300)
    product = np.exp(size @ _log_of_rest(higher, below))  # (nodes,)
    won = half * ((f / below) @ (rule.weight * product))
    lower, upper = (_mixed(parts, x, len(size)) for x in (left_below, in_all))
    return won, in_all, left_below, float(size @ _log_of_rest(upper + over, lower + to_come))


def _mixed(parts: Parts, values: Floats, k: int) -> Floats:
    """Add the values of the parts, by their shares, to those of their classes: (parts, ...) -> (classes, ...)."""
    found = np.zeros((k, *values.shape[1:]))
    np.add.at(found, parts.of, (parts.share * values.T).T)
    return found


def _log_of_rest(p: Floats, rest: Floats) -> Floats:
    """Return ln(1 - p), where ``rest`` is 1 - p with the digits of a small number."""
    return np.where(p < 1 - SMALL, np.log1p(-np.minimum(p, 1 - SMALL)), np.log(np.maximum(rest, 1e-300)))


def _tail(each: Densities, left: float) -> Floats:
    """Return P(a draw is below left) of each class, for small probabilities."""
    right = np.full(len(each.mode), left)
    found, rule = np.zeros(len(right)), _rule()
    while True:
        step = np.minimum(_step(each.slope(right), each.curvature(right)), each.longest(right))
        while (long := _too_long(step, each.slope(right - step), each.curvature(right - step))).any():
            step = np.where(long, step / 2, step)
        half = step / 2
        f = np.exp(each.log_density((right - half)[:, None] + half[:, None] * rule.node))
        found += half * (f @ rule.weight)
        right = right - step
        # The rest is at most the area under the tangent of ln f, and hardly less.
        slope = each.slope(right)
        rest = np.where(slope > 0, np.exp(each.log_density(right)) / np.maximum(slope, 1e-300), np.inf)
        if (rest <= 1e-9 * found).all():
            return found + rest
