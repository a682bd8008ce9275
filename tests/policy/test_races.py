"""Probabilities of ATS with arms excluded: against the readable engine and choices, whatever was asked before."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from tests.support.helpers import needs_native
from tests.support.winning import P_FLOOR, chi_square

pytestmark = needs_native

WORLDS: dict[str, tuple[dict[str, Any], float, int]] = {  # options, level of the rates, decisions
    "rates": ({}, 0.3, 600),
    "rare": ({}, 0.02, 3_000),
    "long": ({}, 0.3, 20_000),
    "fading": ({"half_life": 200.0, "explore": 0.1}, 0.3, 600),
    "normal": ({"prior": bt.Gaussian(sd=0.4, mean=0.3, prior_sd=0.3)}, 0.3, 600),
    "learned noise": ({"prior": bt.Gaussian()}, 0.3, 2_000),
}
TREE = bt.Tree({f"c{i}": [f"c{i}-{j}" for j in range(20)] for i in range(8)})


@cache
def saved(world: str) -> bytes:
    options, level, steps = WORLDS[world]
    policy = bt.ATS(TREE, rng=3, **options)
    rng = np.random.default_rng(5)
    rates = np.clip(level * np.exp(np.repeat(rng.normal(0, 0.4, 8), 20) + rng.normal(0, 0.2, 160)), 0, 0.95)
    for _ in range(steps):
        arm = policy.choose()
        rate = rates[TREE.position(arm)]
        policy.update(arm, rate + 0.3 * rng.standard_normal() if "prior" in options else float(rng.random() < rate))
    return policy.to_bytes()


def policy_of(world: str, engine: str = "native") -> bt.Policy:
    with engines.using(engine):
        return bt.from_bytes(saved(world), rng=1)


def exclusions(policy: bt.Policy) -> dict[str, list[Any]]:
    best = np.array(policy.tree.arms)[np.argsort(-policy.propensities())]
    rng = np.random.default_rng(2)
    return {
        "the best": best[:1].tolist(),
        "the three best": best[:3].tolist(),
        "three of the worst": best[-3:].tolist(),
        "nobody": [],
        "a cluster": [arm for arm in TREE.arms if str(arm).startswith("c2-")],
        "most of them": best[:90].tolist(),
        "some": rng.choice(best, 10, replace=False).tolist(),
        "all but two": best[2:].tolist(),
    }


@pytest.mark.parametrize("world", WORLDS)
def test_excluded_arms_are_as_if_they_were_not_there(world: str) -> None:
    """The readable engine integrates again without them, by other panels. An answer does not depend on earlier ones."""
    policy, readable = policy_of(world), policy_of(world, "readable")
    for arms in exclusions(policy).values():
        found, fresh = policy.propensities(exclude=arms), policy_of(world).propensities(exclude=arms)
        assert np.abs(found - readable.propensities(exclude=arms)).max() < 3e-9
        assert np.abs(found - fresh).max() < 3e-9
        assert abs(found.sum() - 1) < 1e-12
        assert not found[TREE.positions(arms)].any()
        others = [arm for arm in TREE.arms if arm not in set(arms)]
        assert np.abs(policy.propensities(only=others) - found).max() < 3e-9
        for _ in range(3):
            decision = policy.decide(exclude=arms)
            assert decision.arm not in arms
            assert decision.propensity == pytest.approx(found[TREE.position(decision.arm)], rel=1e-6, abs=1e-9)
    assert np.abs(policy.propensities() - readable.propensities()).max() < 3e-9


@pytest.mark.parametrize("world", ["rates", "rare", "normal"])
@pytest.mark.parametrize("which", ["the three best", "a cluster", "most of them"])
def test_choices_follow_the_probabilities_of_the_arms_that_are_left(world: str, which: str) -> None:
    policy = policy_of(world)
    arms = exclusions(policy)[which]
    limits = policy._state.walk.limits(TREE.positions(arms), False)
    counts = np.zeros(TREE.n_arms, np.int64)
    for _ in range(40_000):
        counts[policy._state.walk.choose_within(limits, None)] += 1
    chances = policy.propensities(exclude=arms)
    assert chi_square(counts, chances) > P_FLOOR
    other = policy.propensities(exclude=[*arms, TREE.arms[int(np.argmax(chances))]])
    assert chi_square(counts, (chances + other) / 2) < P_FLOOR  # not those of a law with one arm less


def test_probabilities_change_with_every_reward() -> None:
    policy = policy_of("rates")
    arm = TREE.arms[int(np.argmax(policy.propensities()))]
    before = policy.propensities()
    policy.propensities(exclude=[arm]), policy.propensities(only=[arm, "c1-1"])
    policy.update_many([arm] * 30, [0.0] * 30)
    after = policy_of("rates")
    after.update_many([arm] * 30, [0.0] * 30)
    assert policy.propensities()[TREE.position(arm)] < before[TREE.position(arm)] - 1e-3
    for limits in ({}, {"exclude": [arm]}, {"only": [arm, "c1-1"]}):
        assert np.abs(policy.propensities(**limits) - after.propensities(**limits)).max() < 3e-9
    policy.forget(0.1)
    assert np.abs(policy.propensities() - after.propensities()).max() > 1e-3


@pytest.mark.parametrize("prior", [bt.Beta(1, 1), bt.Gaussian(sd=1.0)], ids=["rates", "normal"])
def test_an_excluded_arm_that_is_almost_surely_the_stray_takes_no_digits(prior: bt.Belief) -> None:
    """A dead arm among similar siblings has nearly all odds: those of the others must not be found by subtraction."""
    tree = bt.Tree({f"c{i}": [f"c{i}-{j}" for j in range(30)] for i in range(6)})
    found = []
    for engine in ("readable", "native"):
        with engines.using(engine):
            policy = bt.ATS(tree, prior=prior, rng=1)
        rate = np.full(180, 0.5) + np.repeat(np.linspace(-0.05, 0.05, 6), 30)
        policy.update_many(tree.arms, 200 * rate, plays=[200] * 180)
        dead = 0.0 if isinstance(prior, bt.Beta) else -300.0
        policy.update_many(["c5-0"], [dead], plays=[100])
        best = max(tree.arms, key=lambda arm: policy.propensity(arm, exclude=["c5-0"]))
        found.append([policy.propensity(best, exclude=["c5-0"]), *policy.propensities(exclude=["c5-0"])])
        assert sum(found[-1][1:]) == pytest.approx(1)
    assert np.abs(np.subtract(found[0], found[1])).max() < 1e-7
