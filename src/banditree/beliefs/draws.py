"""Draws of arms that share a number, with at most one stray, and the probability that each draw is the highest.

What ATS and LinATS do with a belief, once a copy of it has been drawn. Twin of ``native/beliefs/draws.hpp``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.stream import Rng

Floats = NDArray[np.float64]

# The shared number z is one of these, the nodes of Gauss-Hermite quadrature, with their weights: it has the first 31
# moments of a normal number, and a probability is a sum over them, without an error.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
SHARED: Floats = _NODES
CHANCES: Floats = _WEIGHTS / _WEIGHTS.sum()
PANEL, STEPS = np.polynomial.legendre.leggauss(16)  # places and weights of an integral from -1 to 1

NEGLIGIBLE = 1e-7  # weight of copies, and of values of the shared number in them, that probabilities leave out
DEPTH = 28.0  # a race begins where some draw is higher with a chance of e^-28, and ends where all are with that chance
LOWEST = 8.0  # standard deviations below its mean where a normal ends
LENGTH = 4.0  # of a panel, in standard deviations of the narrowest normal in it
AGREE = 1e-10  # a panel whose integral differs from the rise of the product by more is halved
SHORTEST = 1e-13  # relative length of a panel that is not halved
LEAST = 1e-35  # a distribution function below this counts as this
NARROWEST = 1e-13  # least sd of a draw relative to its distance from the highest mean, which rounding limits
NEVER = 1e-300  # what remains of a probability that is too small for a double


class Draws(NamedTuple):
    """What arms, or classes of equal arms, are drawn from: (k,) each."""

    mean: Floats
    sd: Floats
    stray_mean: Floats  # the same if the arm is the stray
    stray_sd: Floats
    odds: Floats  # of an arm to be the stray, against there being none


def coupling(n_arms: int) -> tuple[float, float]:
    """Return the parts of a draw's standard deviation that all arms share, and that is each arm's own.

    The highest of n independent draws is sqrt(2 ln n) standard deviations too high. With an own part of the variance
    of 1 / (1 + ln n), it is at most sqrt(2), however many arms there are.

    >>> shared, own = coupling(1_000)
    >>> round(shared, 3), round(own, 3)
    (0.935, 0.356)
    """
    own = 1 / (1 + float(np.log(max(n_arms, 1))))
    return float(np.sqrt(1 - own)), float(np.sqrt(own))


def drawn(arms: Draws, n_arms: int, rng: Rng) -> Floats:
    """Draw each arm once: the shared number, then which arm is the stray, then each arm's own number: (k,)."""
    shared, own = coupling(n_arms)
    z = SHARED[pick(CHANCES, rng.random())]
    stray = pick(np.append(arms.odds, 1.0), rng.random())
    number = rng.standard_normal(len(arms.mean))
    draws: Floats = arms.mean + arms.sd * (shared * z + own * number)
    if stray < len(draws):
        draws[stray] = arms.stray_mean[stray] + arms.stray_sd[stray] * number[stray]
    return draws


def pick(weights: Floats, u: float) -> int:
    """Return the place that a uniform number picks by weight."""
    up_to = np.cumsum(weights)
    return min(int(np.searchsorted(up_to, u * up_to[-1], side="right")), len(weights) - 1)


def coupled_wins(arms: Draws, size: Floats, n_arms: int, weight: float = 1.0) -> Floats:
    """Return the probability that a member of each class has the highest draw: (classes,), ``size @ wins`` is 1.

    ``weight`` is that of the copy of the belief: the less, the more values of the shared number are left out.

    >>> two = Draws(np.zeros(2), np.ones(2), np.array([9.0, 0.0]), np.array([0.1, 0.1]), np.array([1.0, 0.0]))
    >>> coupled_wins(two, np.ones(2), n_arms=2).round(6)  # half of the time, the first is a stray
    array([0.75, 0.25])
    """
    shared, own = coupling(n_arms)
    wins = sum(
        chance * race(arms._replace(mean=arms.mean + shared * z * arms.sd, sd=own * arms.sd), size)
        for z, chance in zip(SHARED, CHANCES, strict=True)
        if chance * weight > NEGLIGIBLE
    )
    return np.asarray(wins / (size @ wins))


def race(arms: Draws, size: Floats) -> Floats:
    """Return the same where the draws are independent, but for the odds of which one is the stray.

    With F and f the distribution function and the density of an arm, G and g those of the arm as a stray, and o its
    odds, an arm's draw is the highest at x with density

        product of all F  (f / F (1 + sum of o G / F over the other arms) + o g / F)  /  (1 + sum of o),

    which is integrated from the highest draw down, panel by panel.
    """
    mean, sd = _scaled(arms)  # (2 classes,): as siblings, then as strays
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
            z = (x - mean[:, None]) / sd[:, None]  # (2 classes, points)
            below, density = _normal(z)
            density /= sd[:, None]
            F, f, odds = np.maximum(below[:k], LEAST), density[:k], arms.odds[:, None]
            as_stray = odds * below[k:] / F
            some_stray = 1 + size @ as_stray  # (points,)
            all_below = np.exp(size @ np.log(F))
            each = all_below * (f / F * (some_stray - as_stray) + odds * density[k:] / F)  # (classes, points)
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


TAIL = (  # of the normal distribution, see `_normal`
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


def _normal(z: Floats) -> tuple[Floats, Floats]:
    """Return distribution function and density of the normal distribution, to 11 digits.

    The tail is e^(-z^2 / 2) times a polynomial of 1 / (z + 4.4), fitted at Chebyshev's nodes for z up to 9.
    """
    far = np.abs(z)
    bell = np.exp(-0.5 * np.minimum(far, 37.0) ** 2)
    tail = bell * np.polynomial.polynomial.polyval(
        1.9777777777777779 - 13.102222222222224 / (far + 4.4), np.array(TAIL)
    )
    return np.where(z < 0, tail, 1 - tail), bell / np.sqrt(2 * np.pi)
