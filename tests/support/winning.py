"""Winning probabilities without the package: by SciPy, by fine quadrature; and the native shortcut in NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

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


# ---------------------------------------------------------------- by quadrature: slow, and independent


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


# ---------------------------------------------------------------- the native shortcut, to plant errors that tests catch


BIASES = ("no acceptance", "first member", "bar not raised", "leader twice", "one uniform twice", "gap too long")


def picks(pairs: Sequence[Pair], m: int, rng: np.random.Generator, bias: str = "") -> NDArray[np.int32]:
    """m choices among children with these posteriors, child 0 as the leader; ``bias`` names the error that is made."""
    a0, b0 = pairs[0]
    bar: Floats = rng.beta(a0, b0, m)  # (m,) the highest draw so far
    winner = np.zeros(m, np.int32)
    classes: dict[Pair, list[int]] = {}
    for child, pair in enumerate(pairs):
        classes.setdefault(pair, []).append(child)
    for (a, b), members in classes.items():
        others = members if bias == "leader twice" else [child for child in members if child != 0]
        before, won = bar.copy(), np.zeros(m, bool)
        for _ in others[bias == "gap too long" :]:
            x = above(a, b, before if bias == "bar not raised" else bar, rng, bias)
            higher = x > (before if bias == "bar not raised" else bar)
            bar[higher], won[higher] = x[higher], True
        if others:
            inside = np.zeros(m, int) if bias == "first member" else rng.integers(len(others), size=m)
            winner = np.where(won, np.array(others, np.int32)[inside], winner)
    return winner


def above(a: float, b: float, bar: Floats, rng: np.random.Generator, bias: str) -> Floats:
    """A draw from Beta(a, b) where it is above the bar, and 0 where it is not: (m,)."""
    if b == 1:
        draw: Floats = rng.random(len(bar)) ** (1 / a)
        return draw
    slope = (a - 1) / bar - (b - 1) / (1 - bar)
    down = np.minimum(slope, -1e-9)
    reach = -np.expm1(down * (1 - bar))
    log_density = special.xlogy(a - 1, bar) + special.xlog1py(b - 1, -bar) - special.betaln(a, b)
    p = np.exp(log_density) / -down * reach
    x = bar + np.log1p(-rng.random(len(bar)) * reach) / down
    log_ratio = special.xlogy(a - 1, x / bar) + special.xlogy(b - 1, (1 - x) / (1 - bar)) - down * (x - bar)
    screen, level = rng.random((2, len(bar)))
    if bias == "one uniform twice":
        level = screen
    accepted = (level < np.exp(log_ratio)) | (bias == "no acceptance")
    shown = np.where((screen < p) & accepted, x, 0.0)
    return np.where((slope < 0) & (p < 1), shown, rng.beta(a, b, len(bar)))
