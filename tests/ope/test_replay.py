"""Replay: a policy on a log meets what it would have met live, and what is not uniform is made so."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import ope
from banditree.errors import InvalidType, InvalidValue

TREE = bt.Tree({"x": [0, 1], "y": [2, 3]})
MEANS = np.array([0.1, 0.2, 0.6, 0.5])
UNIFORM = np.full(4, 0.25)


class Fixed:
    """Chooses by probabilities that never change."""

    def __init__(self, tree: bt.Tree, rng: Any, chances: Any) -> None:
        self.tree, self.rng, self.chances, self.seen = tree, np.random.default_rng(rng), chances, 0

    def choose(self, context: Any = None) -> Any:
        return self.tree.arms[int(self.rng.choice(self.tree.n_arms, p=self.chances))]

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        self.seen += 1


def made(n: int, seed: int, behaviour: Any = UNIFORM) -> ope.Log:
    rng = np.random.default_rng(seed)
    arms = rng.choice(4, size=n, p=behaviour)
    rewards = (rng.random(n) < MEANS[arms]).astype(float)
    table = {"a": arms, "r": rewards, "p": np.asarray(behaviour)[arms], "t": np.arange(n)[::-1]}
    return bt.read_log(table, arm="a", reward="r", propensity="p", time="t")


@pytest.mark.parametrize("behaviour", [UNIFORM, np.array([0.55, 0.15, 0.1, 0.2])], ids=["uniform", "not uniform"])
def test_a_fixed_policy_earns_its_true_value_on_any_log_with_propensities(behaviour: Any) -> None:
    chances = np.array([0.4, 0.1, 0.3, 0.2])
    table = bt.replay({"fixed": partial(Fixed, chances=chances)}, made(20_000, 1, behaviour), tree=TREE, orders=1)
    row = table[0]
    assert set(row) >= {"policy", "reward", "accepted"}
    assert abs(row.reward - chances @ MEANS) < 4 * row.se
    expected = 20_000 * behaviour.min()  # a row is kept with p_min / p, and accepted where the two choices agree
    assert abs(row.accepted - expected) < 4 * math.sqrt(expected)
    assert any("not uniform" in note for note in table.notes) == (behaviour is not UNIFORM)


def test_taking_a_skewed_log_as_it_is_would_be_wrong() -> None:
    """The control for the correction: without it, popular arms are accepted too often."""
    behaviour, chances = np.array([0.55, 0.15, 0.1, 0.2]), np.array([0.4, 0.1, 0.3, 0.2])
    log = made(20_000, 1, behaviour)
    pretended = bt.read_log(
        {"a": log.arms, "r": log.rewards, "p": np.full(20_000, 0.25)}, arm="a", reward="r", propensity="p"
    )
    row = bt.replay({"fixed": partial(Fixed, chances=chances)}, pretended, tree=TREE, orders=1)[0]
    assert abs(row.reward - chances @ MEANS) > 4 * row.se


def test_learning_policies_learn(engine: str) -> None:
    result = bt.replay({"TS": bt.TS, "TSC": bt.TSC}, made(4000, 2), tree=TREE, orders=3, rng=5)
    for row in result:
        assert row.reward > 0.45  # of at most 0.6; a policy that does not learn earns 0.35
        assert abs(row.accepted - 1000) < 4 * math.sqrt(1000)
    assert result.curves["TS"].shape == (3, len(result.times))
    assert np.isclose(result.curves["TS"][0, 0], round(result.curves["TS"][0, 0]))  # one row: a reward of 0 or 1


def test_the_same_seed_replays_the_same_whoever_else_is_there(engine: str) -> None:
    log = made(500, 2)
    result, again = (bt.replay({"TS": bt.TS, "TSC": bt.TSC}, log, tree=TREE, orders=3, rng=5) for _ in range(2))
    assert str(result) == str(again)
    alone = bt.replay({"TSC": bt.TSC}, log, tree=TREE, orders=3, rng=5)
    assert next(row for row in result if row.policy == "TSC") == alone[0]


def test_the_first_order_is_that_of_time() -> None:
    seen: list[Any] = []

    class Watches(Fixed):
        def update(self, arm: Any, reward: Any, context: Any = None) -> None:
            seen.append(reward)

    arms = [0] * 50
    table = {"a": arms, "r": list(range(50)), "p": [1.0] * 50, "t": list(range(50))[::-1]}
    log = bt.read_log(table, arm="a", reward="r", propensity="p", time="t")
    bt.replay({"watches": partial(Watches, chances=[1.0])}, log, tree=bt.Tree(1), orders=1)
    assert seen == list(range(50))[::-1]


def test_contexts_reach_the_policies_that_take_them(engine: str) -> None:
    rng = np.random.default_rng(3)
    n = 4000
    x, arms = rng.integers(2, size=n), rng.integers(2, size=n)
    table = {"a": arms, "r": (arms == x).astype(float), "p": np.full(n, 0.5), "x": x, "one": np.ones(n)}
    log = bt.read_log(table, arm="a", reward="r", propensity="p", context=["x", "one"])
    policies = {"LinTS": partial(bt.LinTS, v=0.1), "TS": bt.TS, "given": partial(bt.LinTS, dim=2, v=0.1)}
    result = {row.policy: row.reward for row in bt.replay(policies, log, tree=bt.Tree(2), orders=1)}
    assert result["LinTS"] > 0.9  # the arm that the context names always pays
    assert result["given"] > 0.9
    assert abs(result["TS"] - 0.5) < 0.05


def test_what_cannot_be_replayed() -> None:
    bare = bt.read_log({"a": [0], "r": [1]}, arm="a", reward="r")
    with pytest.raises(InvalidValue, match="has no propensities"):
        bt.replay({"TS": bt.TS}, bare, tree=TREE)
    with pytest.raises(InvalidType, match="must be a mapping"):
        bt.replay(bt.TS, made(10, 1), tree=TREE)
    with pytest.raises(InvalidType, match=r"give the bt\.Tree"):
        bt.replay([bt.TS], made(10, 1))
    with pytest.raises(InvalidValue, match="orders=0"):
        bt.replay({"TS": bt.TS}, made(10, 1), tree=TREE, orders=0)
    few = bt.replay({"TS": bt.TS}, made(400, 1), tree=bt.Tree(5))
    assert any("1 arm of the tree without rows" in note for note in few.notes)


def test_curves_are_drawn() -> None:
    axes = bt.replay({"TS": bt.TS, "TSC": bt.TSC}, made(2000, 4), tree=TREE, orders=2).plot(ax=bt.plots.sheet())
    assert axes.get_xlabel() == "accepted rows"
    assert {line.get_label() for line in axes.get_lines()} == {"TS", "TSC"}


def test_policies_are_a_list_or_a_mapping_as_for_simulate() -> None:
    log = made(400, 7)
    listed, mapped = (
        bt.replay(policies, log, tree=TREE, orders=1) for policies in ([bt.TS, bt.TSC], {"TS": bt.TS, "TSC": bt.TSC})
    )
    assert str(listed) == str(mapped)


def test_a_few_rewards_that_are_alike_do_not_make_a_certain_interval() -> None:
    log = bt.read_log({"a": [0, 0, 0], "r": [0, 0, 0], "p": [1.0] * 3}, arm="a", reward="r", propensity="p")
    row = bt.replay([bt.TS], log, tree=bt.Tree(1), orders=1)[0]
    assert row.accepted == 3
    assert math.isnan(row.se)
    assert row.interval == pytest.approx((0.0, 0.5615), abs=1e-4)  # Wilson's interval of 0 in 3
    paid = bt.read_log({"a": [0, 0, 0], "r": [7, 7, 7], "p": [1.0] * 3}, arm="a", reward="r", propensity="p")
    result = bt.replay({"TS": partial(bt.TS, prior=bt.Gaussian(1.0))}, paid, tree=bt.Tree(1), orders=1)
    assert all(map(math.isnan, result[0].interval))
    assert any("fewer than 30 accepted rows" in note for note in result.notes)
    assert "–" in result.to_text()
    assert result.to_dict()["policies"]["TS"]["interval"] == [None, None]
    assert "<table" in result._repr_html_()
