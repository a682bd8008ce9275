"""Whole runs by the native shortcut and by plain draws have the same law: two-sample tests over very many short runs.

A run is one call of the native loop on a policy whose evidence is put back to nothing, which is ten times cheaper than
building a policy a run. The control is a prior that believes a quarter of a success more of every node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import banditree as bt
from banditree.policy import engines
from banditree.policy.state import hold
from banditree.stream import native_stream
from tests.support.winning import P_FLOOR

native = pytest.importorskip("banditree._native")

PLAIN = 2**31 - 1
TIMES = np.array([10, 50], np.int64)


class World(NamedTuple):
    tree: bt.Tree
    policy: Callable[..., bt.Policy]
    rewards: tuple[str, float]  # as the native loop names them
    runs: int


WORLDS = {
    "flat, rewards 0 or 1": World(bt.Tree(40), bt.TS, ("Bernoulli", 0.0), 40_000),
    "three clusters, rewards between": World(
        bt.Tree({"a": range(4), "b": range(4, 16), "c": range(16, 40)}),
        bt.HTS,
        ("Bounded", 5.0),
        50_000,
    ),
}


class Sample(NamedTuple):
    regret: NDArray[np.float64]  # (runs, times)
    plays: NDArray[np.int64]  # (runs, arms)


def sample(world: World, min_wide: int, seed: int, prior: bt.Beta | None = None) -> Sample:
    with engines.using("native"):
        policy = world.policy(world.tree, prior=prior or bt.Beta(), rng=seed)
    policy._state.walk.native.min_wide = min_wide
    k = world.tree.n_arms
    means = np.random.default_rng(8).uniform(0.1, 0.8, size=k)
    name, parameter = world.rewards
    rewards, contexts, monitor = native_stream(seed + 1), native_stream(seed + 2), native.Monitor()
    places = np.arange(k, dtype=np.int32)
    found = Sample(np.empty((world.runs, len(TIMES))), np.zeros((world.runs, k), np.int64))
    for regret, plays in zip(*found, strict=True):
        with hold(policy) as state:  # as `restore` does it, but for its checks, which take longer than the run
            state.rows.table[:] = 0.0
            state.walk.refresh()
        native.run(
            truth=means,
            dim=0,
            rewards=name,
            parameter=parameter,
            contexts="",
            context_stream=contexts,
            horizon=int(TIMES[-1]),
            times=TIMES,
            players=[(policy._state.walk.native, places, rewards, regret, plays, None)],
            monitor=monitor,
        )
    return found


def p_values(one: Sample, two: Sample) -> dict[str, float]:
    """Regret by its whole distribution, mean and spread, at each time; plays by each arm's mean, the worst of them."""
    found: dict[str, float] = {}
    for i, time in enumerate(TIMES):
        x, y = one.regret[:, i], two.regret[:, i]
        found[f"distribution at {time}"] = float(stats.ks_2samp(x, y, method="asymp").pvalue)
        found[f"mean at {time}"] = float(stats.ttest_ind(x, y, equal_var=False).pvalue)
        found[f"spread at {time}"] = float(stats.levene(x, y).pvalue)
    by_arm = stats.ttest_ind(one.plays, two.plays, equal_var=False).pvalue
    found["plays"] = float(min(1.0, by_arm.min() * one.plays.shape[1]))
    return found


@pytest.mark.parametrize("name", WORLDS)
def test_regret_and_plays_of_whole_runs(name: str) -> None:
    world = WORLDS[name]
    plain = sample(world, PLAIN, seed=10)
    found = p_values(plain, sample(world, 2, seed=20))
    assert min(found.values()) > P_FLOOR, found
    fewer = world._replace(runs=world.runs // 5)
    biased = p_values(plain, sample(fewer, 2, seed=30, prior=bt.Beta(1.25, 1)))
    assert min(biased.values()) < P_FLOOR, biased
