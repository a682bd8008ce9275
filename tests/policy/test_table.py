"""One row of what a policy believes, and the best arm so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidValue, UnknownArm
from tests.support.helpers import DIM, NAMES, TREES, events, feed, make

SHOP = bt.Tree({"clothes": {"hats": ["h1", "h2"], "socks": ["s1"]}, "books": ["b1", "b2"]})


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_table_is_found_by_its_path(name: str, shape: str, engine: str) -> None:
    policy = make(name, TREES[shape])
    feed(policy, events(policy.tree, 20, 1, policy.dim))
    for row in policy.table():
        assert repr(policy[row.path]) == repr(row)
        if row.path and row.path[-1] in policy.tree:
            assert repr(policy[row.path[-1]]) == repr(row)


def test_by_hand(engine: str) -> None:
    policy = bt.HTS(SHOP, rng=1)
    policy.update_many(["h1", "h1", "h2", "b1"], [1, 0, 1, 1])
    assert policy["h1"].plays == 2
    assert policy["h1"].path == ("clothes", "hats", "h1")
    assert policy["h1"].mean == 0.5
    assert policy["clothes", "hats"].plays == 3
    assert policy["clothes", "hats"].mean == 3 / 5
    assert policy["clothes"].plays == 3
    assert policy["clothes", "hats", "h2"].mean == 2 / 3
    assert policy[()].plays == 4


def test_a_path_of_an_arm_below_clusters_that_are_not_walked(engine: str) -> None:
    policy = bt.TSC(SHOP, rng=1)
    assert policy["clothes", "hats", "h1"].plays == 0
    with pytest.raises(UnknownArm, match="is a cluster that this policy does not walk"):
        policy["clothes", "hats"]


@pytest.mark.parametrize(
    "key",
    ["h9", ("clothes", "shoes"), ("hats",), ("h1",), 7, 1.0, True, None, ["h1"], ("h1", "h1"), (["h1"],), (True,)],
)
def test_what_is_not_there(key: Any, engine: str) -> None:
    policy = bt.HTS(SHOP)
    with pytest.raises(UnknownArm):
        policy[key]
    if key not in (7, ("h1",)):
        with pytest.raises(UnknownArm):
            bt.HTS(bt.Tree({1: [7, "h1"]}))[key]


def test_linear_rows_say_what_they_need(engine: str) -> None:
    policy = make("LinTSC", bt.Tree(["a", "b"]))
    policy.update("a", 2.0, np.ones(DIM))
    assert policy["a"].interval == "needs context="
    assert policy["a"].mean == 2.0
    assert policy["b"].mean == 0
    assert "needs context=" in str(policy.table())
    low, high = policy.table(np.ones(DIM))[1].interval
    assert low < policy.table(np.ones(DIM))[1].mean < high


def test_best(engine: str) -> None:
    policy = bt.TSC(SHOP, rng=1)
    with pytest.raises(InvalidValue, match="no arm has been tried yet"):
        policy.best()
    policy.update("h1", 0)
    assert policy.best() == "h1"  # the only one tried, though others are expected to be better
    policy.update_many(["b1", "s1"], [1, 1])
    assert policy.best() == "s1"  # the first of two
    policy.update("b1", 1)
    assert policy.best() == "b1"
    policy.forget(0)
    with pytest.raises(InvalidValue, match="no arm has been tried yet"):
        policy.best()


def test_best_in_a_context(engine: str) -> None:
    policy = make("LinTS", bt.Tree(["a", "b"]), dim=2)
    for _ in range(5):
        policy.update("a", 1.0, [1.0, 0.0])
        policy.update("b", 1.0, [0.0, 1.0])
    assert policy.best([1.0, 0.0]) == "a"
    assert policy.best([0.0, 1.0]) == "b"
    with pytest.raises(InvalidValue, match="needs a context of 2 numbers"):
        policy.best()


def test_looking_changes_nothing(engine: str) -> None:
    policy = feed(bt.TSC(SHOP, rng=1), events(SHOP, 10, 1))
    before = policy.to_bytes()
    policy.best()
    policy["h1"]
    assert policy.to_bytes() == before
