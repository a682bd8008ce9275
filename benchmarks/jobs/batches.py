"""Many at once against one by one. Ours alone."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType

import numpy as np

import banditree as bt


def run(contestant: ModuleType, *, what: str, n: int, seed: int) -> dict[str, float]:
    return {"seconds": (update if what.startswith("update") else choose)(what.endswith("many"), n, seed) / n}


def update(many: bool, n: int, seed: int) -> float:
    """Seconds to learn n rewards on 10,000 arms in 100 clusters."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(10_000) // 100), rng=seed)
    arms, rewards = rng.integers(10_000, size=n), rng.integers(2, size=n).astype(float)
    if many:
        begin = perf_counter()
        policy.update_many(arms, rewards)
        return perf_counter() - begin
    one_by_one = list(zip(arms.tolist(), rewards.tolist(), strict=True))
    update_one = policy.update
    begin = perf_counter()
    for arm, reward in one_by_one:
        update_one(arm, reward)
    return perf_counter() - begin


def choose(many: bool, n: int, seed: int) -> float:
    """Seconds for n decisions of TSC on 1,000 arms in 32 clusters that have seen 3,000 rewards."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(1000) % 32), rng=seed)
    policy.update_many(rng.integers(1000, size=3000), rng.integers(2, size=3000).astype(float))
    choose_one = policy.choose
    begin = perf_counter()
    if many:
        policy.choose_many(n)
    else:
        for _ in range(n):
            choose_one()
    return perf_counter() - begin
