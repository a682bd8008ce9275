"""How likely LinATS is to choose each arm, from its evidence and docs/adaptive.md alone, by dense algebra.

All coefficients of a tree are one normal vector here, with one covariance matrix. Nothing calls what it is held
against, and the constants are written out once more.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

import banditree as bt
from tests.support.adaptive_law import wins_on_a_grid

Floats = NDArray[np.float64]
COPIES = [
    (2.0 ** (2 - i), factor, share, -0.3 * i)
    for factor in (0.1, 1.0, 3.0)
    for i in range(8)
    for share in (0.02, 0.3, 1.0, 8.0)
]


class Evidence(NamedTuple):
    """What was seen, in standardised features, and rewards measured from the origin."""

    gram: dict[int, Floats]  # of each leaf
    moment: dict[int, Floats]
    squares: float
    within: float
    draws: float
    plays: float
    z: Floats  # the context
    origin: float


class Posterior(NamedTuple):
    """What one copy believes."""

    log_weight: float
    noise: float  # variance
    mean: Floats  # (nodes, p)
    covariance: Floats  # (nodes, nodes, p, p), in units of the noise


def arms_law(policy: bt.Policy, allowed: Collection[Any], context: Any) -> Floats:
    """The probability of each arm without exploring: (arms,)."""
    shape = policy.tree.shape
    evidence = standardised(policy, np.asarray(context, float))
    n_arms = len(shape.node_of)
    chance = _stray_chance(evidence, n_arms)
    positions = [i for i, arm in enumerate(policy.tree.arms) if arm in set(allowed)]
    length = math.log1p(evidence.plays / n_arms)
    parts, weights = [], []
    for copy in COPIES:
        posterior = widened(policy, evidence, copy, dense(policy, evidence, copy))
        weights.append(posterior.log_weight)
        most = 1 + (0.4 if copy[1] == 0.1 else 1.0) * 1.1 * math.log(n_arms)
        sharp = min(most, length / (length - math.log(10)) if length > math.log(10) else most)
        leaves = [int(shape.node_of[i]) for i in positions]
        parts.append([_drawn(leaf, shape, evidence, posterior, copy, chance, sharp, 1.5) for leaf in leaves])
    weight = np.exp(np.array(weights) - special.logsumexp(weights))
    chances = np.zeros(n_arms)
    for share, part in zip(weight, parts, strict=True):
        if share > 1e-8:
            chances[positions] += share * (wins_on_a_grid(part) if len(part) > 1 else np.ones(1))
    return np.asarray(chances / chances.sum())


def moments_law(policy: bt.Policy, context: Any) -> tuple[Floats, Floats]:
    """The mean and standard deviation of each node's expected reward, as intervals have them: (nodes,) each."""
    shape = policy.tree.shape
    evidence = standardised(policy, np.asarray(context, float))
    chance, z = _stray_chance(evidence, len(shape.node_of)), evidence.z
    posteriors = [dense(policy, evidence, copy) for copy in COPIES]
    logs = np.array([posterior.log_weight for posterior in posteriors])
    weight = dict(zip(COPIES, np.exp(logs - special.logsumexp(logs)), strict=True))
    wider = dict.fromkeys(COPIES, 0.0)
    for (tau, factor, share, log), part in weight.items():  # intervals: a prior that falls by 1 with each halving
        for step, portion in ((-1, 0.25), (0, 0.5), (1, 0.25)):
            to = (tau / 2.0**step, factor, share, log - 0.3 * step)
            to = next((copy for copy in COPIES if np.allclose(copy, to)), (tau, factor, share, log))
            wider[to] += portion * part * tau ** (0.7 / math.log(2))
    parts = np.empty((len(COPIES), shape.n_nodes, 5))
    for i, (copy, posterior) in enumerate(zip(COPIES, posteriors, strict=True)):
        for node in range(shape.n_nodes):
            if shape.content[node] >= 0:
                stray, follows, alone = _drawn(node, shape, evidence, posterior, copy, chance, 1.0)
            else:
                sd = math.sqrt(posterior.noise * (z @ posterior.covariance[node, node] @ z))
                stray, follows = 0.0, (z @ posterior.mean[node], sd)
                alone = follows
            parts[i, node] = stray, *follows, *alone
    strays, means, sds, stray_means, stray_sds = parts.transpose(2, 0, 1)
    centre = np.array(list(weight.values())) @ ((1 - strays) * means + strays * stray_means)
    squares = (1 - strays) * (sds**2 + (means - centre) ** 2) + strays * (stray_sds**2 + (stray_means - centre) ** 2)
    widened = np.array(list(wider.values()))
    return centre + evidence.origin, np.sqrt(widened @ squares / widened.sum())


