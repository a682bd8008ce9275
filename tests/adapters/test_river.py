"""A policy as a river bandit policy: river's evaluation, its environments, its clones, contexts by name."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from river import bandit, stats

import banditree as bt

TREE = bt.Tree({"left": [0, 1, 2], "right": [3, 4]})


@pytest.mark.parametrize("factory", [bt.ATS, bt.TSC, bt.UCB1])
def test_it_learns_in_river_s_evaluation_beside_river_s_own(factory: Any) -> None:
    tree = bt.Tree.from_labels([machine // 10 for machine in range(100)])
    environment = gym.make("river_bandits/CandyCaneContest-v0", max_episode_steps=300)
    policies = [bt.adapters.river(factory, tree, rng=1), bandit.RandomPolicy(seed=1)]
    trace = list(bandit.evaluate(policies, environment, n_episodes=2, seed=3))
    assert len(trace) == 2 * 2 * 300
    earned = Counter[int]()
    for step in trace:
        earned[step["policy_idx"]] += step["reward"]
    assert earned[0] > earned[1] if factory is not bt.UCB1 else earned[0] > 0  # UCB1 is still trying each machine


def test_gaussian_rewards_of_the_testbed() -> None:
    environment = gym.make("river_bandits/KArmedTestbed-v0", max_episode_steps=400)
    policies = [
        bt.adapters.river(partial(bt.ATS, prior=bt.Gaussian()), bt.Tree(10), rng=2),
        bandit.RandomPolicy(seed=2),
    ]
    steps = list(bandit.evaluate(policies, environment, n_episodes=2, seed=5))
    ours, random = (np.mean([step["reward"] for step in steps if step["policy_idx"] == i]) for i in range(2))
    assert ours > random + 0.5


def test_a_clone_starts_from_the_same_seed_and_has_learned_nothing() -> None:
    policy = bt.adapters.river(bt.ATS, TREE, rng=4)
    first = [policy.pull(range(5)) for _ in range(20)]
    policy.update(0, 1.0)
    clone = policy.clone()
    assert [clone.pull(range(5)) for _ in range(20)] == first
    assert (policy.policy[0].plays, clone.policy[0].plays) == (1, 0)


def test_only_what_may_be_pulled_is_pulled() -> None:
    policy = bt.adapters.river(bt.TSC, TREE, rng=4)
    assert {policy.pull([1, 4]) for _ in range(40)} == {1, 4}
    with pytest.raises(bt.errors.UnknownArm, match="7"):
        policy.pull([1, 7])


def test_river_s_own_counts_and_burn_in() -> None:
    policy = bt.adapters.river(bt.TS, TREE, reward_obj=stats.Sum(), burn_in=1, rng=4)
    for arm in range(5):
        assert policy.pull(range(5)) == arm
        policy.update(arm, arm / 4)
    assert policy.ranking == [4, 3, 2, 1, 0]
    assert "Arm ID" in repr(policy)


def test_contexts_by_name_in_river_s_replay() -> None:
    rng = np.random.default_rng(6)

    def history() -> Any:
        for _ in range(600):
            x = {"hour": float(rng.integers(24)), "device": ["phone", "desktop"][rng.integers(2)]}
            arm = int(rng.integers(5))
            yield list(range(5)), x, arm, float(arm == (4 if x["device"] == "phone" else 0))

    policy = bt.adapters.river(partial(bt.LinTS, v=0.1), TREE, rng=7)
    assert isinstance(policy, bandit.base.ContextualPolicy)
    total: Any
    total, n_used = bandit.evaluate_offline(policy, history())
    assert n_used > 80
    assert total.get() / n_used > 0.35  # at random: 0.2
    x = {"hour": 3.0, "device": "phone"}
    assert Counter(policy.pull([0, 1, 2, 3, 4], context=x) for _ in range(50)).most_common(1)[0][0] == 4


def test_a_policy_with_its_own_dim_takes_vectors() -> None:
    policy = bt.adapters.river(partial(bt.LinTS, dim=2), TREE, rng=7)
    arm = policy.pull(range(5), context=[1.0, 2.0])
    policy.update(arm, [1.0, 2.0], 1.0)
    assert policy.policy[arm].plays == 1


def test_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "banditree.adapters.river_policy", raising=False)
    with pytest.raises(bt.errors.MissingExtra, match=r"\[river\]"):
        bt.adapters.river(bt.TS, TREE)
