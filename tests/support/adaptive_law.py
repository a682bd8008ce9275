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
RATIOS = (1.0, 0.25, 0.0625)


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
    first, second = (np.asarray(getattr(rows, name)) for name in rows.EVIDENCE[:2])
    if gaussian:
        sd = _noise(rows, shape) if belief_of_root.sd is None else float(belief_of_root.sd)
        root = (float(rows.prior_plays[0]), float(rows.prior_total[0]))
        unit = 1.0 if belief_of_root.sd is None else root[0]
        known = {int(v): (first[v] + rows.prior_plays[v], second[v] + rows.prior_total[v]) for v in shape.node_of}
        steps, shift, below = range(-4, 6), 0.0, 2.0
    else:
        sd, unit = 0.0, 1.0
        root = (float(rows.a[0] + rows.b[0]), float(rows.a[0]))
        known = {int(v): (first[v] + second[v] + rows.a[v] + rows.b[v], first[v] + rows.a[v]) for v in shape.node_of}
        good = every = 0.0
        for v in range(shape.n_nodes):  # an arm counts as one, but less if it has had few plays
            n, t = known.get(v, (rows.a[v] + rows.b[v], rows.a[v]))
            good, every = good + t / (n + 16), every + n / (n + 16)
        rate = good / every
        level = 2.0 ** (-math.floor(0.5 - 2 * math.log2(rate)) / 2) if rate <= 0.5 else 0.5
        steps, shift, below = range(10), math.log(4 * level * (1 - level), 4), 4.0
    one = 0.0 if gaussian else 1.0
    before = {}  # what is known of clusters beforehand
    for v in set(range(1, shape.n_nodes)) - set(known):
        n, t = (rows.prior_plays[v], rows.prior_total[v]) if gaussian else (rows.a[v] + rows.b[v], rows.a[v])
        before[v] = Node(n, t, t * t / n, math.log(n), 1) if n > 0 else Node(0, 0, 0, 0, 0)
    height = [0] * shape.n_nodes
    for v in range(shape.n_nodes - 1, 0, -1):
        height[shape.parent[v]] = max(height[shape.parent[v]], height[v] + 1)
    n_arms = len(shape.node_of)
    per_arm = float((first + second)[0] if not gaussian else first[0]) / n_arms
    positions = [i for i, arm in enumerate(policy.tree.arms) if arm in set(allowed)]
    found, weights = [], []
    for ratio in RATIOS:
        for step in steps:
            at = step + shift
            log_prior = -max(0.3, 3 / n_arms) * max(at, 0) - below * (max(-at, 0) + max(at - 6, 0))
            k = [unit * max(4.0**step * ratio**h, 1e-6) for h in height]
            nodes, likelihood = _collect(shape, known, before, k, one, sd)
            belief = _spread(shape, nodes, known, k, one, root)
            if gaussian:
                apart = sum(1 / (unit * max(4.0**step * ratio**h, 1e-6)) for h in range(height[0]))
                stray = (belief[0][0] + 2 * sd * math.sqrt(apart), 1 / (0.49 * apart))
                share = 5 * per_arm / stray[1]
                chance = min(0.1, 1.0 / max(2, n_arms) * (min(share, 1) + 0.02 * share))
            else:
                stray = (level, 1 / (level * (1 - level)))
                share = per_arm / (stray[1] + 1)
                chance = min(0.1, 0.5 / max(2, n_arms) * (min(share, 1) + 1.0 * share))
            world = World(chance, per_arm, n_arms, stray, sd)
            found.append([_drawn(int(shape.node_of[i]), shape, known, k, belief, world) for i in positions])
            weights.append(likelihood + log_prior)
    weight = np.exp(np.array(weights) - special.logsumexp(weights))
    chances = np.zeros(n_arms)
    for share, parts in zip(weight, found, strict=True):
        if share > 1e-8:
            chances[positions] += share * (wins_on_a_grid(parts) if len(parts) > 1 else np.ones(1))
    return np.asarray(chances / chances.sum())


class World(NamedTuple):
    """What the draws of all arms depend on."""

    chance: float  # to be a stray
    per_arm: float  # plays
    n_arms: int
    stray: tuple[float, float]  # mean, and plays it is worth
    sd: float  # of a reward, 0 for rates


def _noise(rows: Any, shape: Any) -> float:
    """Learned: the variances within arms, and one degree of freedom for that of all rewards."""
    within, degrees, every = 0.0, 0.0, np.zeros(4)
    for v in shape.node_of:
        n, t, squares, m = (float(getattr(rows, name)[v]) for name in rows.EVIDENCE)
        t -= n * rows.centre
        every += (n, t, squares, m)
        if n > 0:
            within += squares - t * t / n
            degrees += max(m - 1, 0.0)
    n, t, squares, m = every
    return math.sqrt((within + (squares - t * t / n) / m) / (degrees + 1)) if n > 0 else 1.0


def _collect(
    shape: Any, known: Any, before: dict[int, Node], k: list[float], one: float, sd: float
) -> tuple[dict[int, Node], float]:
    nodes = {0: Node(0, 0, 0, 0, 0), **before}
    arms: dict[int, list[tuple[float, float]]] = {v: [] for v in nodes}  # of each cluster, the played ones
    likelihood = 0.0
    for v in range(shape.n_nodes - 1, -1, -1):
        if v in known:
            n, total = known[v]
            if n > 0:
                w = n * (k[v] + one) / (n + k[v])
                arms[int(shape.parent[v])].append((n, total))
        else:
            n, total, squares, logs, m = nodes[v]
            fit, several = 0.0, m > 1
            if one and arms[v]:  # not normal messages: one group of arms that fit well or not
                fit, squares, logs = _fit(arms[v], k[shape.node_of[0]], squares, logs)
                m -= len(arms[v])
            if several:
                p = (total + 0.5) / (n + 1)
                v_reward = p * (1 - p) if one else sd**2
                apart = squares - total**2 / n
                likelihood += fit + 0.5 * (logs - apart / v_reward - math.log(n) - (m - 1) * math.log(v_reward))
            if n > 0:
                w = n * (k[v] + one) / (n + k[v] + one)
        if v > 0 and n > 0:
            x, above = total / n, nodes[shape.parent[v]]
            more = Node(w, w * x, w * x * x, math.log(w), 1)
            sums: Any = (a + b for a, b in zip(above, more, strict=True))
            nodes[int(shape.parent[v])] = Node(*sums)
    return nodes, likelihood