def _stray_chance(evidence: Evidence, n_arms: int) -> float:
    return float(min(0.1, 1 / max(2, n_arms) * (1 + evidence.plays / (10 * n_arms))))


def standardised(policy: bt.Policy, context: Floats) -> Evidence:
    rows: Any = policy._state.rows
    d = len(context)
    raw = {}
    for node in range(policy.tree.shape.n_nodes):
        gram = np.zeros((d + 1, d + 1))
        gram[np.tril_indices(d + 1)] = rows.gram[node]
        raw[node] = gram + np.tril(gram, -1).T
    n, total, squares = raw[0][0, 0], rows.moment[0, 0], rows.squares[0]
    change = np.eye(d + 1)  # z = change (1, x)
    for j in range(1, d + 1):
        within = raw[0][j, j] - raw[0][0, j] ** 2 / n if n > 0 else 0.0
        if within <= 1e-12 * raw[0][j, j]:
            change[j] = 0.0
            continue
        size = 2.0 ** round(math.log2(within * (n + 3)) / 2 - math.log2(max(n - 1, n / 2)))
        change[j, j] = 1 / size
        change[j, 0] = -0.5 * round(2 * raw[0][0, j] / n / size)
    within = max(squares - total**2 / n, 0.0) if n > 0 else 0.0
    origin = 0.0
    if within > 1e-12 * squares:
        step = 16 * 2.0 ** round(math.log2(within / n) / 2)
        origin = step * round(total / n / step)
    elif n > 0:
        origin = float(np.float32(total / n))
    grams: dict[int, Floats] = {}
    moments: dict[int, Floats] = {}
    for leaf in policy.tree.shape.node_of.tolist():
        grams[leaf] = change @ raw[leaf] @ change.T
        moments[leaf] = change @ (rows.moment[leaf] - origin * raw[leaf][0])
    centred = squares - 2 * origin * total + origin**2 * n
    return Evidence(grams, moments, centred, within, rows.draws[0], n, change @ np.append(1.0, context), origin)


def widths(policy: bt.Policy, copy: Any, p: int) -> dict[int, Floats]:
    """The prior variance of each node's coefficients around its parent's."""
    shape = policy.tree.shape
    height: list[Any] = [0] * shape.n_nodes
    for v in range(shape.n_nodes - 1, 0, -1):
        height[shape.parent[v]] = max(height[shape.parent[v]], height[v] + 1)
    tau, factor, share, _ = copy

    def width(h: int) -> tuple[float, float]:
        level = min(max(float(tau * factor**h), 1e-3), 16.0)
        return level, max(float(level * share), 1e-3)

    found = {v: width(height[v]) for v in range(1, shape.n_nodes)}
    slope_below = width(height[0] - 1)[1]
    found[0] = 100.0, max(1.0, 2 * slope_below)
    return {v: np.array([level, *[slope] * (p - 1)]) ** 2 for v, (level, slope) in found.items()}


def dense(policy: bt.Policy, evidence: Evidence, copy: Any) -> Posterior:
    """The posterior of all coefficients at once."""
    shape, p = policy.tree.shape, len(evidence.z)
    n = shape.n_nodes
    variance = widths(policy, copy, p)
    paths = [set(shape.path_up(v)) for v in range(n)]
    prior = np.zeros((n, p, n, p))
    for v in range(n):
        for u in range(n):
            shared = np.sum([variance[w] for w in paths[v] & paths[u]], axis=0)
            prior[v, np.arange(p), u, np.arange(p)] = shared
    flat = prior.reshape(n * p, n * p)
    gram, moment = np.zeros((n, p, n, p)), np.zeros((n, p))
    for leaf in evidence.gram:
        gram[leaf, :, leaf, :], moment[leaf] = evidence.gram[leaf], evidence.moment[leaf]
    change = np.eye(n * p) + gram.reshape(n * p, n * p) @ flat
    covariance = flat @ np.linalg.inv(change)
    mean = covariance @ moment.ravel()
    rest = float(evidence.squares - moment.ravel() @ mean)
    log_weight = float(copy[3]) - 0.5 * np.linalg.slogdet(change)[1]
    noise = 1.0
    if evidence.within > 1e-12 * evidence.squares:
        half = 1 + evidence.draws / 2
        left = 0.1 * evidence.within / evidence.draws + 0.5 * max(rest, 1e-12 * evidence.squares)
        noise = left / half
        log_weight -= half * math.log(left)
    return Posterior(log_weight, noise, mean.reshape(n, p), covariance.reshape(n, p, n, p).transpose(0, 2, 1, 3))


