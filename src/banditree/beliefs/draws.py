"""Draws of arms that share a number, with at most one stray, and the probability that each draw is the highest.

What ATS and LinATS do with a belief, once a copy of it has been drawn. Twin of ``native/beliefs/draws.hpp``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditree.base.arrays import Floats
from banditree.stream import Rng

# The shared number z is one of these, the nodes of Gauss-Hermite quadrature, with their weights: it has the first 19
# moments of a normal number, and a probability is a sum over them, without an error.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(10)
NUMBERS: Floats = np.ascontiguousarray(_NODES)
CHANCES: Floats = np.ascontiguousarray(_WEIGHTS / _WEIGHTS.sum())
PANEL, STEPS = np.polynomial.legendre.leggauss(16)  # places and weights of an integral from -1 to 1

NEGLIGIBLE = 2e-8  # weight of a copy and a shared number together that probabilities leave out
DEPTH = 28.0  # a race begins where some draw is higher with a chance of e^-28, and ends where all are lower with it
LOWEST = 8.0  # standard deviations below its mean where a normal ends
LENGTH = 4.0  # of a panel, in standard deviations of the narrowest normal in it
AGREE = 1e-10  # a panel whose integral differs from the rise of the product by more is halved
SHORTEST = 1e-13  # relative length of a panel that is not halved
LEAST = 1e-35  # a distribution function below this counts as this
NARROWEST = 1e-13  # least sd of a draw relative to its distance from the highest mean, which rounding limits
NEVER = 1e-300  # what remains of a probability that is too small for a double


class Coupling(NamedTuple):
    """What the draws of one decision have in common."""

    shared: float  # the part of each standard deviation that comes from one number that all arms share
    own: float  # and from a number of the arm's own; their squares sum to 1
    odds: float  # of an arm to be the stray, before its own rewards are considered, against there being none
    numbers: Floats  # values of the shared number, (values,)
    chances: Floats  # of each of them


def coupling(n_arms: int, strays: float) -> Coupling:
    """Return how the draws of so many arms are coupled.

    The highest of n independent draws is about sqrt(2 ln n) standard deviations too high. With an own part of the
    variance of 1 / (1 + 2 ln n), it is at most one, however many arms there are.

    >>> coupling(1_000, strays=4)[:3]
    (0.96..., 0.25..., 0.004)
    """
    own = 1 / (1 + 2 * float(np.log(max(n_arms, 1))))
    return Coupling(float(np.sqrt(1 - own)), float(np.sqrt(own)), strays / max(n_arms, 1), NUMBERS, CHANCES)


INDEPENDENT = Coupling(0.0, 1.0, 0.0, np.zeros(1), np.ones(1))  # draws that share nothing, and no stray


class Draws(NamedTuple):
    """What arms, or classes of equal arms, are drawn from: (k,) each."""

    mean: Floats
    sd: Floats
    stray_mean: Floats  # of the further draw of the arm, if it is the stray
    stray_sd: Floats
    odds: Floats  # that it is, against there being none


def drawn(arms: Draws, coupled: Coupling, rng: Rng) -> Floats:
    """Draw each arm once: the shared number, then the stray, then each arm's own number, then the stray's: (k,).

    The stray draws twice, the second time as if it did not follow its cluster, and keeps the higher of the two.
    """
    z = coupled.numbers[pick(coupled.chances, rng.random())]
    stray = pick(np.append(arms.odds, 1.0), rng.random())
    own = rng.standard_normal(len(arms.mean))
    draws: Floats = (arms.mean + arms.sd * (coupled.shared * z)) + (arms.sd * coupled.own) * own
    if stray < len(draws):
        further = arms.stray_mean[stray] + arms.stray_sd[stray] * rng.standard_normal()
        draws[stray] = max(draws[stray], further)
    return draws


def pick(weights: Floats, u: float) -> int:
    """Return the place that a uniform number picks by weight."""
    up_to = np.cumsum(weights)
    return min(int(np.searchsorted(up_to, u * up_to[-1], side="right")), len(weights) - 1)


def coupled_wins(arms: Draws, size: Floats, coupled: Coupling, weight: float = 1.0) -> Floats:
    """Return the probability that a member of each class has the highest draw: (classes,), ``size @ wins`` is 1.

    ``weight`` is that of the copy of the belief: the smaller it is, the more values of the shared number are left out.

    >>> two = Draws(np.zeros(2), np.ones(2), np.array([9.0, 0.0]), np.array([0.1, 0.1]), np.array([1.0, 0.0]))
    >>> coupled_wins(two, np.ones(2), coupling(2, strays=1)).round(6)  # half of the time, the first is a stray
    array([0.75, 0.25])
    """
    wins = np.zeros(len(size))
    for z, chance in zip(coupled.numbers, coupled.chances, strict=True):
        if chance * weight > NEGLIGIBLE:
            shifted = arms._replace(mean=arms.mean + coupled.shared * z * arms.sd, sd=coupled.own * arms.sd)
            wins += chance * race(shifted, size)
    total = float(size @ wins)
    return wins / total if total > 0 else wins


def race(arms: Draws, size: Floats) -> Floats:
    """Return the same, given the shared number: draws are independent then, but for the one arm that may draw again.

    With F and f the distribution function and the density of an arm, G and g those of its further draw, and o its
    odds, an arm's draw is the highest at x with density

        product of all F  (f / F (1 + sum of all o G) + o g)  /  (1 + sum of all o),

    which is integrated from the highest draw down, panel by panel.
    """
    mean, sd = _scaled(arms)  # (2 classes,): of the arms, then of their further draws
    k = len(size)
    often = np.maximum(DEPTH + np.log(np.append(size, size * arms.odds + NEVER)), 0.0)
    top, bottom = mean + sd * np.sqrt(2 * often), mean - LOWEST * sd
    all_draws = 1 + float(size @ arms.odds)
    wins, right, above = np.zeros(k), float(top.max()), all_draws
    while above > all_draws * np.exp(-DEPTH) and (bottom < right).any():
        left = float(np.minimum(top, right - LENGTH * sd)[bottom < right].max())
        while True:
            half = (right - left) / 2
            x = np.concatenate([[left], left + half * (1 + PANEL)])  # the left end, then the nodes
            below, density = normal_below((x - mean[:, None]) / sd[:, None])  # (2 classes, points)
            density /= sd[:, None]
            F, f, odds = np.maximum(below[:k], LEAST), density[:k], arms.odds[:, None]
            some_stray = 1 + size @ (odds * below[k:])  # (points,)
            all_below = np.exp(size @ np.log(F))
            each = all_below * (f / F * some_stray + odds * density[k:])  # (classes, points)
            won = half * (each[:, 1:] @ STEPS)
            below_left = float(all_below[0] * some_stray[0])
            if abs(size @ won - (above - below_left)) < AGREE * all_draws or half < SHORTEST * abs(right):
                break
            left += half
        wins, right, above = wins + won, left, below_left
    return np.maximum(wins / (size @ wins), NEVER)


def _scaled(arms: Draws) -> tuple[Floats, Floats]:
    """Return means from the highest and standard deviations, in units of the widest, that are safe to compute with."""
    mean, sd = np.append(arms.mean, arms.stray_mean), np.append(arms.sd, arms.stray_sd)
    mean = mean - mean.max()  # differences of close doubles are exact
    sd = np.maximum(sd, NARROWEST * -mean)
    return mean / sd.max(), np.maximum(sd / sd.max(), 1e-100)


TAIL = (  # of the normal distribution, see `normal_below`
    0.15500843725507657,
    -0.1811854878707453,
    0.10287567265287303,
    -0.04416657258576955,
    0.01382220698446341,
    -0.0028082045876282173,
    0.00020765586068733805,
    6.0906665119211195e-05,
    -1.5294325061357564e-05,
    -1.2865039609760668e-06,
    7.484979671897012e-07,
    3.93190908494841e-08,
    -3.249096276163671e-08,
)


def normal_below(z: Floats) -> tuple[Floats, Floats]:
    """Return distribution function and density of the normal distribution, to 11 digits.

    The tail is e^(-z^2 / 2) times a polynomial of 1 / (z + 4.4), fitted at Chebyshev's nodes for z up to 9.
    """
    far = np.abs(z)
    bell = np.exp(-0.5 * np.minimum(far, 37.0) ** 2)
    tail = bell * np.polynomial.polynomial.polyval(
        1.9777777777777779 - 13.102222222222224 / (far + 4.4), np.array(TAIL)
    )
    return np.where(z < 0, tail, 1 - tail), bell / np.sqrt(2 * np.pi)
