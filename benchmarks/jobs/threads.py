"""The same runs on one thread and on two: wall time of the whole call. Ours alone."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType

import numpy as np

import banditree as bt
from benchmarks.jobs.trees import clusters


def run(contestant: ModuleType, *, jobs: int, seeds: int, horizon: int, seed: int) -> dict[str, float]:
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, 1000))
    problem = bt.problems.bernoulli(clusters(1000, 32), means)
    begin = perf_counter()
    bt.simulate([bt.TSC], problem, horizon=horizon, seeds=seeds, rng=seed, jobs=jobs, progress=False)
    return {"seconds": perf_counter() - begin}
