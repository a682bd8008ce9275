"""Policies as targets and as logging policies, and logs at the edge of what can be evaluated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import ope
from banditree.errors import InvalidValue

TREE = bt.Tree({"x": ["a", "b"], "y": ["c", "d"]})
MEANS = np.array([0.1, 0.2, 0.6, 0.4])


def made(n: int, seed: int, **more: Any) -> ope.Log:
    rng = np.random.default_rng(seed)
    places = rng.integers(4, size=n)
    rewards = (rng.random(n) < MEANS[places]).astype(float)
    table = {"arm": [TREE.arms[place] for place in places], "r": rewards, "p": np.full(n, 0.25), **more}
    return bt.read_log(table, arm="arm", reward="r", propensity="p", context=list(more))


@pytest.mark.parametrize("make", [bt.TS, bt.TSC, bt.HTS, bt.UCBC], ids=lambda make: make.__name__)
def test_a_policy_is_its_probabilities(make: Any, engine: str) -> None:
    policy = make(TREE, explore=0.1, rng=1)
    policy.learn(made(200, 1))
    log = made(300, 2)
    before = str(policy.table())
    one = bt.evaluate(log, policy)
    assert str(policy.table()) == before  # evaluating teaches it nothing
    two = bt.evaluate(log, policy.propensities(), tree=TREE)
    assert [item.value for item in one] == pytest.approx([item.value for item in two], nan_ok=True)


def test_a_policy_on_a_tree_in_another_order() -> None:
    other = bt.Tree({"y": ["d", "c"], "x": ["b", "a"]})
    policy = bt.TS(other, rng=1)
    policy.learn(made(200, 1))
    by_arm = dict(zip(other.arms, policy.propensities().tolist(), strict=True))
    log = made(300, 2)
    assert bt.evaluate(log, policy, tree=TREE)["dr"].value == pytest.approx(
        bt.evaluate(log, by_arm, tree=TREE)["dr"].value
    )
    with pytest.raises(InvalidValue, match="other arms"):
        bt.evaluate(log, bt.TS(bt.Tree(4)), tree=TREE)


class Counted(bt.LinTS):
    """Counts how often it is asked."""

    asked = 0

    def propensities(self, context: Any = None, **limits: Any) -> Any:
        self.asked += 1
        return super().propensities(context, **limits)


def test_a_policy_that_takes_contexts_is_asked_once_for_each(engine: str) -> None:
    x = np.random.default_rng(3).integers(3, size=200)
    log = made(200, 4, x=x, one=np.ones(200))
    policy = Counted(TREE, dim=2, rng=1)
    policy.learn(log)
    given = np.array([policy.propensities(context=[item, 1.0]) for item in x])
    policy.asked = 0
    result = bt.evaluate(log, policy)
    assert policy.asked == 3
    assert result["ips"].value == pytest.approx(bt.evaluate(log, given, tree=TREE)["ips"].value)
    with pytest.raises(InvalidValue, match="takes contexts, but the log has none"):
        bt.evaluate(made(10, 1), policy)


def test_what_a_policy_earns_live_is_inside_its_interval(engine: str) -> None:
    policy = bt.TSC(TREE, explore=0.2, rng=5)
    policy.learn(made(400, 6))
    truth = float(policy.propensities() @ MEANS)
    result = bt.evaluate(made(4000, 7), policy)
    for name in ("ips", "snips", "dr", "sndr"):
        assert abs(result[name].value - truth) < 4 * result[name].se
    assert result.answer == "better"


def test_the_logging_policy_as_behaviour(engine: str) -> None:
    """A policy that stays as it is while it writes: its propensities need no column."""
    policy = bt.TSC(TREE, explore=0.3, rng=8)
    policy.learn(made(100, 9))
    rng = np.random.default_rng(10)
    arms = policy.choose_many(2000)
    rewards = [float(rng.random() < MEANS[TREE.position(arm)]) for arm in arms]
    log = bt.read_log({"arm": arms, "r": rewards}, arm="arm", reward="r")
    result = bt.evaluate(log, {"c": 1.0}, tree=TREE, behaviour=policy)
    assert abs(result["dr"].value - 0.6) < 4 * result["dr"].se
    assert abs(result["mips"].value - 0.6) < 0.2  # clusters are the embedding, so c and d are taken as equal


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_logs_of_a_few_rows(n: int) -> None:
    result = bt.evaluate(made(n, 11), [0.25] * 4, tree=TREE)
    assert result["ips"].value == pytest.approx(result.logging.value)
    assert result.answer in ("cannot tell", "same")
    assert str(result)
    assert math.isnan(result["ips"].se) == (n == 1)


def test_a_target_without_any_support() -> None:
    table = {"arm": ["a", "b"] * 20, "r": [1, 0] * 20, "p": [0.5] * 40}
    log = bt.read_log(table, arm="arm", reward="r", propensity="p")
    result = bt.evaluate(log, {"c": 1.0}, tree=TREE)
    assert result.unsupported == 1.0
    assert result["ips"].value == 0.0
    assert math.isnan(result["snips"].value)
    assert result["ips"].ess == 0.0
    assert result.answer == "cannot tell"
    assert "'c'" in result.verdict
    assert str(result)


def test_rewards_that_never_vary() -> None:
    table = {"arm": ["a", "b"] * 20, "r": [2.0] * 40, "p": [0.5] * 40}
    log = bt.read_log(table, arm="arm", reward="r", propensity="p")
    result = bt.evaluate(log, {"a": 0.9, "b": 0.1}, tree=TREE)
    assert result["snips"].value == pytest.approx(2.0)
    assert result["snips"].se == pytest.approx(0.0)
    assert result["dr"].value == pytest.approx(2.0)


def test_adaptive_on_the_log_of_a_learning_policy(engine: str) -> None:
    policy = bt.TSC(TREE, explore=0.2, rng=12)
    rng = np.random.default_rng(13)
    table: dict[str, list[Any]] = {"arm": [], "r": [], "p": []}
    behaviour = []
    for _ in range(300):
        behaviour.append(policy.propensities())
        arm = policy.choose()
        place = TREE.position(arm)
        reward = float(rng.random() < MEANS[place])
        policy.update(arm, reward)
        for name, value in zip(table, (arm, reward, behaviour[-1][place]), strict=True):
            table[name].append(value)
    log = bt.read_log(table, arm="arm", reward="r", propensity="p")
    assert any("adaptive=True" in note for note in bt.evaluate(log, [0.25] * 4, tree=TREE).notes)
    result = bt.evaluate(log, [0.25] * 4, tree=TREE, behaviour=np.array(behaviour), adaptive=True)
    assert not any("adaptive=True" in note for note in result.notes)
    assert result.adaptive
    for name in ("ips", "snips", "dr", "sndr"):
        assert abs(result[name].value - MEANS.mean()) < 4 * result[name].se
