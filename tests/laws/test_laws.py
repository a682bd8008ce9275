"""The laws of `banditree.testing` for every policy, tree shape and engine, and with sequences Hypothesis chooses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditree as bt
from banditree import testing
from banditree.testing.cases import fits
from tests.support.helpers import DIM, NAMES, TREES, factory, make, same, state
from tests.support.hypothesis_strategies import histories, specs, trees

LEARNED_NOISE, SKEWED, SHARP = bt.Gaussian(), bt.Beta(0.5, 3), bt.Beta(0.001, 0.001)
KNOWN_NOISE = bt.Gaussian(sd=0.5, mean=0.2, prior_sd=2.0)
OWN = {None: bt.Beta(1, 1), "x": bt.Beta(3, 9)}  # a prior of one cluster
SPECIAL: dict[str, list[dict[str, Any]]] = {  # options that single policies have
    "TS": [{"prior": SHARP}],
    "UCBC": [{"clock": "global"}],
    "TSMax": [{"best": "posterior"}],
    "LinTSC": [{"v": 0.1}],
    "LinUCBC": [{"c": 0.5}],
}


def every_option(name: str) -> list[dict[str, Any]]:
    """Every option that a policy has, and those that meet in the engine together."""
    about = bt.ALGORITHMS[name].about
    ways: list[dict[str, Any]] = [{"half_life": 40.0, "explore": 0.2}]
    ways += [{"depth": 0}, {"depth": 2, "half_life": 40.0}] if about.takes_depth else []
    ways += SPECIAL.get(name, [])
    if about.takes_prior and not about.takes_contexts:
        ways += [{"prior": prior} for prior in (KNOWN_NOISE, LEARNED_NOISE, SKEWED, OWN)]
        ways += [{"prior": LEARNED_NOISE, "half_life": 4.0}]
    return ways


CROSSED = [(name, options) for name in NAMES for options in every_option(name)]
IN_ORDER = (  # what does not hold while evidence fades with every reward, those of arms that leave too
    "rewards add up, in any order and in batches",
    "plays stand for rewards one by one",
    "changing the catalogue conserves evidence",
    "forgetting by 1 changes nothing, by 0 everything",
)


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_every_policy_keeps_the_laws(name: str, shape: str, engine: str) -> None:
    testing.check_policy(factory(name), trees=[TREES[shape]], require=testing.LAWS)


@pytest.mark.parametrize(("name", "options"), CROSSED, ids=[f"{name}, {options}" for name, options in CROSSED])
def test_options_keep_the_laws(name: str, options: dict[str, Any], engine: str) -> None:
    """All of them, but with a half-life those that hold where the order of rewards does not matter."""
    skip = IN_ORDER if "half_life" in options else ()
    require = [law for law in testing.LAWS if law not in skip]
    testing.check_policy(factory(name, **options), trees=[TREES["clusters"]], skip=skip, require=require)


@pytest.mark.parametrize("half_life", [5.0, 5000.0])
@pytest.mark.parametrize("name", NAMES)
def test_choices_are_as_likely_as_they_are_said_to_be_while_evidence_fades(name: str, half_life: float) -> None:
    """On the native engine, where wide trees take paths of their own, and what is derived follows the evidence.

    With the shorter half-life the weight of stored evidence falls below its least value on the way.
    """
    tree = bt.Tree({f"c{i}": [f"{i}-{j}" for j in range(12)] for i in range(5)})
    policy = make(name, tree, 1, half_life=half_life)
    rng = np.random.default_rng(2)
    x = None if policy.dim is None else np.ones(DIM)
    for step in range(150):
        arm = policy.choose(x) if step % 3 else tree.arms[int(rng.integers(60))]
        policy.update(arm, float(rng.random() < (0.9 if arm == "4-11" else 0.3)), x)
        if step in (30, 149):  # from the same beliefs
            chance: dict[Any, float] = dict(zip(tree.arms, policy.propensities(x).tolist(), strict=True))
            seen: Counter[Any] = Counter(policy.choose(x) for _ in range(400))
            assert fits(seen, chance, tree), (step, seen)


def wide_tree(n_groups: int, n_parts: int) -> bt.Tree:
    """A hundred arms in every part."""
    parts = [f"part {part}" for part in range(n_parts)]
    return bt.Tree({f"group {group}": dict.fromkeys(parts, 100) for group in range(n_groups)})


@pytest.mark.parametrize("name", NAMES)
def test_wide_trees_keep_the_laws(name: str, engine: str) -> None:
    testing.check_policy(factory(name), trees=[wide_tree(4, 3)])


@pytest.mark.parametrize("name", ["HTS", "ATS", "LinHTS"])  # one for each belief of the whole tree
def test_ten_thousand_arms_keep_the_laws(name: str) -> None:
    testing.check_policy(factory(name), trees=[wide_tree(10, 10)])


@dataclasses.dataclass(frozen=True)
class Greedy(bt.Rule):
    """The highest mean."""

    def score(self, view: bt.View) -> Any:
        return view.mean()


@pytest.mark.parametrize("belief", [bt.Beta(), bt.Gaussian(), bt.Counts(), bt.Linear(2)])
def test_a_rule_of_ones_own_keeps_the_laws(belief: bt.Belief) -> None:
    testing.check_policy(lambda tree, rng: bt.Policy(tree, belief=belief, rule=Greedy(), rng=rng))


@given(trees, st.integers(0, 2**32), st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("name", NAMES)
def test_random_trees_and_seeds(engine: str, name: str, tree: bt.Tree, seed: int, data: st.DataObject) -> None:
    """Any tree and rewards: the arm is the tree's, choosing changes nothing, any order and batch give the same."""
    history = data.draw(histories(tree))
    shuffled = data.draw(st.permutations(history))
    policy, other, batched = (make(name, tree, seed) for _ in range(3))
    rng = np.random.default_rng(seed)
    xs = {id(event): None if policy.dim is None else rng.standard_normal(DIM) for event in history}
    x = None if policy.dim is None else np.ones(DIM)
    for event in history:
        before = state(policy)
        assert policy.choose(x) in tree
        assert same(before, state(policy))
        policy.update(*event, xs[id(event)])
    for event in shuffled:
        other.update(*event, xs[id(event)])
    arms, rewards = [event[0] for event in shuffled], [event[1] for event in shuffled]
    many = None if policy.dim is None else np.array([xs[id(event)] for event in shuffled]).reshape(-1, DIM)
    batched.update_many(arms, rewards, contexts=many)
    rounding = {} if policy.dim is None else {"rtol": 1e-9, "atol": 1e-11}
    assert same(state(policy), state(other), **rounding)
    assert same(state(policy), state(batched), **rounding)


@given(specs(), st.integers(0, 2**32))
@pytest.mark.parametrize("name", ["HTS", "UCT", "TSMax", "LinHTS"])
def test_inner_nodes_are_the_sum_of_their_arms(engine: str, name: str, spec: Any, seed: int) -> None:
    """Evidence adds up: on every tree a node's arrays are the sums of its children's."""
    tree = bt.Tree(spec[0])
    policy = make(name, tree, seed)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x = None if policy.dim is None else rng.integers(-2, 3, DIM).astype(float)
        policy.update(tree.arms[rng.integers(tree.n_arms)], float(rng.integers(2)), x)
    walked = policy._state.walked_tree.shape
    for field in policy._state.rows.EVIDENCE:
        values = getattr(policy._state.rows, field)
        for node in walked.inner:
            children = slice(walked.start[node], walked.start[node + 1])
            assert np.array_equal(values[node], values[children].sum(axis=0)), field
