"""What a step costs as the number of arms grows, and as one category of a tree does. Ours alone."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import banditree as bt
from benchmarks.jobs.trees import clusters, fan_out

HORIZON = 3000
FAN_OUT = 16


def run(contestant: ModuleType, *, policy: str, n_arms: int, seed: int, seeds: int) -> dict[str, float]:
    """Seconds per step over ``seeds`` runs of 3,000 steps; building the tree and the policy is not counted."""
    if policy == "category":
        problem, factory = _category(n_arms), bt.ALGORITHMS["TSC"]
    else:
        problem, factory = _sorted(n_arms, policy), bt.ALGORITHMS[policy]
    runs = bt.simulate({policy: factory}, problem, horizon=HORIZON, seeds=seeds, rng=seed, jobs=1, progress=False)
    return {"seconds": runs.seconds[policy] / (seeds * HORIZON), "evaluations": float(runs.evaluations[policy].mean())}


def _sorted(n_arms: int, policy: str) -> Any:
    """Means from the best to the worst, so that neighbours are alike and the best arm is in a full cluster."""
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, n_arms))[::-1]
    return bt.problems.bernoulli(_tree(n_arms, policy == "HTS"), means)


@cache  # a tree of a million arms takes seconds to build, and every round needs it
def _tree(n_arms: int, deep: bool) -> bt.Tree:
    """Fan-out 16, or sqrt N clusters."""
    return fan_out(n_arms, FAN_OUT) if deep else clusters(n_arms, round(n_arms**0.5))


def _category(n_arms: int) -> Any:
    """Nineteen categories of 50 arms, and one of ``n_arms`` that is better than them all."""
    tree = bt.Tree({"wide": list(range(n_arms)), **{f"c{i}": [f"{i}-{j}" for j in range(50)] for i in range(19)}})
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.uniform(0.5, 0.8, n_arms), rng.uniform(0.1, 0.3, 19 * 50)])
    return bt.problems.bernoulli(tree, means)
