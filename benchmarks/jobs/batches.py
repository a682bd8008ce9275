"""Many at once against one by one. Ours alone."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType

import numpy as np

import banditree as bt


def run(contestant: ModuleType, *, what: str, n: int, size: int, seed: int) -> dict[str, float]:
    call = update if what == "update" else choose
    return {"seconds": call(n, size, seed) / n}


def update(n: int, size: int, seed: int) -> float:
    """Seconds to learn n rewards on 10,000 arms in 100 clusters, ``size`` of them in a call."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(10_000) // 100), rng=seed)
    arms, rewards = rng.integers(10_000, size=n), rng.integers(2, size=n).astype(float)
    if size > 1:
        batches = [(arms[at : at + size], rewards[at : at + size]) for at in range(0, n, size)]
        begin = perf_counter()
        for batch in batches:
            policy.update_many(*batch)
        return perf_counter() - begin
    one_by_one = list(zip(arms.tolist(), rewards.tolist(), strict=True))
    update_one = policy.update
    begin = perf_counter()
    for arm, reward in one_by_one:
        update_one(arm, reward)
    return perf_counter() - begin


def choose(n: int, size: int, seed: int) -> float:
    """Seconds for n decisions of TSC on 1,000 arms in 32 clusters that have seen 3,000 rewards: one by one, or all."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(1000) % 32), rng=seed)
    policy.update_many(rng.integers(1000, size=3000), rng.integers(2, size=3000).astype(float))
    choose_one = policy.choose
    begin = perf_counter()
    if size > 1:
        policy.choose_many(n)
    else:
        for _ in range(n):
            choose_one()
    return perf_counter() - begin
