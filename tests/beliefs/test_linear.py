"""Linear beliefs stay accurate: rank-one updates against a fresh solve, after a million rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from tests.support.helpers import needs_native

DIM = 5
EPS = float(np.finfo(float).eps)


def drift(policy: bt.Policy) -> tuple[float, float, float]:
    """Largest relative errors of variances and means along the axes, as the engine that walks has them; B's condition.

    They are compared with a fresh solve, relative to the largest of a node.
    """
    rows: Any = policy._state.rows
    worst = [0.0, 0.0, 0.0]
    for node in range(len(rows.count)):
        b = rows.precision[node] * np.eye(DIM) + rows.gram[node]
        f = rows.precision[node] * rows.prior_mean[node] + rows.moment[node]
        variances, coefficients = np.linalg.inv(b).diagonal(), np.linalg.solve(b, f)
        means, spreads = moments(policy, node)
        worst[0] = max(worst[0], float(np.abs(spreads**2 - variances).max() / variances.max()))
        size = max(float(np.abs(coefficients).max()), EPS)
        worst[1] = max(worst[1], float(np.abs(means - coefficients).max() / size))
        worst[2] = max(worst[2], float(np.linalg.cond(b)))
    return worst[0], worst[1], worst[2]


def moments(policy: bt.Policy, node: int) -> Any:
    """Means and spreads of a node along the axes: (2, dim)."""
    if policy.engine == "native":
        walk: Any = policy._state.walk.native
        return np.array([walk.moments(node, x) for x in np.eye(DIM)]).T
    rows, at = policy._state.rows, np.array([node])
    return np.stack([rows.mean(at, np.eye(DIM))[0], rows.spread(at, np.eye(DIM))[0]])


def learn(engine: str, n: int, scale: float = 1.0) -> bt.Policy:
    """n rewards on two arms of one cluster, contexts of very different lengths along the axes."""
    with engines.using(engine):
        policy = bt.LinTSC(bt.Tree({"c": 2}), dim=DIM, rng=0)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, DIM)) * np.logspace(0, 1, DIM) * scale
    theta = rng.standard_normal(DIM)
    rewards = X @ theta + rng.standard_normal(n)
    walk: Any = policy if engine == "readable" else policy._state.walk
    for place, (x, reward) in enumerate(zip(X, rewards.tolist(), strict=True)):
        walk.update(place % 2, reward, x)
        if engine == "native" and place % 16 == 0:
            policy.choose(x)  # nodes are solved when they are needed, and follow by rank-one updates from then on
    return policy


def bound(condition: float) -> float:
    """A solution from scratch errs by about d cond(B) eps. Between two, each of at most 512 rank-one updates errs by
    a few eps of what it changes; an error in B^-1 shrinks with B^-1 itself, so the errors of the updates add up.
    """
    return (DIM * condition + 8 * 512) * EPS


@needs_native
def test_a_million_rewards_on_the_native_engine(record_property: Any) -> None:
    policy = learn("native", 1_000_000)
    inverse, coefficients, condition = drift(policy)
    record_property("error of the inverse", inverse)
    print(f"after a million rewards: inverse {inverse:.1e}, coefficients {coefficients:.1e}, condition {condition:.1e}")
    assert inverse <= bound(condition) <= 1e-11
    assert coefficients <= 10 * bound(condition)  # B^-1 f: the error of B^-1 times f, of which B^-1 takes most back
    assert policy.table()[0].plays == 1_000_000


def test_ten_thousand_rewards_on_the_readable_engine() -> None:
    inverse, coefficients, condition = drift(learn("readable", 10_000))
    assert inverse <= bound(condition)
    assert coefficients <= 10 * bound(condition)


def test_batches_invert_from_scratch(engine: str) -> None:
    policy = bt.LinTSC(bt.Tree({"c": 2}), dim=DIM, rng=0)
    rng = np.random.default_rng(1)
    for _ in range(20):
        X = rng.standard_normal((500, DIM)) * 1e5
        policy.update_many(rng.integers(2, size=500), X @ np.ones(DIM), contexts=X)
    inverse, coefficients, condition = drift(policy)
    assert inverse <= DIM * condition * EPS
    assert coefficients <= 10 * DIM * condition * EPS
    assert policy._state.rows.mean(np.array([0]), np.eye(DIM))[0] == pytest.approx(np.ones(DIM), abs=1e-6)
