"""Winning probabilities by SciPy's distribution functions and a plain, very fine quadrature: slow, and independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
NODE, WEIGHT = np.polynomial.legendre.leggauss(24)
NEARLY = 1 - 1e-7  # up to here 1 less a probability keeps digits enough
FAR = 300.0  # log odds: beyond, e^-|t| is nothing beside 1


def beta_log_pdf(a: float, b: float, t: Floats) -> Floats:
    """ln of the density of the log odds."""
    return np.asarray(a * special.log_expit(t) + b * special.log_expit(-t) - special.betaln(a, b))


def beta_below(a: float, b: float, t: Floats) -> Floats:
    """P(log odds <= t) where that is small, relatively exact; the density is a e^(a t) / (a B) far on the left."""
    with np.errstate(over="ignore", under="ignore"):
        left = np.exp(np.minimum(a * t - np.log(a) - special.betaln(a, b), 0))
        return np.asarray(np.where(t < -FAR, left, special.betainc(a, b, special.expit(t))))


def beta_log_cdf(a: float, b: float, t: Floats) -> Floats:
    """ln P(log odds <= t): from P(> t) where t > 0, because e^-t keeps its digits there, unless that is nearly 1."""
    above = np.where(t > 0, beta_below(b, a, -t), 1.0)
    with np.errstate(divide="ignore"):
        return np.where(above < NEARLY, np.log1p(-np.minimum(above, NEARLY)), np.log(beta_below(a, b, t)))


def beta_places(a: float, b: float) -> Floats:
    """Borders between which the density of the log odds is smooth, far into both tails."""
    sd = np.sqrt(special.polygamma(1, a) + special.polygamma(1, b))
    mean = special.digamma(a) - special.digamma(b)
    near = mean + sd * np.linspace(-16, 16, 65)
    tails = np.arange(1, 33) * 1.5
    inner = np.linspace(-48, 48, 65) if min(a, b) < 3 else np.empty(0)
    return np.concatenate((near, mean - tails / a, mean + tails / b, inner))


def normal_log_pdf(mean: float, sd: float, t: Floats) -> Floats:
    return np.asarray(-0.5 * ((t - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi))


def normal_log_cdf(mean: float, sd: float, t: Floats) -> Floats:
    return np.asarray(special.log_ndtr((t - mean) / sd))


def normal_places(mean: float, sd: float) -> Floats:
    return mean + sd * np.linspace(-16, 16, 65)


Family = tuple[
    Callable[[float, float, Floats], Floats],
    Callable[[float, float, Floats], Floats],
    Callable[[float, float], Floats],
]
BETA: Family = beta_log_pdf, beta_log_cdf, beta_places
NORMAL: Family = normal_log_pdf, normal_log_cdf, normal_places


def by_quadrature(x: Floats, y: Floats, family: Family = BETA) -> Floats:
    """P(child i has the highest of one draw each): (k,), each from an integral of its own, not made to add up to 1."""
    log_pdf, log_cdf, places = family
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    kinds = sorted(set(pairs))
    counts = Counter(pairs)
    size = np.array([counts[kind] for kind in kinds], float)
    borders = np.unique(np.concatenate([places(*kind) for kind in kinds]))
    half = np.diff(borders) / 2
    # Only where the highest draw can be.
    log_all = sum(n * log_cdf(*kind, borders) for n, kind in zip(size, kinds, strict=True))
    inside = (log_all[1:] > -60) & (log_all[:-1] < -1e-22)
    centre, half = (borders[:-1] + half)[inside], half[inside]
    t = (centre[:, None] + half[:, None] * NODE).reshape(-1)
    w = (half[:, None] * WEIGHT).reshape(-1)
    logs = [log_cdf(*kind, t) for kind in kinds]
    log_all = sum(n * each for n, each in zip(size, logs, strict=True))
    won = {}
    for kind, log in zip(kinds, logs, strict=True):
        with np.errstate(invalid="ignore"):
            others = np.where(np.isneginf(log_all), -np.inf, log_all - log)
        won[kind] = float(w @ np.exp(log_pdf(*kind, t) + others))
    return np.array([won[pair] for pair in pairs])
