"""Mixed effects: widths of levels and slopes, both kinds of rewards, any depth, and the same on both engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt


def test_arms_in_order_spread_evenly_over_the_clusters() -> None:
    tree = bt.problems.mixed_effects(n_arms=10, n_clusters=4, dim=2).instance(0).tree
    assert tree.arms == tuple(range(10))
    assert [len(arms) for arms in tree.clusters.values()] == [3, 2, 3, 2]
    deep = bt.problems.mixed_effects(n_arms=24, n_clusters=(2, 6), dim=1).instance(0).tree
    assert (deep.depth, deep.path(23)) == (2, (1, 5, 23))
    flat = bt.problems.mixed_effects(n_arms=24, n_clusters=(), cluster_sd=[], dim=1).instance(0).tree
    assert flat.depth == 0


def test_levels_and_slopes_have_the_widths_asked_for() -> None:
    problem = bt.problems.mixed_effects(
        n_arms=4000, n_clusters=(40, 400), dim=2, cluster_sd=[(3.0, 1.0), (0.5, 0.2)], arm_sd=(0.1, 0.7)
    )
    theta = problem.instance(5).theta
    assert theta is not None
    arms = theta.reshape(400, 10, 3)
    np.testing.assert_allclose((arms - arms.mean(1, keepdims=True)).std((0, 1), ddof=400), [0.1, 0.7, 0.7], rtol=0.05)
    clusters = arms.mean(1).reshape(40, 10, 3)
    apart = (clusters - clusters.mean(1, keepdims=True)).std((0, 1), ddof=40)
    np.testing.assert_allclose(
        apart, np.sqrt(np.array([0.25, 0.04, 0.04]) + np.array([0.01, 0.49, 0.49]) / 10), rtol=0.15
    )
    np.testing.assert_allclose(clusters.mean(1).std(0), [3.0, 1.0, 1.0], rtol=0.3)


def test_a_constant_is_the_level_that_is_otherwise_hidden() -> None:
    hidden, shown = (
        bt.problems.mixed_effects(n_arms=6, n_clusters=2, dim=2, constant=constant).instance(3)
        for constant in (False, True)
    )
    assert (hidden.dim, shown.dim) == (2, 3)
    np.testing.assert_array_equal(hidden.theta, shown.theta)
    x, z = hidden.context(np.random.default_rng(1)), shown.context(np.random.default_rng(1))
    assert x is not None
    assert z is not None
    assert z.tolist() == [1.0, *x]
    assert hidden.theta is not None
    for arm in range(6):
        assert hidden.expected(arm, x) == shown.expected(arm, z)
        np.testing.assert_allclose(hidden.expected(arm, x), hidden.theta[arm] @ z)
    assert hidden.best(x) == max(hidden.expected(arm, x) for arm in hidden.arms)


def test_clicks_have_a_logistic_truth_around_the_rate() -> None:
    flat = bt.problems.mixed_effects(
        n_arms=4, n_clusters=2, dim=1, cluster_sd=(0, 0), arm_sd=(0, 0), reward="clicks", rate=0.3
    ).instance(0)
    assert flat.expected(0, [2.0]) == pytest.approx(0.3)
    instance = bt.problems.mixed_effects(n_arms=4, n_clusters=2, dim=1, reward="clicks").instance(0)
    assert instance.theta is not None
    score = instance.theta[1] @ [1.0, 0.5]
    assert instance.expected(1, [0.5]) == pytest.approx(1 / (1 + np.exp(-score)))
    rng = np.random.default_rng(0)
    assert {instance.reward(1, rng, [0.5]) for _ in range(200)} == {0.0, 1.0}


@pytest.mark.parametrize("reward", ["normal", "clicks"])
@pytest.mark.parametrize("constant", [False, True])
def test_both_engines_play_the_same_world(reward: str, constant: bool) -> None:
    problem = bt.problems.mixed_effects(
        n_arms=6, n_clusters=2, dim=2, reward=reward, rate=0.4, constant=constant, noise=0.5
    )
    prior = bt.Beta(1, 1) if reward == "clicks" else bt.Gaussian(1.0)
    options: dict[str, Any] = {"horizon": 80, "seeds": 2, "rng": 4, "delay": 3, "batch": 2}
    others: dict[str, Any] = {"TS": partial(bt.TS, prior=prior)}
    natively = bt.simulate(others | {"LinTS": bt.LinTS}, problem, **options)
    stepped = bt.simulate(others | {"LinTS": FromPython}, problem, **options)
    assert natively.engine["LinTS"] == "native"
    assert stepped.engine["LinTS"] == "readable"
    np.testing.assert_allclose(natively.regret["LinTS"], stepped.regret["LinTS"], rtol=1e-12)


class FromPython(bt.LinTS):
    """The same policy; the simulator steps it from Python, through the instance's own methods."""


def test_it_may_drift() -> None:
    problem = bt.problems.drifting(bt.problems.mixed_effects(n_arms=6, n_clusters=2, dim=2), every=10)
    assert bt.simulate({"LinUCB": bt.LinUCB}, problem, horizon=25, seeds=1).regret["LinUCB"].shape[0] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_arms": 1},
        {"n_clusters": 200},
        {"n_clusters": (10, 5)},
        {"dim": 0},
        {"cluster_sd": 1.0},
        {"cluster_sd": (1.0, -0.1)},
        {"cluster_sd": [(1.0, 0.1)] * 2},
        {"arm_sd": (1.0, 1.0, 1.0)},
        {"noise": 0.0},
        {"reward": "beta"},
        {"rate": 1.0},
        {"constant": 1},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(bt.errors.BanditreeError):
        bt.problems.mixed_effects(**wrong)
