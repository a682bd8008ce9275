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
    untried = [rng.permutation(range(start[node], start[node + 1])).tolist() for node in range(nodes.n)]

    def choose() -> int:
        node = 0
        while arm_at[node] < 0:
            if untried[node]:  # each child once, in random order
                node = untried[node][-1]
                continue
            low, high = start[node], start[node + 1]
            n = plays[low:high]
            clock = 2 * math.log(n.sum())
            node = low + int((total[low:high] / n + np.sqrt(clock / n)).argmax())
        return arm_at[node]

    def update(arm: int, reward: float) -> None:
        above = 0
        for node in reversed(path[arm]):
            if untried[above] and untried[above][-1] == node:
                untried[above].pop()
            plays[node] += 1
            total[node] += reward
            above = node

    return Agent(choose, update)
