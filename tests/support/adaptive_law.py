"""How likely ATS is to choose each arm, from its evidence and docs/adaptive.md alone: loops and a plain quadrature.

Nothing here calls what it is held against, and the constants are written out once more.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

import banditree as bt

Floats = NDArray[np.float64]
COPIES = [(4.0**i, ratio, -0.3 * i) for ratio in (1.0, 0.5, 0.25, 0.0625) for i in range(7)]


class Node(NamedTuple):
    """One node of one copy: what its children told it."""

    n: float
    total: float
    squares: float
    logs: float
    senders: int


def arms_law(policy: bt.Policy, allowed: Collection[Any]) -> Floats:
    """The probability of each arm without exploring: (arms,)."""
    shape = policy.tree.shape
    rows: Any = policy._state.rows
    belief_of_root: Any = policy.belief
    gaussian = isinstance(belief_of_root, bt.Gaussian)
    first, second = (np.asarray(getattr(rows, name)) * _faded(float(rows.scale[0])) for name in rows.EVIDENCE)
    if gaussian:
        sd = float(belief_of_root.sd)
        unit = float(rows.prior_plays[0])
        root = (unit, float(rows.prior_total[0]))
        known = {int(v): (first[v] + rows.prior_plays[v], second[v] + rows.prior_total[v]) for v in shape.node_of}
    else:
        sd, unit = 0.0, 1.0
        root = (float(rows.a[0] + rows.b[0]), float(rows.a[0]))
        known = {int(v): (first[v] + second[v] + rows.a[v] + rows.b[v], first[v] + rows.a[v]) for v in shape.node_of}
    one = 0.0 if gaussian else 1.0
    before = {}  # what is known of clusters beforehand
    for v in set(range(1, shape.n_nodes)) - set(known):
        n, t = (rows.prior_plays[v], rows.prior_total[v]) if gaussian else (rows.a[v] + rows.b[v], rows.a[v])
        before[v] = Node(n, t, t * t / n, math.log(n), 1) if n > 0 else Node(0, 0, 0, 0, 0)
    height = [0] * shape.n_nodes
    for v in range(shape.n_nodes - 1, 0, -1):
        height[shape.parent[v]] = max(height[shape.parent[v]], height[v] + 1)
    plays = float((first + second)[0] if not gaussian else first[0])
    n_arms = len(shape.node_of)
    chance = min(0.1, 0.5 / max(2, n_arms) * (1 + plays / (10 * n_arms)))
    length = math.log1p(float(first[0]) / n_arms)  # by the rewards per arm, or the plays if they are normal
    sharp = [min(most, length / (length - math.log(25)) if length > math.log(25) else most) for most in (4.0, 3.0)]
    positions = [i for i, arm in enumerate(policy.tree.arms) if arm in set(allowed)]
    found, weights = [], []
    for k_arm, ratio, log_prior in COPIES:
        k = [unit * max(k_arm * ratio**h, 1e-6) for h in height]
        nodes, likelihood = _collect(shape, known, before, k, one, sd)
        belief = _spread(shape, nodes, known, k, one, root)
        parts = [
            _drawn(int(shape.node_of[i]), shape, known, k, belief, chance, sharp, root, sd, unit) for i in positions
        ]
        weights.append(likelihood + log_prior)
        found.append(parts)
    weight = np.exp(np.array(weights) - special.logsumexp(weights))
    chances = np.zeros(n_arms)
    for share, parts in zip(weight, found, strict=True):
        if share > 1e-8:
            chances[positions] += share * (wins_on_a_grid(parts, gaussian) if len(parts) > 1 else np.ones(1))
    return np.asarray(chances / chances.sum())


def _faded(scale: float) -> float:
    return 0.99 ** math.floor(math.log(scale) / math.log(0.99) + 1e-9)


def _collect(
    shape: Any, known: Any, before: dict[int, Node], k: list[float], one: float, sd: float
) -> tuple[dict[int, Node], float]:
    nodes = {0: Node(0, 0, 0, 0, 0), **before}
    likelihood = 0.0
    for v in range(shape.n_nodes - 1, -1, -1):
        if v in known:
            n, total = known[v]
            if n > 0:
                w = n * (k[v] + one) / (n + k[v])
        else:
            n, total, squares, logs, m = nodes[v]
            if m > 1:
                p = (total + 0.5) / (n + 1)
                v_reward = p * (1 - p) if one else sd**2
                apart = squares - total**2 / n
                likelihood += 0.5 * (logs - apart / v_reward - math.log(n) - (m - 1) * math.log(v_reward))
            if n > 0:
                w = n * (k[v] + one) / (n + k[v] + one)
        if v > 0 and n > 0:
            x, above = total / n, nodes[shape.parent[v]]
            more = Node(w, w * x, w * x * x, math.log(w), 1)
            sums: Any = (a + b for a, b in zip(above, more, strict=True))
            nodes[int(shape.parent[v])] = Node(*sums)
    return nodes, likelihood


def _spread(shape: Any, nodes: Any, known: Any, k: list[float], one: float, root: Any) -> list[tuple[float, float]]:
    belief = []
    for v in range(shape.n_nodes):
        n, total = known[v] if v in known else nodes[v][:2]
        if v == 0:
            belief.append(((root[1] + total) / (root[0] + n), 1 / (root[0] + n + one)))
            continue
        mean, variance = belief[shape.parent[v]]
        share = k[v] / (k[v] + n)
        belief.append(((k[v] * mean + total) / (k[v] + n), 1 / (k[v] + n + one) + share**2 * variance))
    return belief


def _drawn(
    leaf: int, shape: Any, known: Any, k: Any, belief: Any, chance: float, sharp: Any, root: Any, sd: float, unit: float
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """The chance to be a stray, and the parameters of both draws."""
    (n, total), (mean, variance), around = known[leaf], belief[leaf], belief[shape.parent[leaf]][0]
    factor = 0.0
    if sd:
        if n > 0:
            own = stats.norm.logpdf(total / n, root[1] / unit, sd * math.sqrt(1 / n + 1 / unit))
            factor = own - stats.norm.logpdf(total / n, around, sd * math.sqrt(1 / n + 1 / k[leaf]))
        follows = (mean, sd * math.sqrt(variance / sharp[0]))
        alone = ((root[1] + total) / (unit + n), sd / math.sqrt(sharp[1] * (unit + n)))
    else:
        failures = n - total
        if n > 0:
            best = special.xlogy(total, total / n) + special.xlogy(failures, failures / n)
            there = total * math.log(around) + failures * math.log1p(-around)
            tree = best - k[leaf] / (n + k[leaf]) * (best - there) - 0.5 * math.log1p(n / k[leaf])
            factor = special.betaln(2 + total, 2 + failures) - special.betaln(2, 2) - tree
        strength = sharp[0] * max(1 / variance - 1, 0.01)
        follows = (strength * mean, strength * (1 - mean))
        alone = (sharp[1] * (2 + total), sharp[1] * (2 + failures))
    odds = chance / (1 - chance) * math.exp(min(factor, 50))
    return odds / (1 + odds), follows, alone


def wins_on_a_grid(parts: Any, gaussian: bool) -> Floats:
    """Sum over a fine grid: the trapezoidal rule on a smooth function that vanishes at both ends."""
    if gaussian:
        ends = [(m + side * 12 * s) for _, *both in parts for m, s in both for side in (-1, 1)]
        t = np.linspace(min(ends), max(ends), 6001)
        step = np.full(len(t), t[1] - t[0])
    else:
        u = np.linspace(-13, 13, 6001)
        t, step = 0.5 * np.sinh(u), 0.5 * np.cosh(u) * (u[1] - u[0])
    density, below = [], []
    for stray, follows, alone in parts:
        f, cdf = np.zeros(len(t)), np.zeros(len(t))
        for share, (x, y) in ((1 - stray, follows), (stray, alone)):
            if gaussian:
                f, cdf = f + share * stats.norm.pdf(t, x, y), cdf + share * stats.norm.cdf(t, x, y)
            else:
                log_f = x * special.log_expit(t) + y * special.log_expit(-t) - special.betaln(x, y)
                f, cdf = f + share * np.exp(log_f), cdf + share * special.betainc(x, y, special.expit(t))
        density.append(f)
        below.append(cdf)
    others = [np.prod([c for j, c in enumerate(below) if j != i], axis=0) for i in range(len(parts))]
    won = np.array([(f * rest * step).sum() for f, rest in zip(density, others, strict=True)])
    return np.asarray(won / won.sum())
