"""How likely a walk under limits is to end at each arm, from a policy's evidence and the definitions alone.

Nothing here calls what it is held against: posteriors are computed from the sums, who wins by SciPy's quadrature, who
stands for a cluster by looking at all its arms.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree.beliefs.beta import BetaRows
from banditree.beliefs.counts import CountsRows
from banditree.beliefs.gaussian import GaussianRows
from banditree.beliefs.linear import LinearRows
from banditree.policy import engines
from tests.support.winning import BETA, NORMAL, by_quadrature

Floats = NDArray[np.float64]


def law(policy: bt.Policy, allowed: Collection[Any] | None = None, context: Any = None) -> Floats:
    """The probability of each arm: (arms,)."""
    tree = policy._state.walked_tree
    arms = set(tree.arms if allowed is None else allowed)
    found = np.zeros(tree.n_arms)

    def walk(node: int, chance: float) -> None:
        if tree.shape.content[node] >= 0:
            found[tree.shape.content[node]] += chance
            return
        children = [child for child in _children(policy, node) if _arms_below(policy, child) & arms]
        won = _wins(policy, node, children, arms, context) if len(children) > 1 else np.ones(1)
        for child, share in zip(children, won.tolist(), strict=True):
            walk(child, chance * share)

    if policy._state.rows.joint:
        found = _joint(policy, arms, context)
    else:
        walk(0, 1.0)
    n = len(arms)
    among = np.array([arm in arms for arm in tree.arms])
    return (1 - policy.explore) * found + policy.explore * among / n


def _joint(policy: bt.Policy, arms: Collection[Any], context: Any) -> Floats:
    """Where all arms compete: what the readable engine computes, which test_draws.py holds against brute force."""
    with engines.using("readable"):
        readable: Any = bt.from_bytes(policy.to_bytes(), rng=1)._state
    at = np.array(sorted(policy.tree.position(arm) for arm in arms))
    found = np.zeros(policy.tree.n_arms)
    found[at] = readable.rows.wins(
        readable.walked_tree.shape.node_of[at], None if context is None else np.asarray(context, float)
    )
    return found


def _children(policy: bt.Policy, node: int) -> list[int]:
    start = policy._state.walked_tree.shape.start
    return list(range(start[node], start[node + 1]))


def _arms_below(policy: bt.Policy, node: int) -> set[Any]:
    tree = policy._state.walked_tree
    if tree.shape.content[node] >= 0:
        return {tree.arms[tree.shape.content[node]]}
    return set().union(*(_arms_below(policy, child) for child in _children(policy, node)))


def _wins(policy: bt.Policy, node: int, children: list[int], arms: set[Any], context: Any) -> Floats:
    rows, rule = policy._state.rows, policy.rule
    if isinstance(rule, bt.UCB):
        return _highest(policy, rule, node, children, context)
    if isinstance(rule, bt.BestArm):
        children = [_stands_for(policy, rule, child, arms) for child in children]
    if isinstance(rows, BetaRows):
        a = np.array([rows.a[i] + rows.successes[i] for i in children])
        b = np.array([rows.b[i] + rows.failures[i] for i in children])
        return by_quadrature(a, b, BETA)
    mean, sd = np.array([_moments(rows, i, context) for i in children]).T
    return by_quadrature(mean, sd, NORMAL)


def _moments(rows: Any, node: int, context: Any) -> tuple[float, float]:
    """Mean and standard deviation."""
    if isinstance(rows, GaussianRows):
        n = rows.prior_plays[node] + rows.count[node]
        known = rows.prior_totals(np.array([node]))[0]
        return (known + rows.total[node]) / n, rows.noise(np.array([node]))[0] / np.sqrt(n)
    assert isinstance(rows, LinearRows)
    b = rows.precision[node] * np.eye(rows.dim) + rows.gram[node]
    f = rows.precision[node] * rows.prior_mean[node] + rows.moment[node]
    return float(context @ np.linalg.solve(b, f)), float(np.sqrt(rows.v * context @ np.linalg.solve(b, context)))


def _highest(policy: bt.Policy, rule: bt.UCB, node: int, children: list[int], context: Any) -> Floats:
    rows: Any = policy._state.rows
    if isinstance(rows, CountsRows):
        n = rows.count[node if rule.clock == "parent" else 0]
        c = np.sqrt(2 * np.log(max(1.0, n))) if rule.c is None else rule.c
        pairs = [(rows.count[i], rows.total[i]) for i in children]
        index = np.array([total / count + c / np.sqrt(count) if count > 0 else np.inf for count, total in pairs])
    else:
        assert rule.c is not None
        index = np.array([mean + rule.c * sd for mean, sd in (_moments(rows, i, context) for i in children)])
    best = index == index.max() if np.isinf(index.max()) else index >= index.max() - 1e-9
    return np.asarray(best / best.sum())


def _stands_for(policy: bt.Policy, rule: bt.BestArm, node: int, arms: set[Any]) -> int:
    tree, rows = policy._state.walked_tree, policy._state.rows
    below = sorted(tree.position(arm) for arm in _arms_below(policy, node))
    leaves = [int(tree.shape.node_of[at]) for at in below]
    plays = {leaf: float(rows.plays(np.array([leaf]))[0]) for leaf in leaves}
    left = [leaf for leaf in leaves if tree.arms[tree.shape.content[leaf]] in arms]
    if rule.best == "posterior":
        mean = {leaf: float(rows.mean(np.array([leaf]), None)[0, 0]) for leaf in left}
        return max(left, key=lambda leaf: (mean[leaf], plays[leaf]))
    if not any(plays.values()) and len(leaves) > 1:
        return node
    mean = {leaf: float(rows.rewards(np.array([leaf]))[0]) / plays[leaf] for leaf in left if plays[leaf] > 0}
    return max(mean, key=lambda leaf: (mean[leaf], plays[leaf])) if mean else left[0]
