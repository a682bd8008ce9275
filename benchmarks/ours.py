"""Our own contestants: banditree on either engine (BANDITREE_ENGINE), and the same algorithms as plain NumPy loops.

The loops are what one writes without a library, and writes well. Their beliefs are in flat arrays with a row per node,
numbered so that a node's children are one slice, which makes these loops as fast as NumPy allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

import banditree as bt
from benchmarks.contestants import Agent, C, Library, Offer, Setting, V


def _ours(setting: Setting, *, policy: Any) -> Agent:
    tree = bt.Tree.from_labels(setting.labels)
    built = policy(tree, rng=setting.seed)
    return Agent(built.choose, built.update)


banditree = Library(
    imports="import banditree",
    first="""
import banditree as bt
policy = bt.TS(bt.Tree(100), rng=0)
policy.update(policy.choose(), 1)
""",
    offers={
        name: Offer(f"bt.{name}", partial(_ours, policy=policy))
        for name, policy in {
            "TS": bt.TS,
            "TSC": bt.TSC,
            "UCB1": bt.UCB1,
            "UCBC": bt.UCBC,
            "LinATS": partial(bt.LinATS, dim=5),
            "LinTS": partial(bt.LinTS, dim=5, v=V),
            "LinTSC": partial(bt.LinTSC, dim=5, v=V),
            "LinUCB": partial(bt.LinUCB, dim=5, c=C),
            "LinUCBC": partial(bt.LinUCBC, dim=5, c=C),
        }.items()
    },
)


@dataclass(frozen=True)
class Nodes:
    """Node i's children are ``start[i]:start[i + 1]``; the root is node 0."""

    start: list[int]  # (nodes + 1,)
    arm: list[int]  # (nodes,) the arm at a leaf, negative at an inner node
    path: list[list[int]]  # (arms,) the nodes of an arm's path that hold a belief: all but the root

    @property
    def n(self) -> int:
        return len(self.arm)

    @classmethod
    def of(cls, tree: bt.Tree) -> Self:
        shape = tree.shape
        paths = [shape.path_up(node)[:-1] for node in shape.node_of.tolist()]
        return cls(shape.start.tolist(), shape.content.tolist(), paths)


def beta_agent(nodes: Nodes, seed: int) -> Agent:
    """Thompson sampling with Beta beliefs on any tree: TS, TSC, HTS."""
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


def ucb_agent(nodes: Nodes, seed: int) -> Agent:
    """UCB1 on any tree: UCB1, UCBC, UCT."""
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


def linear_agent(nodes: Nodes, seed: int, *, dim: int, v: float | None = None, c: float = 0.0) -> Agent:
    """Linear-Gaussian beliefs on any tree: LinTS, LinTSC, and with ``c`` instead of ``v`` LinUCB, LinUCBC."""
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


def _looped(setting: Setting, *, depth: int, loop: Callable[[Nodes, int], Agent]) -> Agent:
    tree = bt.Tree.from_labels(setting.labels.tolist()).cut(depth)  # the numbering alone is ours, and is not timed
    return loop(Nodes.of(tree), setting.seed)


numpy_loop = Library(
    imports="import numpy",
    first="""
import numpy as np
rng = np.random.default_rng(0)
a, b = np.ones(100), np.ones(100)
a[rng.beta(a, b).argmax()] += 1
""",
    offers={
        "TS": Offer("rng.beta, argmax", partial(_looped, depth=0, loop=beta_agent)),
        "TSC": Offer("rng.beta, argmax, twice", partial(_looped, depth=1, loop=beta_agent)),
        "UCB1": Offer("sqrt, argmax", partial(_looped, depth=0, loop=ucb_agent)),
        "UCBC": Offer("sqrt, argmax, twice", partial(_looped, depth=1, loop=ucb_agent)),
        "LinTS": Offer("matmul, normal, argmax", partial(_looped, depth=0, loop=partial(linear_agent, dim=5, v=V))),
        "LinTSC": Offer("the same, twice", partial(_looped, depth=1, loop=partial(linear_agent, dim=5, v=V))),
        "LinUCB": Offer("matmul, argmax", partial(_looped, depth=0, loop=partial(linear_agent, dim=5, c=C))),
        "LinUCBC": Offer("the same, twice", partial(_looped, depth=1, loop=partial(linear_agent, dim=5, c=C))),
    },
)
