"""to_bytes, from_bytes, pickle and copy: the copy knows the same, goes its own way, and draws afresh."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.beliefs.beta import BetaRows
from banditree.errors import BadFile, InvalidType
from tests.support.helpers import NAMES, SHOP, contexts, make, run, same, state


def pickled(policy: bt.Policy) -> Any:
    return pickle.loads(pickle.dumps(policy))  # noqa: S301


COPIES: dict[str, Callable[[bt.Policy], Any]] = {
    "pickle": pickled,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "bytes": lambda policy: bt.from_bytes(policy.to_bytes()),
}
each_copy = pytest.mark.parametrize("way", COPIES)


@each_copy
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_knows_the_same_and_goes_its_own_way(name: str, way: str, engine: str) -> None:
    policy = make(name, SHOP, 1)
    run(policy, 40, 2)
    before = state(policy)
    other = COPIES[way](policy)
    assert type(other) is type(policy)
    assert repr(other) == repr(policy)
    assert other.tree == policy.tree
    assert same(state(other), before)
    run(other, 20, 3)
    assert same(state(policy), before)
    assert other.table()[0].plays == 60


@each_copy
def test_a_copy_draws_from_a_fresh_stream(way: str, engine: str) -> None:
    """Not from the policy's own, which goes on as if there were no copy, and two copies not from the same."""
    policy, twin = (bt.TS(bt.Tree(100), rng=1) for _ in range(2))
    one, two = COPIES[way](policy), COPIES[way](policy)
    ways = [one.choose_many(50), two.choose_many(50), policy.choose_many(50)]
    assert not any(np.array_equal(ways[i], ways[j]) for i in range(3) for j in range(i))
    assert np.array_equal(ways[2], twin.choose_many(50))


def test_bytes_are_what_save_writes(engine: str, tmp_path: Path) -> None:
    policy = make("LinHTS", SHOP, 1)
    run(policy, 10, 2)
    policy.save(tmp_path / "p")
    data = policy.to_bytes()
    assert data == (tmp_path / "p").read_bytes()
    for kind in (bytes, bytearray, memoryview):
        assert same(state(bt.from_bytes(kind(data))), state(policy))
    ways = [run(bt.from_bytes(data, rng=rng), 30, 0) for rng in (5, 5, 6)]
    assert ways[0] == ways[1] != ways[2]


def test_bytes_that_are_refused() -> None:
    data = bt.TS(SHOP).to_bytes()
    with pytest.raises(InvalidType, match="data is a str; give the bytes that to_bytes"):
        bt.from_bytes("text")
    with pytest.raises(BadFile, match="this data is not a banditree file"):
        bt.from_bytes(b"text")
    with pytest.raises(BadFile, match="this data is truncated"):
        bt.from_bytes(data[:-1])
    with pytest.raises(InvalidType, match="rng='x' must be an int"):
        bt.from_bytes(data, rng="x")  # type: ignore[arg-type]


def test_a_prior_of_an_arm_that_left_is_copied() -> None:
    policy = bt.TSC(SHOP, prior={"h1": bt.Beta(9, 1), "shoes": bt.Beta(1, 9)}, rng=0)
    policy.remove_arms(["h1", "s1", "s2"])
    for way in COPIES.values():
        other = way(policy)
        other.add_arms({"h1": ("hats",)})
        assert other.table()[-1].mean == 0.9


# Parts and classes of the user's own


@dataclasses.dataclass(frozen=True)
class Shy(bt.Rule):
    c: float = 1.0

    def score(self, view: bt.View) -> Any:
        return view.mean() - self.c * view.spread()


class DoubledRows(BetaRows):
    def evidence(self, count: Any, total: Any) -> Any:
        return 2 * total, 2 * (count - total)


@dataclasses.dataclass(frozen=True)
class Doubled(bt.Beta):
    def rows(self, n_nodes: int, own: Any) -> BetaRows:
        a, b = (np.full(n_nodes, float(x)) for x in (self.a, self.b))
        for node, belief in own.items():
            a[node], b[node] = belief.a, belief.b
        return DoubledRows(a, b)


class Labelled(bt.TSC):
    """A class of the user's own, with something of its own before and after the policy is made."""

    def __init__(self, tree: bt.Tree, label: str, notes: list[str]) -> None:
        self.label = label
        super().__init__(tree, rng=0)
        self.notes = notes


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "copy"])
def test_parts_of_ones_own_come_along(way: str) -> None:
    prior = {None: Doubled(2, 2), "h1": Doubled(3, 9), "s1": Doubled(1, 5)}
    policy = bt.Policy(SHOP, belief=prior, rule=Shy(0.5), depth=1, rng=0)
    run(policy, 20, 0)
    policy.remove_arms(["s1"])  # its prior stays
    other = COPIES[way](policy)
    assert (other.belief, other.rule, other._state.own_priors) == (policy.belief, policy.rule, policy._state.own_priors)
    assert same(state(other), state(policy))
    run(other, 20, 0)
    with pytest.raises(InvalidType, match="Doubled; pass it as belief="):
        bt.from_bytes(policy.to_bytes())
    again = bt.from_bytes(policy.to_bytes(), belief=Doubled(2, 2), rule=Shy(0.5))
    assert again.rule == Shy(0.5)


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "copy"])
def test_classes_of_ones_own_and_what_they_hold(way: str, engine: str) -> None:
    policy = Labelled(SHOP, "mine", ["one"])
    vars(policy)["seen"] = [1]
    run(policy, 20, 0)
    other = COPIES[way](policy)
    assert type(other) is Labelled
    assert (other.label, other.notes, vars(other)["seen"]) == ("mine", ["one"], [1])
    assert (other.notes is policy.notes) == (way == "copy")
    assert same(state(other), state(policy))
    assert vars(other).keys() == vars(policy).keys()


@each_copy
def test_a_copy_while_others_learn_is_whole(way: str, engine: str) -> None:
    """Every copy has a root that is the sum of its arms."""
    policy = bt.TSC(SHOP, rng=0)
    stop: list[bool] = []

    def learn() -> None:
        while not stop:
            policy.update_many(["s1", "h1", "h2"], [1, 0, 1])
            policy.update("h3", 0.5)

    learner = Thread(target=learn)
    learner.start()
    try:
        for _ in range(30):
            rows, shape = COPIES[way](policy)._state.rows, SHOP.shape
            assert rows.successes[0] == rows.successes[shape.node_of].sum()
            assert rows.failures[0] == rows.failures[shape.node_of].sum()
    finally:
        stop.append(True)
        learner.join()


def test_a_copy_of_a_linear_policy_chooses(engine: str) -> None:
    policy = make("LinTSC", SHOP, 1)
    run(policy, 30, 2)
    other = copy.deepcopy(policy)
    rng = np.random.default_rng(0)
    assert all(other.choose(x) in SHOP for x in contexts(other, 10, rng))
