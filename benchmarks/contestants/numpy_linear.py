"""Linear-Gaussian beliefs on any tree: LinTS, LinTSC, and with ``c`` instead of ``v`` LinUCB, LinUCBC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.contestants.agent import Agent
from benchmarks.contestants.numpy_tree import Nodes


def agent(nodes: Nodes, seed: int, *, dim: int, v: float | None = None, c: float = 0.0) -> Agent:
    rng = np.random.default_rng(seed)
    inverse = np.tile(np.eye(dim), (nodes.n, 1, 1))  # (nodes, dim, dim) B^-1
    moment, theta = np.zeros((nodes.n, dim)), np.zeros((nodes.n, dim))  # (nodes, dim) f and B^-1 f
    start, arm_at, path = nodes.start, nodes.arm, nodes.path
    root_v = 0.0 if v is None else math.sqrt(v)

    def choose(x: Any) -> int:
        node = 0
        while arm_at[node] < 0:
            low, high = start[node], start[node + 1]
            spread = np.sqrt((inverse[low:high] @ x) @ x)  # (children,)
            if v is None:
                index = theta[low:high] @ x + c * spread
                best = np.flatnonzero(index == index.max())  # children never tried all tie
                node = low + int(best[rng.integers(len(best))])
            else:
                sample = theta[low:high] @ x + root_v * spread * rng.standard_normal(high - low)
                node = low + int(sample.argmax())
        return arm_at[node]

    def update(arm: int, reward: float, x: Any) -> None:
        for node in path[arm]:
            gain = inverse[node] @ x
            inverse[node] -= np.outer(gain, gain / (1 + gain @ x))
            moment[node] += reward * x
            theta[node] = inverse[node] @ moment[node]

    return Agent(choose, update)
