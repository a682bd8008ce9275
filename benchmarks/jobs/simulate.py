"""Whole runs: `bt.simulate` in the native engine against a plain NumPy loop of one seed, rewards included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

import banditree as bt
from benchmarks.contestants.agent import Agent
from benchmarks.contestants.numpy_loop import Nodes, beta_agent, linear_agent, ucb_agent
from benchmarks.jobs.trees import fan_out

HORIZON = 3000


@dataclass(frozen=True)
class Whole:
    """A policy on a problem, and the loop that does the same in NumPy on the tree cut at ``depth``."""

    policy: Callable[..., Any]
    problem: Callable[[], Any]
    loop: Callable[[Nodes, int], Agent]
    depth: int | None


def _strong(n_arms: int, n_clusters: int) -> Any:
    return bt.problems.strong_dominance(n_arms=n_arms, n_clusters=n_clusters, n_best=n_clusters)


def _sorted_fan_out(n_arms: int, branching: int) -> Any:
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, n_arms))
    return bt.problems.bernoulli(fan_out(n_arms, branching), means)


_small, _large = partial(_strong, 100, 10), partial(_strong, 1000, 32)
_linear = partial(bt.problems.linear, n_arms=400, n_clusters=20, spread=0.5)
_lints = partial(linear_agent, dim=5, v=1.0)

CASES = {
    "TS, 100 arms": Whole(bt.TS, _small, beta_agent, 0),
    "TS, 1,000 arms": Whole(bt.TS, _large, beta_agent, 0),
    "UCB1, 1,000 arms": Whole(bt.UCB1, _large, ucb_agent, 0),
    "TSC, 1,000 arms in 32 clusters": Whole(bt.TSC, _large, beta_agent, 1),
    "HTS, 4,096 arms, fan-out 16": Whole(bt.HTS, partial(_sorted_fan_out, 4096, 16), beta_agent, None),
    "HTS, 1,024 arms, binary": Whole(bt.HTS, partial(bt.problems.hierarchical_dominance, 1024), beta_agent, None),
    "LinTS, 400 arms, 5 features": Whole(partial(bt.LinTS, dim=5), _linear, _lints, 0),
    "LinTSC, 400 arms in 20 clusters": Whole(partial(bt.LinTSC, dim=5), _linear, _lints, 1),
}


def run(contestant: ModuleType, *, case: str, how: str, seed: int, seeds: int = 1) -> dict[str, Any]:
    """Seconds per step over ``seeds`` runs of 3,000 steps.

    Building the policy is not counted, nor what all policies share: the instance, and with contexts the contexts and
    the best arm's value in each.
    """
    whole = CASES[case]
    if how == "native":
        problem = whole.problem()
        runs = bt.simulate(
            {"policy": whole.policy}, problem, horizon=HORIZON, seeds=seeds, rng=seed, jobs=1, progress=False
        )
        regrets = runs.regret["policy"][:, -1].tolist()
        return {
            "seconds": runs.seconds["policy"] / (seeds * HORIZON),
            "regrets": regrets,
            "engine": runs.engine["policy"],
        }
    seconds, regret = _numpy_run(whole, seed)
    return {"seconds": seconds / HORIZON, "regrets": [regret], "engine": "NumPy"}


def _numpy_run(whole: Whole, seed: int) -> tuple[float, float]:
    instance = whole.problem().instance(seed)
    tree = instance.tree if whole.depth is None else instance.tree.cut(whole.depth)
    agent = whole.loop(Nodes.of(tree), seed)
    rng = np.random.default_rng(seed)
    return (_flat if instance.theta is None else _contextual)(agent, instance, rng)


def _flat(agent: Agent, instance: Any, rng: np.random.Generator) -> tuple[float, float]:
    choose, update, random = agent.choose, agent.update, rng.random
    means: list[float] = instance.means.tolist()
    best, regret = max(means), 0.0
    begin = perf_counter()
    for _ in range(HORIZON):
        arm = choose()
        update(arm, 1 if random() < means[arm] else 0)
        regret += best - means[arm]
    return perf_counter() - begin, regret


def _contextual(agent: Agent, instance: Any, rng: np.random.Generator) -> tuple[float, float]:
    choose, update, random, theta, regret = agent.choose, agent.update, rng.random, instance.theta, 0.0
    contexts = rng.standard_normal((HORIZON, theta.shape[1]))
    best: list[float] = (contexts @ theta.T).max(axis=1).tolist()
    begin = perf_counter()
    for x, highest in zip(contexts, best, strict=True):
        arm = choose(x)
        expected = float(theta[arm] @ x)
        update(arm, 2 * expected * random(), x)  # uniform between 0 and twice the mean
        regret += highest - expected
    return perf_counter() - begin, regret
