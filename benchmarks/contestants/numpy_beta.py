"""Thompson sampling with Beta beliefs on any tree: TS, TSC, HTS."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.agent import Agent
from benchmarks.contestants.numpy_tree import Nodes


def agent(nodes: Nodes, seed: int) -> Agent:
    rng = np.random.default_rng(seed)
    a, b = np.ones(nodes.n), np.ones(nodes.n)  # (nodes,)
    start, arm_at, path = nodes.start, nodes.arm, nodes.path

    def choose() -> int:
        node = 0
        while arm_at[node] < 0:
            low, high = start[node], start[node + 1]
            node = low + int(rng.beta(a[low:high], b[low:high]).argmax())
        return arm_at[node]

    def update(arm: int, reward: float) -> None:
        for node in path[arm]:
            a[node] += reward
            b[node] += 1 - reward

    return Agent(choose, update)
