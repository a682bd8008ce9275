"""A living catalogue: after any change a policy equals one that is built on the new tree and given the same rewards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditree as bt
from banditree.errors import BanditreeError
from banditree.policy import engines
from tests.support.helpers import DIM, NAMES, SHOP, events, feed, make, needs_native, run, same, state
from tests.support.hypothesis_strategies import trees

Change = Callable[[bt.Policy], None]


def fits(one: bt.Policy, two: bt.Policy) -> bool:
    rounding = {} if one.dim is None else {"rtol": 1e-9, "atol": 1e-11}
    return one.tree == two.tree and same(state(one), state(two), **rounding)


@given(trees, st.integers(0, 2**32), st.data())
@settings(max_examples=12)
@pytest.mark.parametrize("name", NAMES)
def test_any_changes_equal_a_policy_built_anew(
    engine: str, name: str, tree: bt.Tree, seed: int, data: st.DataObject
) -> None:
    policy = make(name, tree, seed)
    lived: list[Any] = []
    names = iter(f"new {i}" for i in range(100))
    for _ in range(data.draw(st.integers(1, 4))):
        lived += (more := events(policy.tree, 8, seed, policy.dim))
        feed(policy, more)
        arms = list(policy.tree.arms)
        some = data.draw(st.lists(st.sampled_from(arms), unique=True, max_size=3))
        above = data.draw(st.sampled_from([(), ("n1",), ("n1", "n2"), *(path[:-1] for path in policy.tree.paths())]))
        change = data.draw(st.sampled_from(["add", "move", "remove", "retree"]))
        if change == "add":
            policy.add_arms({next(names): above, next(names): ("n3",)})
        elif change == "move":
            policy.move_arms(dict.fromkeys(some, above))
        elif change == "remove" and len(some) < len(arms):
            policy.remove_arms(some)
            lived = [event for event in lived if event[0] not in some]
        else:
            policy.retree(bt.Tree.from_labels(["odd" if i % 2 else "even" for i in range(len(arms))], arms[::-1]))
    assert fits(policy, feed(make(name, policy.tree, seed), lived))


@pytest.mark.parametrize(
    "prior",
    [
        bt.Beta(2, 5),
        bt.Gaussian(sd=0.5, mean=1.0, prior_sd=3.0),
        {"hats": bt.Beta(3, 9), "s1": bt.Beta(0.5, 0.5), "h3": bt.Beta(7, 1)},
        {"hats": bt.Gaussian(sd=2.0, mean=4.0), ("shoes", "s2"): bt.Gaussian(sd=0.1)},
        {
            None: bt.Linear(DIM, v=0.5),
            "hats": bt.Linear(DIM, v=0.5, mean=(1, 2, 3)),
            "h1": bt.Linear(DIM, v=0.5, precision=7.0),
        },
    ],
    ids=["Beta", "Gaussian", "Beta by node", "Gaussian by node", "Linear by node"],
)
@pytest.mark.parametrize("rule", [bt.Thompson(), bt.BestArm()], ids=["Thompson", "BestArm"])
def test_priors_stay_with_their_arms_and_clusters(prior: Any, rule: bt.Rule, engine: str) -> None:
    def build(tree: bt.Tree) -> bt.Policy:
        return bt.Policy(tree, belief=prior, rule=rule, rng=0)

    policy = build(SHOP)
    lived = events(SHOP, 40, 1, policy.dim)
    feed(policy, lived)
    policy.add_arms({"b1": ("bags",), "h4": ("hats",)})
    assert fits(policy, feed(build(policy.tree), lived))
    policy.move_arms({"h1": ("bags",), "b1": ("hats",)})
    assert fits(policy, feed(build(policy.tree), lived))
    policy.remove_arms(["h2", "h4"])
    lived = [event for event in lived if event[0] != "h2"]
    assert fits(policy, feed(build(policy.tree), lived))
    policy.retree(bt.Tree({"hats": {"old": ["h1", "s2"], "new": ["b1"]}, "shoes": ["s1", "h3"]}))
    # A prior that was given to an arm by its path stays with the arm wherever it goes.
    expected = prior if not isinstance(prior, dict) else {"s2" if isinstance(k, tuple) else k: prior[k] for k in prior}
    fresh = feed(bt.Policy(policy.tree, belief=expected, rule=rule, rng=0), lived)
    assert fits(policy, fresh)


@pytest.mark.parametrize("name", NAMES)
def test_an_arm_that_comes_back_starts_at_the_prior(name: str, engine: str) -> None:
    policy = make(name, SHOP)
    run(policy, 40, 0)
    policy.remove_arms(["h1"])
    policy.add_arms({"h1": ("hats",)})
    rows = policy._state.rows
    leaf = policy._state.walked_tree.shape.node_of[policy._state.walked_tree.position("h1")]
    cold = make(name, SHOP)._state.rows
    for field, array in rows.arrays().items():
        assert np.array_equal(array[leaf], cold.arrays()[field][-1]), field
    assert policy.tree.arms[-1] == "h1"


def test_a_prior_comes_back_with_its_arm_and_its_cluster(engine: str) -> None:
    policy = bt.TSC(SHOP, prior={"h1": bt.Beta(9, 1), "shoes": bt.Beta(1, 9)}, rng=0)
    policy.remove_arms(["h1", "s1", "s2"])
    assert {row.path for row in policy.table()} == {(), ("hats",), ("hats", "h2"), ("hats", "h3")}
    policy.add_arms({"h1": ("hats",), "s9": ("shoes",)})
    means = {row.path: row.mean for row in policy.table()}
    assert means[("hats", "h1")] == 0.9
    assert means[("shoes",)] == 0.1
    assert means[("shoes", "s9")] == 0.5


def test_empty_clusters_go(engine: str) -> None:
    policy = bt.HTS(bt.Tree({"a": {"x": [1], "y": [2]}, "b": [3]}), rng=0)
    policy.move_arms({1: ("b",), 2: ("b",)})
    assert policy.tree.clusters == {"b": [1, 2, 3]}
    assert {row.path for row in policy.table()} == {(), ("b",), ("b", 1), ("b", 2), ("b", 3)}


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_walks_the_cut_of_the_tree_it_has(name: str, engine: str) -> None:
    """Deep changes are kept in the given tree, also where the policy does not look that deep."""
    policy = make(name, SHOP)
    policy.add_arms({"deep": ("hats", "warm", "wool")})
    assert policy.tree.path("deep") == ("hats", "warm", "wool", "deep")
    depth = policy.tree.depth if policy.depth is None else policy.depth
    assert policy._state.walked_tree == policy.tree.cut(depth)


BAD: list[tuple[str, Any]] = [
    ("add_arms", {"s1": ("hats",)}),
    ("add_arms", {"new": "hats"}),
    ("add_arms", {"fine": ("hats",), 1.5: ("hats",)}),
    ("move_arms", {"s1": ("hats",), "nobody": ("hats",)}),
    ("remove_arms", ["s1", "nobody"]),
    ("remove_arms", list(SHOP.arms)),
    ("remove_arms", "s1"),
    ("retree", {"a": ["s1"]}),
    ("retree", None),
]


@pytest.mark.parametrize(("change", "argument"), BAD)
def test_a_change_that_fails_leaves_everything_as_it_was(change: str, argument: Any, engine: str) -> None:
    policy = bt.TSMax(SHOP, prior={"hats": bt.Beta(2, 3)}, rng=4)
    twin = bt.TSMax(SHOP, prior={"hats": bt.Beta(2, 3)}, rng=4)
    for one in (policy, twin):
        run(one, 20, 1)
    before, tree, walk = state(policy), policy.tree, policy._state.walk
    with pytest.raises(BanditreeError):
        getattr(policy, change)(argument)
    assert same(before, state(policy))
    assert policy.tree is tree
    assert policy._state.walk is walk
    assert run(policy, 20, 2) == run(twin, 20, 2)


def test_the_stream_goes_on(engine: str) -> None:
    """A change of the tree does not restart the stream: two policies, one with a change that changes nothing."""
    one, two = bt.TSC(SHOP, rng=3), bt.TSC(SHOP, rng=3)
    assert run(one, 10, 0) == run(two, 10, 0)
    two.retree(SHOP)
    assert run(one, 30, 1) == run(two, 30, 1)


@needs_native
def test_one_hundred_thousand_arms() -> None:
    """Re-clustering is exact, and quick enough to be tested at full size."""
    n = 100_000
    rng = np.random.default_rng(0)
    labels = rng.integers(300, size=n)
    with engines.using("native"):
        policy = bt.TSC(bt.Tree.from_labels(labels), rng=0)
    arms, rewards = rng.integers(n, size=300_000), rng.integers(2, size=300_000)
    policy.update_many(arms, rewards)
    new = bt.Tree.from_labels(rng.permutation(labels))
    policy.retree(new)
    fresh = bt.TSC(new, rng=0)
    fresh.update_many(arms, rewards)
    assert same(state(policy), state(fresh))
