"""The policies once more, from the paper's pseudo-code: plain NumPy, many runs side by side, nothing of banditree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Nested = list[Any]  # an int is an arm, a list a node above others

FLAT: Nested = [0, 1, 2, 3, 4, 5, 6]
TWO_LEVELS: Nested = [[0, 1, 2, 3], [4, 5, 6]]
WHOLE: Nested = [[[0, 1], [2, 3]], [4, 5, 6]]


class Learner:
    """What ``runs`` copies of one policy know of every node: plays and rewards, B and f where there are contexts."""

    def __init__(self, tree: Nested, runs: int, dim: int, rng: np.random.Generator) -> None:
        self.children: list[Ints] = []
        self.arm: list[int] = []  # -1 where there are children
        self.path: dict[int, list[int]] = {}  # of every arm, root and arm included
        self._grow(tree, [])
        nodes, self.rng = len(self.arm), rng
        self.plays, self.total = np.zeros((runs, nodes)), np.zeros((runs, nodes))
        self.B = np.tile(np.eye(dim), (runs, nodes, 1, 1))  # (runs, nodes, dim, dim)
        self.f = np.zeros((runs, nodes, dim))

    def _grow(self, below: Any, above: list[int]) -> int:
        node = len(self.arm)
        self.children.append(np.empty(0, np.intp))
        self.arm.append(-1 if isinstance(below, list) else below)
        if isinstance(below, list):
            self.children[node] = np.array([self._grow(child, [*above, node]) for child in below])
        else:
            self.path[below] = [*above, node]
        return node

    def choose(self, score: Score, x: Floats) -> Ints:
        """An arm for every run: (runs,)."""
        found = np.empty(len(x), np.intp)
        self._step(0, np.arange(len(x)), score, x, found)
        return found

    def _step(self, node: int, who: Ints, score: Score, x: Floats, found: Ints) -> None:
        if self.arm[node] >= 0:
            found[who] = self.arm[node]
            return
        scores = score(self, who, node, self.children[node], x[who])  # (who, children)
        lots = np.where(scores == scores.max(axis=1, keepdims=True), self.rng.random(scores.shape), -1.0)
        best = lots.argmax(axis=1)
        for place, child in enumerate(self.children[node].tolist()):
            self._step(child, who[best == place], score, x, found)

    def update(self, arms: Ints, rewards: Floats, x: Floats) -> None:
        for arm, path in self.path.items():
            who = np.flatnonzero(arms == arm)
            for node in path:
                self.plays[who, node] += 1
                self.total[who, node] += rewards[who]
                if x.shape[1]:
                    self.B[who, node] += x[who, :, None] * x[who, None, :]
                    self.f[who, node] += rewards[who, None] * x[who]


Score = Callable[[Learner, Ints, int, Ints, Floats], Floats]


def beta(of: Learner, who: Ints, node: int, children: Ints, x: Floats) -> Floats:
    plays, total = of.plays[np.ix_(who, children)], of.total[np.ix_(who, children)]
    return of.rng.beta(1 + total, 1 + plays - total)


def gaussian(sd: float) -> Score:
    def score(of: Learner, who: Ints, node: int, children: Ints, x: Floats) -> Floats:
        n = of.plays[np.ix_(who, children)] + 1
        return of.rng.normal(of.total[np.ix_(who, children)] / n, sd / np.sqrt(n))

    return score


def ucb(clock: str) -> Score:
    def score(of: Learner, who: Ints, node: int, children: Ints, x: Floats) -> Floats:
        n = of.plays[who, node if clock == "parent" else 0][:, None]
        plays, total = of.plays[np.ix_(who, children)], of.total[np.ix_(who, children)]
        tried = np.maximum(plays, 1)
        return np.where(plays > 0, total / tried + np.sqrt(2 * np.log(np.maximum(n, 1)) / tried), np.inf)

    return score


def best_arm(of: Learner, who: Ints, node: int, children: Ints, x: Floats) -> Floats:
    """TSMax: each cluster samples from its arm with the highest empirical mean among those tried (ties: more plays)."""
    stands = np.empty((len(who), len(children)), np.intp)
    for place, child in enumerate(children.tolist()):
        arms = of.children[child] if len(of.children[child]) else np.array([child])
        plays, total = of.plays[np.ix_(who, arms)], of.total[np.ix_(who, arms)]
        mean = np.where(plays > 0, total / np.maximum(plays, 1), -1.0)
        rank = np.where(mean == mean.max(axis=1, keepdims=True), plays, -1.0)
        stands[:, place] = np.where(plays.any(axis=1), arms[rank.argmax(axis=1)], -1)
    plays = np.where(stands >= 0, of.plays[who[:, None], stands], 0.0)
    total = np.where(stands >= 0, of.total[who[:, None], stands], 0.0)
    return of.rng.beta(1 + total, 1 + plays - total)


def linear(v: float | None = None, c: float | None = None) -> Score:
    """LinTS where v is given, LinUCB where c is."""

    def score(of: Learner, who: Ints, node: int, children: Ints, x: Floats) -> Floats:
        B: Any = of.B[np.ix_(who, children)]  # (who, children, dim, dim)
        f: Any = of.f[np.ix_(who, children)]  # (who, children, dim)
        solved = (np.linalg.inv(B) @ x[:, None, :, None])[..., 0]  # B^-1 x: (who, children, dim)
        mean: Floats = (solved * f).sum(axis=-1)
        square: Floats = (solved * x[:, None]).sum(axis=-1)
        return mean + c * np.sqrt(square) if c is not None else of.rng.normal(mean, np.sqrt((v or 1.0) * square))

    return score


@dataclass(frozen=True)
class World:
    """The truth: means (arms,) or theta (arms, dim), and how rewards and contexts are drawn."""

    rewards: str
    truth: Floats
    parameter: float = 0.0
    contexts: str = "none"

    def context(self, runs: int, rng: np.random.Generator) -> Floats:
        shape = (runs, self.truth.shape[1] if self.contexts != "none" else 0)
        x = rng.random(shape) if self.contexts == "uniform" else rng.standard_normal(shape)
        return x / np.linalg.norm(x, axis=1, keepdims=True) if self.contexts == "unit" else x

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        if self.rewards == "bernoulli":
            return (rng.random(mean.shape) < mean).astype(float)
        if self.rewards == "bounded":
            return rng.beta(mean * self.parameter, (1 - mean) * self.parameter)
        if self.rewards == "gaussian":
            return rng.normal(mean, self.parameter)
        return rng.uniform(np.minimum(0, 2 * mean), np.maximum(0, 2 * mean))


def play(
    world: World, tree: Nested, score: Score, *, times: Sequence[int], runs: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Cumulative regret (runs, times) and plays (runs, arms) of one policy."""
    dim = 0 if world.contexts == "none" else world.truth.shape[1]
    learner, everyone = Learner(tree, runs, dim, rng), np.arange(runs)
    regret, kept, plays = np.zeros(runs), [], np.zeros((runs, len(world.truth)))
    for t in range(1, max(times) + 1):
        x = world.context(runs, rng)
        expected = x @ world.truth.T if dim else np.tile(world.truth, (runs, 1))  # (runs, arms)
        arms = learner.choose(score, x)
        learner.update(arms, world.draw(expected[everyone, arms], rng), x)
        regret = regret + expected.max(axis=1) - expected[everyone, arms]
        plays[everyone, arms] += 1
        if t in times:
            kept.append(regret)
    return np.array(kept).T, plays