def _fit(arms: list[tuple[float, float]], k: float, squares: float, logs: float) -> tuple[float, float, float]:
    """The beta-binomial of a cluster's arms; and the sums of squares and logs with the arms as one group."""
    weights = [n * (k + 1) / (n + k) for n, _ in arms]
    n = sum(weights)
    total = sum(w * t / plays for w, (plays, t) in zip(weights, arms, strict=True))
    mean = (total + 0.5) / (n + 1)
    odds = special.logit(mean)
    near = 0.2 * math.floor(odds / 0.2 + 0.5)
    a, b = k * special.expit(near), k * special.expit(-near)
    fit = 0.5 * n * mean * (1 - mean) * (odds - near) ** 2
    for w, (plays, t) in zip(weights, arms, strict=True):
        fit += special.betaln(a + t, b + plays - t) - special.betaln(a, b)
        fit -= special.xlogy(t, t / plays) + special.xlogy(plays - t, 1 - t / plays)
        squares, logs = squares - w * (t / plays) ** 2, logs - math.log(w)
    return fit, squares + total**2 / n, logs


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
    leaf: int, shape: Any, known: Any, k: Any, belief: Any, world: World
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """The chance to be a stray, and the mean and standard deviation of both draws."""
    (n, total), (mean, variance), around = known[leaf], belief[leaf], belief[shape.parent[leaf]][0]
    (centre, plays), sd, factor = world.stray, world.sd, 0.0
    if sd:
        if n > 0:
            own = stats.norm.logpdf(total / n, centre, sd * math.sqrt(1 / n + 1 / plays))
            factor = own - stats.norm.logpdf(total / n, around, sd * math.sqrt(1 / n + 1 / k[leaf]))
    elif n > 0:
        failures, a, b = n - total, plays * centre, plays * (1 - centre)
        best = special.xlogy(total, total / n) + special.xlogy(failures, failures / n)
        there = total * math.log(around) + failures * math.log1p(-around)
        tree = best - k[leaf] / (n + k[leaf]) * (best - there) - 0.5 * math.log1p(n / k[leaf])
        factor = special.betaln(a + total, b + failures) - special.betaln(a, b) - tree
    odds = world.chance / (1 - world.chance) * math.exp(min(factor, 50))
    both = []
    most, loose = (2.0, 0.8) if sd else (min(1 + 0.8 * math.log(max(world.n_arms, 2)), 4.5), 0.65)
    least = 1 / most + max(loose - 1 / most, 0) * n / (n + k[leaf])
    plainness = ((0.3, least), (0.3, 1 / 4)) if sd else ((0.1, least), (0.2, 1 / 2))
    own = 1 / (n + k[leaf] + (0 if sd else 1))
    variance = own + 2 * (variance - own)  # what all arms of the cluster share counts twice
    alone = (plays * centre + total) / (plays + n), 1 / (plays + n + (0 if sd else 1))
    for (m, v), (hint, least_plain) in zip(((mean, variance), alone), plainness, strict=True):
        v_drawn = v * min(1.0, max(hint * math.log1p(v * world.per_arm), least_plain))
        both.append((m, sd * math.sqrt(v_drawn)) if sd else _on_scale(m, v_drawn))
    return odds / (1 + odds), both[0], both[1]


def _on_scale(m: float, v: float) -> tuple[float, float]:
    """Mean and standard deviation of a rate on the scale z with dz/dp = p^(-2/3) + q^(-2/3) - 0.7."""
    p = min(max(m, min(v, 1) / 2), 1 - min(v, 1) / 2)
    slope, bend = p ** (-2 / 3) + (1 - p) ** (-2 / 3) - 0.7, (1 - p) * p ** (-2 / 3) - p * (1 - p) ** (-2 / 3)
    z = 3 * p ** (1 / 3) - 3 * (1 - p) ** (1 / 3) - 0.7 * (p - 0.5)
    return z - v / 3 * bend, slope * math.sqrt(v * p * (1 - p)) * (1 + 0.6 * v)


def wins_on_a_grid(parts: Any) -> Floats:
    """Sum over a fine grid: the trapezoidal rule on a smooth function that vanishes at both ends."""
    top = max(m + 9 * s for _, *both in parts for m, s in both)
    low = max(min(m - 9 * s for m, s in both) for _, *both in parts)
    t = np.linspace(low, top, 20_001)
    density, below = [], []
    for stray, *both in parts:
        f, cdf = np.zeros(len(t)), np.zeros(len(t))
        for share, (x, y) in zip((1 - stray, stray), both, strict=True):
            f, cdf = f + share * stats.norm.pdf(t, x, y), cdf + share * stats.norm.cdf(t, x, y)
        density.append(f)
        below.append(cdf)
    others = [np.prod([c for j, c in enumerate(below) if j != i], axis=0) for i in range(len(parts))]
    won = np.array([(f * rest).sum() for f, rest in zip(density, others, strict=True)])
    return np.asarray(won / won.sum())
