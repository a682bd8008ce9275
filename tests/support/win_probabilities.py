"""Who wins when every child of a node draws once from its Beta: by numerical integration, and statistics against it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Pair = tuple[float, float]

P_FLOOR = 1e-6 / 100  # some hundred p-values in all: a right sampler fails somewhere with probability 1e-6
ENOUGH = 10.0  # counts expected in a cell of a chi-square


def log_cdf(a: float, b: float, t: Floats) -> Floats:
    """ln P(ln(theta / (1 - theta)) <= t), from the nearer side: F itself, or 1 - F where that is the small one."""
    above = special.betainc(b, a, special.expit(-t))
    with np.errstate(divide="ignore"):
        below: Floats = np.log(special.betainc(a, b, special.expit(t)))
    return np.where(above < 0.5, np.log1p(-np.minimum(above, 0.5)), below)


def log_pdf(a: float, b: float, t: Floats) -> Floats:
    """ln of the density of the log odds."""
    value: Floats = a * special.log_expit(t) + b * special.log_expit(-t) - special.betaln(a, b)
    return value


def win_probabilities(pairs: Sequence[Pair]) -> Floats:
    """P(child i has the highest of one draw each): (k,).

    The integral of f_i times the product of the other F_j. On the log odds t all densities are smooth and decay at both
    ends, where the trapezoid rule converges faster than any power of the step; children with the same pair share one.
    """
    kinds, kind_of, size = np.unique(np.array(pairs, float), axis=0, return_inverse=True, return_counts=True)
    kind_of = kind_of.reshape(-1)
    coarse = np.linspace(-45, 45, 2001)
    log_below = sum(n * log_cdf(a, b, coarse) for (a, b), n in zip(kinds, size, strict=True))
    inside = np.flatnonzero((log_below > -45) & (log_below < -1e-18))
    low, high = coarse[max(inside[0] - 1, 0)], coarse[min(inside[-1] + 1, 2000)]
    # The log odds of Beta(a, b) have the variance psi'(a) + psi'(b).
    sharpest = min(np.sqrt(special.polygamma(1, a) + special.polygamma(1, b)) for a, b in kinds)
    t = np.linspace(low, high, int((high - low) / sharpest * 6) + 1000)
    log_cdfs = [log_cdf(a, b, t) for a, b in kinds]
    log_below = sum(n * each for n, each in zip(size, log_cdfs, strict=True))
    step = t[1] - t[0]
    each = np.empty(len(kinds))
    for i, (a, b) in enumerate(kinds):
        with np.errstate(invalid="ignore"):
            log_others = np.where(np.isneginf(log_below), -np.inf, log_below - log_cdfs[i])
        each[i] = np.exp(log_pdf(a, b, t) + log_others).sum() * step
    total = float((each * size).sum())
    assert abs(total - 1) < 1e-6, f"the integrals add up to {total}"
    found: Floats = each[kind_of] / total
    return found


def chi_square(counts: NDArray[np.int64], probability: Floats) -> float:
    """P-value of counts against probabilities; cells where little is expected are put together."""
    n = counts.sum()
    order = np.argsort(-probability)
    expected, seen = n * probability[order], counts[order].astype(float)
    # From `cut` on, everything is one cell; it has enough, or the last good cell joins it.
    cut = int((expected >= ENOUGH).sum())
    if cut < len(order) and expected[cut:].sum() < ENOUGH:
        cut -= 1
    if cut < len(order):
        expected = np.append(expected[:cut], expected[cut:].sum())
        seen = np.append(seen[:cut], seen[cut:].sum())
    if len(expected) < 2:
        return 1.0
    statistic = ((seen - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def p_values(picks: NDArray[np.int32], pairs: Sequence[Pair]) -> dict[str, float]:
    """How well picks agree with the law of the argmax: by child, by pair, and each with those shortly before it."""
    probability = win_probabilities(pairs)
    counts = np.bincount(picks, minlength=len(pairs))
    kind_of = np.unique(np.array(pairs, float), axis=0, return_inverse=True)[1].reshape(-1)
    by_kind = np.zeros(kind_of.max() + 1)
    np.add.at(by_kind, kind_of, probability)
    found = {
        "children": chi_square(counts, probability),
        "pairs": chi_square(np.bincount(kind_of, counts).astype(np.int64), by_kind),
    }
    # Picks are independent, so that two are equal with probability q = sum p^2; indicators that share a pick correlate.
    q, cube = (probability**2).sum(), (probability**3).sum()
    for lag in (1, 2, 3, 4, 5):
        same = int((picks[lag:] == picks[:-lag]).sum())
        n = len(picks) - lag
        variance = n * (q * (1 - q) + 2 * (cube - q**2))
        if min(n * q, n * (1 - q)) > 100:
            found[f"lag {lag}"] = float(2 * stats.norm.sf(abs(same - n * q) / np.sqrt(variance)))
    return found
