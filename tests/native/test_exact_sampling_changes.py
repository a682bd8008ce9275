"""The native shortcut follows the evidence: step by step, and however Python changes it in between.

After each change the choices are tested against win probabilities integrated from the posteriors as they are now. The
node is wide, so that a policy takes the shortcut as it comes, also on the tree it has after a change.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from banditree.policy.saving import restore
from tests.support.winning import P_FLOOR, Pair, chi_square, win_probabilities

native = pytest.importorskip("banditree._native")

CHOICES = 100_000
K = 70


@pytest.fixture
def policy() -> bt.HTS:
    """Two wide clusters, with classes already built from some evidence and from steps since."""
    tree = bt.Tree({"a": [f"a{i}" for i in range(K)], "b": [f"b{i}" for i in range(K)]})
    with engines.using("native"):
        policy = bt.HTS(tree, rng=6)
    rng = np.random.default_rng(7)
    policy.update_many(rng.choice(tree.arms, size=400), rng.integers(0, 2, size=400))
    return step(policy, 200, binary=True)


def step(policy: bt.HTS, steps: int, *, binary: bool) -> bt.HTS:
    rng = np.random.default_rng(steps)
    for _ in range(steps):
        reward = rng.random()
        policy.update(policy.choose(), float(reward < 0.3) if binary else reward)
    return policy


def pairs_below(policy: bt.HTS, node: int) -> list[Pair]:
    shape, rows = policy._state.walked_tree.shape, policy._state.rows
    children = slice(int(shape.start[node]), int(shape.start[node + 1]))
    arrays = rows.arrays()
    a, b = arrays["a"] + arrays["successes"], arrays["b"] + arrays["failures"]
    return list(zip(a[children].tolist(), b[children].tolist(), strict=True))


def p_value(policy: bt.HTS) -> float:
    """The arms chosen, against the product of win probabilities down the tree."""
    assert policy.engine == "native"
    assert policy._state.walk.native.min_wide <= K
    shape = policy._state.walked_tree.shape
    probability = np.zeros(policy.tree.n_arms)
    for cluster, outer in enumerate(win_probabilities(pairs_below(policy, 0))):
        node = int(shape.start[0]) + cluster
        arms = shape.content[shape.start[node] : shape.start[node + 1]]
        probability[arms] = outer * win_probabilities(pairs_below(policy, node))
    picks = policy._state.walk.choose_many(CHOICES, None)
    assert picks is not None
    return chi_square(np.bincount(picks, minlength=len(probability)), probability)


def test_steps_are_followed(policy: bt.HTS) -> None:
    assert p_value(policy) > P_FLOOR
    assert p_value(step(policy, 3000, binary=True)) > P_FLOOR


def test_steps_with_fractions_are_followed(policy: bt.HTS) -> None:
    assert p_value(step(policy, 3000, binary=False)) > P_FLOOR


@pytest.mark.parametrize("times", [3, 9])  # learned reward by reward, and arm by arm
def test_a_batch_is_followed(policy: bt.HTS, times: int) -> None:
    policy.update_many([f"a{i}" for i in range(K)] * times, [1, 0, 0.25] * K * (times // 3))
    assert p_value(policy) > P_FLOOR


def test_changes_of_the_tree_are_followed(policy: bt.HTS) -> None:
    policy.add_arms({f"new{i}": ("a",) for i in range(5)})
    assert p_value(policy) > P_FLOOR
    policy.move_arms({f"a{i}": ("b",) for i in range(5)})
    assert p_value(policy) > P_FLOOR
    policy.remove_arms(["b0", "b1", "new0"])
    assert p_value(step(policy, 100, binary=True)) > P_FLOOR


def test_saved_evidence_is_followed(policy: bt.HTS, tmp_path: Path) -> None:
    policy.save(tmp_path / "state.banditree")
    saved = {name: policy._state.rows.arrays()[name].copy() for name in ("successes", "failures")}
    with engines.using("native"):
        loaded = bt.load(tmp_path / "state.banditree", rng=8)
    assert isinstance(loaded, bt.HTS)
    assert p_value(loaded) > P_FLOOR
    step(policy, 1000, binary=True)
    restore(policy, saved)
    assert p_value(policy) > P_FLOOR


def test_evidence_changed_behind_its_back_is_not_followed(policy: bt.HTS) -> None:
    """The control: where nothing tells the walk, it goes on from its classes, and the statistic shows it."""
    policy.choose_many(100)
    rows = policy._state.rows.arrays()
    rows["successes"][3 : 3 + K] += np.arange(K) % 3
    assert p_value(policy) < P_FLOOR
    policy._state.walk.refresh()
    assert p_value(policy) > P_FLOOR
