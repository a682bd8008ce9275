"""The probability of a choice, exactly: against an independent quadrature, against many choices, on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import engines
from tests.support.helpers import ENGINES, NAMES, SHOP, TREES, events, feed, make, needs_native
from tests.support.walk_law import law
from tests.support.winning import P_FLOOR, chi_square

OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in NAMES} | {
    "TS, prior below 1": ("TS", {"prior": bt.Beta(0.05, 0.05)}),
    "HTS, skewed": ("HTS", {"prior": bt.Beta(0.5, 3)}),
    "TSC, a prior of each": ("TSC", {"prior": {None: bt.Beta(1, 1), "a": bt.Beta(8, 2), "x": bt.Beta(0.3, 0.4)}}),
    "TSC, Gaussian": ("TSC", {"prior": bt.Gaussian(sd=0.5, mean=0.2, prior_sd=2.0)}),
    "ATS, a prior of each": ("ATS", {"prior": {None: bt.Beta(1, 4), "a": bt.Beta(8, 2), "x": bt.Beta(0.3, 0.4)}}),
    "ATS, Gaussian": ("ATS", {"prior": bt.Gaussian(sd=0.5, mean=0.2, prior_sd=2.0)}),
    "ATS, half-life": ("ATS", {"half_life": 10.0, "explore": 0.1}),
    "TSMax, Gaussian": ("TSMax", {"prior": bt.Gaussian()}),
    "TSMax, posterior": ("TSMax", {"best": "posterior"}),
    "UCBC, global": ("UCBC", {"clock": "global"}),
    "HTS, depth 1": ("HTS", {"depth": 1}),
    "LinTSC, v": ("LinTSC", {"v": 0.1}),
    "TSC, explore": ("TSC", {"explore": 0.2}),
    "LinUCBC, explore": ("LinUCBC", {"explore": 0.2}),
    "HTS, half-life": ("HTS", {"half_life": 10.0}),
    "UCT, half-life": ("UCT", {"half_life": 10.0}),
    "LinTSC, half-life": ("LinTSC", {"half_life": 10.0}),
}
MASKS: dict[str, Any] = {"all": None, "some": ["a", "c", "d", "f"], "one cluster": ["a", "b"], "one arm": ["e"]}


def learned(case: str, tree: bt.Tree = TREES["clusters"], seed: int = 1, n: int = 40) -> tuple[bt.Policy, Any]:
    name, options = OPTIONS[case]
    policy = make(name, tree, seed, **options)
    feed(policy, events(tree, n, 7, policy.dim))
    return policy, None if policy.dim is None else np.array([0.5, -1.0, 0.25])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", OPTIONS)
def test_propensities_are_those_of_an_independent_quadrature(case: str, mask: str) -> None:
    found = []
    for engine in ENGINES:
        with engines.using(engine):
            policy, x = learned(case)
        found.append(policy.propensities(x, only=MASKS[mask]))
        leeway = 2e-6 if policy._state.rows.joint else 1e-9  # copies of negligible weight are left out
        assert np.allclose(found[-1], law(policy, MASKS[mask], x), rtol=1e-6, atol=leeway)
        assert abs(found[-1].sum() - 1) < 1e-12
        if MASKS[mask] is not None:
            assert not found[-1][[arm not in MASKS[mask] for arm in policy.tree.arms]].any()
    assert np.allclose(found[0], found[-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("case", OPTIONS)
def test_a_decision_has_the_propensity_of_its_arm(case: str, shape: str, engine: str) -> None:
    tree = TREES[shape]
    if "each" in case and "a" not in tree:
        tree = bt.Tree({"x": ["a", "b"], "y": ["c"]})
    if "each" in case and tree.nodes.cluster(("x",)) is None:
        tree = bt.Tree({"x": ["a", "b"], "y": ["c"]})
    policy, x = learned(case, tree)
    chances = dict(zip(tree.arms, policy.propensities(x).tolist(), strict=True))
    for _ in range(8):
        decision = policy.decide(x)
        assert decision.propensity > 0
        assert np.isclose(decision.propensity, chances[decision.arm], rtol=1e-9)
        assert decision.path == tree.path(decision.arm)
        walked = len(decision.path) if policy.depth is None else min(len(decision.path), policy.depth + 1)
        walked = 1 if policy._state.rows.joint else walked  # all arms compete at once
        assert len(decision.steps) == walked
        n, e = tree.n_arms, policy.explore
        assert np.isclose(decision.propensity, (1 - e) * np.prod(decision.steps) + e / n, rtol=1e-12)
    assert min(chances.values()) >= policy.explore / tree.n_arms


@needs_native
@pytest.mark.parametrize("case", ["TS", "TSC", "HTS", "TSMax", "TSC, explore", "HTS, skewed", "TSC, Gaussian"])
def test_a_million_choices(case: str) -> None:
    with engines.using("native"):
        policy, _ = learned(case)
    counts = np.zeros(6)
    places = {arm: at for at, arm in enumerate(policy.tree.arms)}
    for arm, often in zip(*np.unique(policy.choose_many(1_000_000).astype(str), return_counts=True), strict=True):
        counts[places[arm]] = often
    chances = policy.propensities()
    assert chi_square(counts.astype(np.int64), chances) > P_FLOOR
    wrong = chances + 0.01 * (np.arange(6) == 0) - 0.01 * (np.arange(6) == np.argmax(chances))
    assert chi_square(counts.astype(np.int64), wrong) < P_FLOOR  # an error of a hundredth is found


@needs_native
@pytest.mark.parametrize("options", [{}, {"prior": bt.Beta(0.2, 0.9)}, {"half_life": 60.0}, {"explore": 0.1}])
@pytest.mark.parametrize("k", [60, 500])
def test_wide_nodes(k: int, options: dict[str, Any]) -> None:
    found = []
    for engine in ENGINES:
        with engines.using(engine):
            policy = bt.TS(bt.Tree(k), rng=1, **options)
        rng = np.random.default_rng(2)
        arms = rng.integers(k // 3, size=300)
        policy.update_many(arms, (rng.random(300) < arms / k).astype(float))
        found.append(policy.propensities())
    assert np.allclose(found[0], found[1], rtol=0, atol=1e-9)
    assert np.allclose(found[0], law(policy), rtol=1e-6, atol=1e-9)
    assert found[0].min() >= options.get("explore", 0.0) / k
    with engines.using("native"):
        native = bt.from_bytes(policy.to_bytes(), rng=3)
    assert chi_square(np.bincount(native.choose_many(100_000), minlength=k), found[0]) > P_FLOOR


def test_ties_of_an_index_share(engine: str) -> None:
    policy = bt.UCB1(bt.Tree(5), rng=1)
    assert policy.propensities().tolist() == [0.2] * 5
    policy.update_many([0, 1, 2], [1, 0, 0])
    assert policy.propensities().tolist() == [0, 0, 0, 0.5, 0.5]
    assert policy.propensities(only=[0, 1, 2]).tolist() == [1, 0, 0, 0, 0]
    assert policy.propensities(only=[1, 2]).tolist() == [0, 0.5, 0.5, 0, 0]
    assert policy.decide(only=[1, 2]).propensity == 0.5


@needs_native
@pytest.mark.parametrize("name", ["UCB1", "UCBC", "UCT", "LinUCB", "LinUCBC"])
def test_an_index_chosen_natively_is_never_impossible(name: str) -> None:
    """Both engines round the same where indices are close: what was chosen has a probability above 0."""
    policy = make(name, bt.Tree({"x": 20, "y": 15}), 1)
    rng = np.random.default_rng(3)
    for _ in range(400):
        x = None if policy.dim is None else np.eye(3)[rng.integers(3)]
        decision = policy.decide(x)
        assert decision.propensity > 0
        policy.update(decision.arm, float(rng.integers(2)), x)


def test_decisions_change_no_belief_and_draw_as_choices_do(engine: str) -> None:
    one, two = bt.TSC(SHOP, rng=5), bt.TSC(SHOP, rng=5)
    before = one.to_bytes()
    assert [one.decide().arm for _ in range(20)] == [two.choose() for _ in range(20)]
    assert one.to_bytes() == before
    one.propensities()
    assert one.choose() == two.choose()  # probabilities draw nothing


def test_explore_is_checked(engine: str) -> None:
    for odd in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidValue, match=r"explore=.* must be"):
            bt.TS(SHOP, explore=odd)
    with pytest.raises(InvalidType, match=r"explore='0\.1' must be a number"):
        bt.TS(SHOP, explore="0.1")  # type: ignore[arg-type]
    assert bt.TS(SHOP, explore=1.0).propensities().tolist() == [0.2] * 5


def test_contexts_are_asked_for(engine: str) -> None:
    policy = make("LinTS", SHOP)
    for call in (policy.decide, policy.propensities):
        with pytest.raises(InvalidValue, match="needs a context of 3 numbers"):
            call()
        with pytest.raises(InvalidValue, match="a shape of"):
            call(np.ones(2))


@pytest.mark.parametrize("name", ["LinUCB", "LinUCBC", "LinUCT"])
def test_the_bounds_that_decide_are_those_that_probabilities_come_from(engine: str, name: str) -> None:
    """Arms that got the same rewards in another order differ in the last digit: whichever is ahead by it has won."""
    rng = np.random.default_rng(3)
    for seed in range(30):
        policy = make(name, SHOP, seed)
        contexts, rewards = rng.standard_normal((4, 3)), rng.random(4)
        for arm in SHOP.arms:
            for place in rng.permutation(4).tolist():
                policy.update(arm, rewards[place], contexts[place])
        for context in rng.standard_normal((5, 3)):
            decision = policy.decide(context, exclude=["h2"])
            assert decision.propensity > 0
            chances = policy.propensities(context, exclude=["h2"])
            assert chances[SHOP.position(decision.arm)] == decision.propensity
            assert policy.decide(context).propensity > 0
