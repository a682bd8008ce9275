"""Gaussian beliefs without ``sd``: noise and mean of rewards are learned from all arms together."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.beliefs.gaussian import LearnedGaussianRows
from banditree.errors import InvalidValue
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.helpers import needs_native, same, state

TREE = bt.Tree({"a": ["x", "y"], "b": ["z"]})


def learned(policy: bt.Policy) -> float:
    rows = policy._state.rows
    assert isinstance(rows, LearnedGaussianRows)
    return rows.learned_sd()


def test_the_estimate_by_hand(engine: str) -> None:
    """x: 3 and 5, z: 2. From 1, the centre: x has n = 2, t = 6, squares 20; z has n = 1, t = 1, squares 1.

    So m = (6/3 + 1/2) / (2/3 + 1/2) = 15/7, and 21 - 36/3 - 1/2 - 15/7 * 5/2 = 22/7 is left of the squares. Added is
    the variance of all rewards, (21 - 7^2 / 3) / 3.
    """
    policy = bt.TSC(TREE, prior=bt.Gaussian(mean=1.0), rng=0)
    assert learned(policy) == 1.0
    assert policy["x"].mean == 1.0
    policy.update_many(["x", "z", "x"], [3.0, 2.0, 5.0])
    sd = np.sqrt((22 / 7 + 14 / 9) / 3)
    assert learned(policy) == pytest.approx(sd)
    row, mean = policy["x"], (22 / 7 + 3 + 5) / 3
    assert row.mean == pytest.approx(mean)
    assert row.interval == pytest.approx((mean - 1.96 * sd / np.sqrt(3), mean + 1.96 * sd / np.sqrt(3)))
    assert policy["b",].mean == pytest.approx((22 / 7 + 2) / 2)
    assert policy["y"].mean == pytest.approx(22 / 7)
    assert policy.propensities().sum() == pytest.approx(1)


def test_a_node_with_its_own_prior_keeps_its_mean(engine: str) -> None:
    policy = bt.TS(TREE, prior={None: bt.Gaussian(), "y": bt.Gaussian(mean=3.0)}, rng=0)
    policy.update_many(["x", "x"], [10.0, 12.0])
    assert policy["z"].mean == pytest.approx(11)
    assert policy["y"].mean == 3.0


def test_a_row_of_several_plays_says_of_the_noise_what_one_reward_does(engine: str) -> None:
    policy = bt.TS(TREE, prior=bt.Gaussian(), rng=0)
    policy.update_many(["x", "y"], [12.0, 5.0], plays=[4, 1])
    m = (12 / 5 + 5 / 2) / (4 / 5 + 1 / 2)
    # 12^2 / 4 - 12^2 / 5 + 5^2 / 1 - 5^2 / 2 without what m explains, and the variance of all: over two rows
    around = 36 - 28.8 + 25 - 12.5 - m * (12 / 5 + 5 / 2)
    assert learned(policy) ** 2 == pytest.approx((around + (61 - 17**2 / 5) / 2) / 2)
    assert policy["x"].plays == 4


@pytest.mark.parametrize("level", [0.0, 1000.0, -1e6])
@pytest.mark.parametrize("kind", [bt.TS, bt.TSC, bt.HTS, bt.TSMax, partial(bt.TSMax, best="posterior")])
def test_rewards_far_from_0_are_learned_as_those_near_it(kind: Any, level: float, engine: str) -> None:
    """Five arms one noise apart: the learned sd is about 1, and the best arm has nearly all plays in the end."""
    tree, rng = bt.Tree({"a": [0, 1], "b": [2, 3, 4]}), np.random.default_rng(3)
    policy = kind(tree, prior=bt.Gaussian(), rng=2)
    best = 0
    for step in range(400):
        arm = policy.choose()
        policy.update(arm, level + arm + float(rng.standard_normal()))
        best += arm == 4 and step >= 200
    assert learned(policy) == pytest.approx(1, rel=0.25)
    assert best > 180


def test_evidence_adds_up_is_kept_and_moves(engine: str) -> None:
    rng = np.random.default_rng(0)
    arms, rewards = rng.choice(TREE.arms, 700), 5 + 2 * rng.standard_normal(700)
    one, many = (bt.HTS(TREE, prior=bt.Gaussian(), rng=0) for _ in range(2))
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        one.update(arm, reward)
    many.update_many(arms, rewards)  # so many that the native engine would sum them by arm
    assert same(state(one), state(many), rtol=1e-12)
    again = bt.from_bytes(many.to_bytes(), rng=0)
    assert same(state(again), state(many))
    assert again.belief == bt.Gaussian()
    before = learned(many)
    many.move_arms({"x": ("b",)})
    assert learned(many) == pytest.approx(before)
    many.add_arms({"new": ("b",)}, prior="cluster")
    assert many["new"].mean == pytest.approx(5, abs=0.3)
    many.forget(0.5)
    assert learned(many) == pytest.approx(2, rel=0.1)


@needs_native
@pytest.mark.parametrize("half_life", [None, 7.0])
@pytest.mark.parametrize("kind", [bt.TS, bt.TSC, bt.HTS, bt.TSMax])
def test_both_engines_take_the_same_steps(kind: Any, half_life: float | None) -> None:
    runs = []
    for name in ("native", "readable"):
        with engines.using(name, shortcuts=False):
            policy = kind(TREE, prior=bt.Gaussian(mean=1.0), half_life=half_life, rng=native_stream(3))
        assert policy.engine == name
        rng, chosen = np.random.default_rng(0), []
        for step in range(200):
            arm = policy.choose()
            chosen.append(arm)
            policy.update(arm, float(5 * rng.standard_normal() + TREE.position(arm)))
            if step % 50 == 0:
                policy.update_many(["x", "z"], [10.0, 3.0], plays=[4, 2])
        runs.append((chosen, learned(policy)))
    assert runs[0][0] == runs[1][0]
    assert runs[0][1] == pytest.approx(runs[1][1], rel=1e-9)


@pytest.mark.parametrize("sd", [0.5, 1.0, 5.0])
def test_regret_is_that_of_a_policy_that_was_told(sd: float) -> None:
    """At most 5% more, within noise, over 40 instances; a policy that was told ten times the noise is the control."""
    rng = np.random.default_rng(1)
    policies = {
        "told": partial(bt.TS, prior=bt.Gaussian(sd=sd)),
        "not told": partial(bt.TS, prior=bt.Gaussian()),
        "told wrong": partial(bt.TS, prior=bt.Gaussian(sd=10 * sd)),
    }
    regret: dict[str, list[float]] = {name: [] for name in policies}
    for _ in range(40):
        problem = bt.problems.gaussian(bt.Tree(10), rng.standard_normal(10), sd)
        runs = bt.simulate(policies, problem, horizon=800, seeds=8, rng=int(rng.integers(2**31)), jobs=1)
        for name in policies:
            regret[name].append(float(runs.regret[name][:, -1].mean()))
    told = np.array(regret["told"])

    def more(name: str) -> tuple[float, float]:
        excess = np.array(regret[name]) - 1.05 * told
        return float(excess.mean()), float(excess.std(ddof=1) / np.sqrt(len(excess)))

    mean, se = more("not told")
    assert mean < 3 * se
    mean, se = more("told wrong")
    assert mean > 3 * se


def test_rewards_that_say_nothing_about_the_noise(engine: str) -> None:
    policy = bt.TS(bt.Tree(3), prior=bt.Gaussian(), rng=0)
    for _ in range(60):
        policy.update(policy.choose(), 0.0)
    assert policy.propensities().sum() == pytest.approx(1)
    policy.update(0, 1e100)
    policy.update(1, -1e100)
    assert np.isfinite(policy.propensities()).all()
    assert policy.choose() in (0, 1, 2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidValue, match="needs sd"):
        bt.Gaussian(prior_sd=2.0)
    with pytest.raises(InvalidValue, match="whole tree"):
        bt.TS(TREE, prior={None: bt.Gaussian(), "x": bt.Gaussian(sd=2.0)})
    assert bt.Gaussian(sd=2.0) == bt.Gaussian(2.0, 0.0, 2.0)
