"""What beliefs in several copies share, with contexts or without: a decision draws a copy, then every arm.

How similar siblings are is not known, so several *copies* of the belief, each with its own answer, are kept side by
side and weighed by how well they explain the rewards. Everything is a function of the arms' evidence alone, so neither
order nor batches nor moves matter. docs/adaptive.md states it; `banditree.beliefs.draws` has the draws.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.beliefs.base import Nodes, Rows, draws_in_blocks
from banditree.beliefs.draws import INDEPENDENT, Coupling, Draws, coupled_wins, coupling, drawn, pick
from banditree.beliefs.law import LAW
from banditree.stream import Rng
from banditree.tree.shape import Shape

MOST_KEPT = 256  # answers that are kept until the evidence changes
NEGLIGIBLE = 1e-6  # total weight of the copies that choice probabilities leave out
LARGEST_FACTOR = 50.0  # largest log Bayes factor of an arm being the stray

# Words for the concentration of the arms or clusters below a node, by its lower bound.
ALIKE = ((300.0, "nearly equal"), (30.0, "alike"), (6.0, "loosely alike"), (0.0, "hardly alike"))
TOO_EARLY = "too early to tell"

Value = TypeVar("Value")


def word_for(concentration: float) -> str:
    return next(word for least, word in ALIKE if concentration >= least)


def heights_of(shape: Shape) -> Indices:
    """Return how many levels are below each node, at most: (nodes,), 0 for an arm."""
    heights = np.zeros(shape.n_nodes, np.intp)
    for level in range(len(shape.levels) - 2, 0, -1):
        nodes = slice(shape.levels[level], shape.levels[level + 1])
        np.maximum.at(heights, shape.parent[nodes], heights[nodes] + 1)
    return heights


def weights_for_intervals(weight: Floats, steps: Floats, fall: float) -> Floats:
    """Return the weights of copies that intervals go by: (..., steps), the last axis from coarse to fine.

    Copies with less difference between siblings count less, by ``fall`` in the log with each step, and half of each
    weight goes to the next copies on either side: the truth lies between two copies, but many rewards leave a single
    one, as if it were known exactly.
    """
    weight = weight * np.exp(-fall * steps)
    padded = np.concatenate([weight[..., :1], weight, weight[..., -1:]], axis=-1)
    shared = 0.5 * weight + 0.25 * (padded[..., :-2] + padded[..., 2:])
    return np.asarray(shared / shared.sum())


class CopiedRows(Rows):
    """Beliefs in several copies. All arms compete with each other directly."""

    joint = True
    law = LAW
    couples = True  # whether draws share a number, and one arm may be a stray
    shape: Shape
    height: Indices  # (nodes,) levels below
    coupling: Coupling

    def attach(self, shape: Shape) -> None:
        self.shape, self.height = shape, heights_of(shape)
        self.coupling = coupling(len(shape.node_of), self.law.strays) if self.couples else INDEPENDENT
        self._memo: tuple[bytes, dict[object, Any]] = b"", {}

    # What kinds differ in

    @abstractmethod
    def weights(self) -> Floats:
        """Return the weights of the copies: (copies,), their sum is 1."""

    @abstractmethod
    def arms(self, nodes: Indices, context: Floats | None, copies: Indices) -> Iterable[Draws]:
        """Return what some copies believe about arms, one of them after the other."""

    @abstractmethod
    def equals(self, nodes: Indices) -> Indices:
        """Return a number for each arm, the same for those that are drawn from the same distribution: (k,)."""

    @abstractmethod
    def draw_copy(self, nodes: Indices, context: Floats | None, copy: int, m: int, rng: Rng) -> Floats:
        """Draw the means of arms m times from what one copy believes, with all that they share: (k, m).

        They are on the scale of draws, which `as_reward` leaves.
        """

    def as_reward(self, draws: Floats) -> Floats:
        """Return draws, which may be on a scale of their own, as rewards."""
        return draws

    # What every belief can do

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        nodes = np.arange(self.shape.n_nodes)[nodes]
        weight = self.weights()
        scores = np.empty((len(nodes), m))
        for decision in range(m):
            context = None if contexts is None else contexts[decision]
            copy = pick(weight, rng.random())
            scores[:, decision] = drawn(self._draws(nodes, context, copy), self.coupling, rng)
        return scores

    def _draws(self, nodes: Indices, context: Floats | None, copy: int) -> Draws:
        def compute() -> Draws:
            return next(iter(self.arms(nodes, context, np.array([copy]))))

        if context is not None:
            return compute()
        return self.remembered(("draws", copy, nodes.tobytes()), compute)

    def draw_means(self, nodes: Indices, context: Floats | None, m: int, rng: Rng) -> Floats:
        return self.as_reward(self._draw_scores(nodes, context, m, rng))

    def _draw_scores(self, nodes: Indices, context: Floats | None, m: int, rng: Rng) -> Floats:
        weight = self.weights()
        drawn_copies, each = np.unique([pick(weight, u) for u in rng.random(m).tolist()], return_counts=True)
        parts = zip(drawn_copies.tolist(), each.tolist(), strict=True)
        return np.concatenate([self.draw_copy(nodes, context, copy, n, rng) for copy, n in parts], axis=1)

    def chances(self, nodes: Indices, context: Floats | None) -> Floats:
        """Count how often each mean is the highest of all: what siblings share is drawn once for all of them.

        The draws have a stream of their own, so that the same beliefs give the same answer.
        """
        rng, won = np.random.default_rng(0), np.zeros(len(nodes))
        for m in draws_in_blocks(len(nodes)):
            highest = self._draw_scores(nodes, context, m, rng).argmax(axis=0)
            won += np.bincount(highest, minlength=len(nodes))
        return np.asarray(won / won.sum())

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        nodes = np.asarray(nodes)
        key = "wins", nodes.tobytes(), None if context is None else context.tobytes()
        return self.remembered(key, lambda: self._wins(nodes, context)).copy()

    def _wins(self, nodes: Indices, context: Floats | None) -> Floats:
        """Average over the copies, negligible ones left out."""
        _, first, group, size = np.unique(
            self.equals(nodes), return_index=True, return_inverse=True, return_counts=True
        )
        weight = self.weights()
        rising = np.argsort(weight)
        kept = rising[np.cumsum(weight[rising]) > NEGLIGIBLE]
        chance, counted = np.zeros(len(size)), size.astype(np.float64)
        for copy, arms in zip(kept, self.arms(nodes[first], context, kept), strict=True):
            chance += weight[copy] * coupled_wins(arms, counted, self.coupling, float(weight[copy]))
        return np.asarray((chance / (chance @ counted))[group])

    def remembered(self, key: object, compute: Callable[[], Value]) -> Value:
        """Return what was computed since the evidence last changed, or compute it."""
        evidence = self.table.tobytes()
        if self._memo[0] != evidence:
            self._memo = evidence, {}
        if key not in self._memo[1]:
            if len(self._memo[1]) >= MOST_KEPT:  # contexts differ from decision to decision
                self._memo[1].clear()
            self._memo[1][key] = compute()
        value: Value = self._memo[1][key]
        return value
