"""UCB1 on any tree: UCB1, UCBC, UCT."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.contestants.agent import Agent
from benchmarks.contestants.numpy_tree import Nodes


def agent(nodes: Nodes, seed: int) -> Agent:
    rng = np.random.default_rng(seed)
    plays, total = np.zeros(nodes.n), np.zeros(nodes.n)  # (nodes,)
    start, arm_at, path = nodes.start, nodes.arm, nodes.path

    def choose() -> int:
        node = 0
        while arm_at[node] < 0:
            low, high = start[node], start[node + 1]
            n = plays[low:high]
            best = np.flatnonzero(n == 0)  # each child once
            if not len(best):
                index = total[low:high] / n + np.sqrt(2 * math.log(n.sum()) / n)
                best = np.flatnonzero(index == index.max())  # equal counts tie often
            node = low + int(best[rng.integers(len(best))])
        return arm_at[node]

    def update(arm: int, reward: float) -> None:
        for node in path[arm]:
            plays[node] += 1
            total[node] += reward

    return Agent(choose, update)