def widened(policy: bt.Policy, evidence: Evidence, copy: Any, plain: Posterior) -> Posterior:
    """The same as draws have it: on the way down, clusters are twice and arms one and a half times as wide."""
    shape, p = policy.tree.shape, len(evidence.z)
    variance, mean, covariance = widths(policy, copy, p), plain.mean.copy(), plain.covariance.copy()
    for v in range(1, shape.n_nodes):
        above, factor = int(shape.parent[v]), 1.5 if shape.content[v] >= 0 else 2.0
        gram, moment = _heard(v, shape, evidence, variance)
        precision = np.diag(1 / (factor**2 * variance[v]))
        inverse = np.linalg.inv(precision + gram)
        mean[v] = inverse @ (precision @ mean[above] + moment)
        covariance[v, v] = inverse + inverse @ precision @ covariance[above, above] @ precision @ inverse
    return plain._replace(mean=mean, covariance=covariance)


def _heard(v: int, shape: Any, evidence: Evidence, variance: dict[int, Floats]) -> tuple[Floats, Floats]:
    """What the evidence below a node says about its coefficients, those below it integrated out: A and b."""
    p = len(evidence.z)
    leaves = [leaf for leaf in evidence.gram if v in shape.path_up(leaf)]
    below = [set(shape.path_up(leaf)) - set(shape.path_up(v)) for leaf in leaves]
    apart, gram = np.zeros((2, len(leaves) * p, len(leaves) * p))
    for i, leaf in enumerate(leaves):
        at = slice(i * p, i * p + p)
        gram[at, at] = evidence.gram[leaf]
        for j in range(len(leaves)):
            shared = sum((variance[w] for w in below[i] & below[j]), start=np.zeros(p))
            apart[at, j * p : j * p + p] = np.diag(shared)
    each = np.tile(np.eye(p), (len(leaves), 1))
    passed = each.T @ np.linalg.inv(np.eye(len(gram)) + gram @ apart)
    return passed @ gram @ each, passed @ np.concatenate([evidence.moment[leaf] for leaf in leaves])


def _drawn(
    leaf: int,
    shape: Any,
    evidence: Evidence,
    posterior: Posterior,
    copy: Any,
    chance: float,
    sharp: float,
    factor: float = 1.0,
) -> Any:
    """The chance to be a stray, and mean and standard deviation of both draws; arms are ``factor`` times as wide."""
    z, above = evidence.z, int(shape.parent[leaf])
    to_sd = math.sqrt(posterior.noise / sharp)
    follows = (z @ posterior.mean[leaf], to_sd * math.sqrt(z @ posterior.covariance[leaf, leaf] @ z))
    a, b, m = evidence.gram[leaf], evidence.moment[leaf], posterior.mean[above]
    tau, _, share, _ = copy
    w = (factor * np.array([tau, *[max(tau * share, 1e-3)] * (len(z) - 1)])) ** 2
    wider = w.copy()  # as a stray
    wider[0] = max(1.0, 4 * tau) ** 2

    def log_likelihood(v: Floats) -> float:
        r = b - a @ m
        inverse = np.linalg.inv(np.diag(1 / v) + a)
        return float(r @ inverse @ r / posterior.noise - np.linalg.slogdet(np.eye(len(v)) + np.diag(v) @ a)[1]) / 2

    odds = chance / (1 - chance) * math.exp(min(log_likelihood(wider) - log_likelihood(w), 50))
    inverse = np.linalg.inv(np.diag(1 / wider) + a)
    gain = inverse @ np.diag(1 / wider)
    spread = inverse + gain @ posterior.covariance[above, above] @ gain.T
    alone = (z @ (gain @ m + inverse @ b), to_sd * math.sqrt(z @ spread @ z))
    return odds / (1 + odds), follows, alone
