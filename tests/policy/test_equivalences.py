"""Policies that are the same thing by another name, and engines that take the same steps.

The native engine walks nodes with many children by a shortcut that is exact in distribution. Without it, and on nodes
with few, it draws child by child, as the readable engine does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditree as bt
from banditree.errors import InvalidValue
from banditree.policy import engines
from banditree.stream import native_stream
from banditree.testing import alike
from tests.support.helpers import DIM, NAMES, TREES, events, feed, make, needs_native, run, same, state
from tests.support.hypothesis_strategies import trees

Make = Callable[[bt.Tree, Any], bt.Policy]


# One policy by another name


@given(trees, st.integers(0, 2**32))
@settings(max_examples=15)
@pytest.mark.parametrize(
    ("deep", "shallow", "depth"),
    [
        ("HTS", "TS", 0),
        ("HTS", "TSC", 1),
        ("UCT", "UCB1", 0),
        ("UCT", "UCBC", 1),
        ("LinHTS", "LinTS", 0),
        ("LinHTS", "LinTSC", 1),
        ("LinUCT", "LinUCB", 0),
        ("LinUCT", "LinUCBC", 1),
    ],
)
def test_the_deep_policy_on_a_shallow_tree(
    engine: str, deep: str, shallow: str, depth: int, tree: bt.Tree, seed: int
) -> None:
    """Exactly: on the cut tree, and on the whole tree with the depth named."""
    runs = [
        run(make(shallow, tree, seed), 40, seed),
        run(make(deep, tree.cut(depth), seed), 40, seed),
        run(make(deep, tree, seed, depth=depth), 40, seed),
    ]
    assert runs[0] == runs[1] == runs[2]


@given(trees, st.integers(0, 2**32))
@settings(max_examples=15)
def test_named_policies_are_their_parts(engine: str, tree: bt.Tree, seed: int) -> None:
    pairs: list[tuple[str, bt.Belief, bt.Rule, int | None]] = [
        ("TSC", bt.Beta(), bt.Thompson(), 1),
        ("UCT", bt.Counts(), bt.UCB(), None),
        ("TSMax", bt.Beta(), bt.BestArm(), 1),
        ("LinUCB", bt.Linear(DIM), bt.UCB(c=2.0), 0),
    ]
    for name, belief, rule, depth in pairs:
        built = bt.Policy(tree, belief=belief, rule=rule, depth=depth, rng=seed)
        assert run(built, 30, seed) == run(make(name, tree, seed), 30, seed)


def test_clusters_of_one_arm_are_no_clusters(engine: str) -> None:
    """TS is TSC on one cluster an arm, in distribution; the control, TSC on pairs, is not."""
    flat, pairs = bt.Tree(6), bt.Tree(dict.fromkeys(range(3), 2))
    alone = bt.Tree({f"cluster {i}": [i] for i in range(6)})
    history = events(flat, 12, 3)
    policies = [make("TS", flat, 1), make("TSC", alone, 2), make("TSC", pairs, 3)]
    ts, tsc, control = (Counter(feed(p, history).choose_many(20_000).tolist()) for p in policies)
    assert alike(ts, tsc)
    assert not alike(ts, control)


# Two engines, one truth


def twins(build: Make, tree: bt.Tree, seed: int) -> tuple[bt.Policy, bt.Policy]:
    """The same policy on both engines, both drawing from a native stream of the same seed."""
    with engines.using("native", shortcuts=False):
        native = build(tree, native_stream(seed))
    with engines.using("readable"):
        readable = build(tree, native_stream(seed))
    assert (native.engine, readable.engine) == ("native", "readable")
    return native, readable


def step_together(build: Make, tree: bt.Tree, seed: int, steps: int = 60) -> None:
    """Choices one by one and in batches, rewards one by one and in batches: the same arms, beliefs and next draws."""
    native, readable = twins(build, tree, seed)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        if step % 20 == 19:
            n = int(rng.integers(1, 60))
            X = None if native.dim is None else rng.standard_normal((n, native.dim))
            chosen = native.choose_many(n, contexts=X)
            assert np.array_equal(chosen, readable.choose_many(n, contexts=X))
            rewards = rng.integers(0, 5, n) / 4
            for policy in (native, readable):
                policy.update_many(chosen, rewards, contexts=X)
            continue
        x = None if native.dim is None else rng.standard_normal(native.dim)
        arm = native.choose(x)
        assert arm == readable.choose(x), step
        reward = float(rng.integers(0, 5) / 4)
        for policy in (native, readable):
            policy.update(arm, reward, x)
    assert same(state(native), state(readable), rtol=1e-9, atol=1e-12)
    streams: list[Any] = [native._stream, readable._stream]
    assert np.array_equal(*(one.state() for one in streams))


@needs_native
@given(trees, st.integers(0, 2**32))
@settings(max_examples=10)
@pytest.mark.parametrize("name", NAMES)
def test_the_engines_agree_draw_for_draw(name: str, tree: bt.Tree, seed: int) -> None:
    step_together(lambda tree, rng: make(name, tree, rng), tree, seed)


BELIEFS: dict[str, bt.Belief] = {
    "Beta": bt.Beta(),
    "Beta, skewed": bt.Beta(2.5, 7),
    "Beta below 1": bt.Beta(0.3, 0.001),
    "Gaussian": bt.Gaussian(),
    "Gaussian, options": bt.Gaussian(sd=0.3, mean=-1.0, prior_sd=5.0),
    "Linear": bt.Linear(DIM),
    "Linear, options": bt.Linear(DIM, v=0.3, mean=[0.5, -1, 0], precision=3.0),
    "Counts": bt.Counts(),
}
RULES: dict[str, bt.Rule] = {
    "Thompson": bt.Thompson(),
    "UCB": bt.UCB(),
    "UCB, c": bt.UCB(c=0.7),
    "UCB, global": bt.UCB(clock="global"),
    "BestArm": bt.BestArm(),
    "BestArm, posterior": bt.BestArm(best="posterior"),
}


def valid(belief: bt.Belief, rule: bt.Rule) -> bool:
    try:
        rule.check(belief)
    except InvalidValue:
        return False
    return True


COMBINATIONS = [(b, r) for b in BELIEFS for r in RULES if valid(BELIEFS[b], RULES[r])]


def test_the_invalid_combinations_are_the_ones_without_a_meaning() -> None:
    """Counts have no prior to draw from; with contexts there is no best posterior mean."""
    left_out = {(b, r) for b in BELIEFS for r in RULES} - set(COMBINATIONS)
    assert left_out == {("Counts", r) for r in ("Thompson", "BestArm", "BestArm, posterior")} | {
        (b, "BestArm, posterior") for b in ("Linear", "Linear, options")
    }


@needs_native
@pytest.mark.parametrize(("belief", "rule"), COMBINATIONS)
def test_every_belief_and_rule_agrees_draw_for_draw(belief: str, rule: str) -> None:
    def build(tree: bt.Tree, rng: Any) -> bt.Policy:
        return bt.Policy(tree, belief=BELIEFS[belief], rule=RULES[rule], rng=rng)

    for seed, shape in enumerate(("flat", "clusters", "uneven", "chain", "singletons")):
        step_together(build, TREES[shape], seed, steps=80)


@needs_native
@pytest.mark.parametrize(
    "prior",
    [
        {"x": bt.Beta(3, 9), "f": bt.Beta(0.2, 5)},
        {None: bt.Beta(2, 2), ("y",): bt.Beta(9, 1), "a": bt.Beta(1, 30)},
        {"x": bt.Gaussian(sd=2.0, mean=1.0), "e": bt.Gaussian(sd=0.1)},
        {None: bt.Linear(DIM), "x": bt.Linear(DIM, mean=1.0), "b": bt.Linear(DIM, precision=9.0)},
    ],
)
def test_priors_of_their_own_agree_draw_for_draw(prior: Any) -> None:
    def build(tree: bt.Tree, rng: Any) -> bt.Policy:
        return bt.Policy(tree, belief=prior, rule=bt.Thompson(), rng=rng)

    step_together(build, TREES["clusters"], 5, steps=100)


@needs_native
@pytest.mark.parametrize("name", NAMES)
def test_wide_nodes_agree_draw_for_draw(name: str) -> None:
    tree = bt.Tree({"wide": 60, "wider": {"deep": 100}, "narrow": 2})
    step_together(lambda tree, rng: make(name, tree, rng), tree, 4, steps=150)


@needs_native
def test_the_engines_agree_on_the_best_arm() -> None:
    """Tenths of rewards do not add up exactly, and means that should tie may not; the engines must agree."""
    tree = bt.Tree({"c": 3})
    for seed in range(400):
        native, readable = twins(lambda tree, rng: bt.TSMax(tree, rng=rng), tree, 0)
        rng = np.random.default_rng(seed)
        for arm, tenths in rng.integers([[3, 4]] * 12).tolist():
            for policy in (native, readable):
                policy.update(arm, tenths / 10)
        assert same(state(native), state(readable)), seed


@needs_native
@pytest.mark.parametrize("name", NAMES)
def test_every_policy_runs_natively(name: str) -> None:
    assert engines.engine() == "native"
    policy = make(name, TREES["uneven"])
    assert policy.engine == "native"
    assert "native engine" in repr(policy)
    policy.move_arms({"a": ()})
    assert policy.engine == "native"


@needs_native
@given(st.integers(0, 2**32))
@settings(max_examples=5)
@pytest.mark.parametrize("name", ["HTS", "UCT", "TSMax", "LinHTS"])
def test_large_batches_agree_draw_for_draw(name: str, seed: int) -> None:
    """More decisions than are scored at once."""
    native, readable = twins(lambda tree, rng: make(name, tree, rng), TREES["uneven"], seed)
    history = events(native.tree, 30, seed, native.dim)
    n = 40_000
    X = None if native.dim is None else np.random.default_rng(seed).standard_normal((n, native.dim))
    chosen = [feed(policy, history).choose_many(n, contexts=X) for policy in (native, readable)]
    assert np.array_equal(chosen[0], chosen[1])


@pytest.mark.parametrize("n", [5, 700])  # the native engine takes the one reward by reward, the other arm by arm
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_any_size_is_the_same_as_one_by_one(engine: str, name: str, n: int) -> None:
    tree = bt.Tree({"a": ["a1", "a2", "a3"], "b": {"c": ["c1", "c2"], "d": ["d1"]}, "e": list(range(60))})
    batched, stepped = make(name, tree), make(name, tree)
    rng = np.random.default_rng(n)
    places, rewards = rng.integers(0, tree.n_arms, n), rng.integers(0, 2, n)
    X = None if batched.dim is None else rng.integers(-2, 3, (n, DIM)).astype(float)
    for policy in (batched, stepped):
        policy.choose(None if X is None else X[0])  # builds what the engine derives
    batched.update_many(tree.ids(places), rewards, contexts=X)
    for i, place in enumerate(places):
        stepped.update(tree.arms[place], int(rewards[i]), None if X is None else X[i])
    assert same(state(batched), state(stepped), **({} if X is None else {"rtol": 1e-9, "atol": 1e-11}))
    for _ in range(20):  # in contexts that are at right angles to none before: there two indices tie but for rounding
        x = None if X is None else rng.standard_normal(DIM)
        assert batched.choose(x) == stepped.choose(x)


@pytest.mark.parametrize("n", [5, 700])
def test_a_batch_of_any_size_is_learned_whole_or_not_at_all(engine: str, n: int) -> None:
    for name, bad in [("TSC", 1.5), ("HTS", np.nan), ("LinTSC", np.inf), ("UCB1", -np.inf), ("LinTSC", 1e101)]:
        policy = make(name, bt.Tree({"a": [0, 1], "b": [2, 3]}))
        before = state(policy)
        rewards = np.zeros(n)
        rewards[-1] = bad
        with pytest.raises(InvalidValue, match="for arm 3"):
            policy.update_many([0] * (n - 1) + [3], rewards, contexts=None if policy.dim is None else np.ones((n, DIM)))
        assert same(before, state(policy))
