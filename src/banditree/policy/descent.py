"""The walk down the tree and the update up it. Every algorithm of the paper is this, with its tree, belief and rule.

Twin of ``native/descent.hpp``: on the native random stream the two take the same steps, draw for draw.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Rows
from banditree.beliefs.base import Batch, Floats
from banditree.errors import InvalidValue
from banditree.errors.checks import LARGEST
from banditree.rules import Rule, View
from banditree.tree.shape import Shape

BLOCK = 65536  # scores held at once when many decisions are made together


def descend(
    shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32] | None, contexts: Floats | None, m: int, rng: Any
) -> tuple[NDArray[np.int32], int]:
    """Walk m decisions from the root to an arm each, from today's beliefs: (m,) places of arms, and the scores it took.

    At each node: score the children, step to the best. Decisions at the same node are scored together.
    """
    found = np.empty(m, np.int32)
    evaluations = 0
    waiting = [(0, np.arange(m))]  # nodes, and the decisions that stand there
    while waiting:
        node, who = waiting.pop()
        first, last = int(shape.start[node]), int(shape.start[node + 1])
        if first == last:
            found[who] = shape.content[node]
            continue
        if last - first == 1:  # nothing to choose
            waiting.append((first, who))
            continue
        evaluations += (last - first) * len(who)
        step = np.empty(len(who), np.intp)
        block = max(1, BLOCK // max(last - first, (rows.dim or 1) ** 2))
        for at in range(0, len(who), block):
            these = who[at : at + block]
            here = None if contexts is None else contexts[these]
            children = np.arange(first, last)
            scores = np.asarray(rule.score(View(rows, node, children, here, len(these), rng, summary)))
            full = len(children), len(these)
            if scores.shape not in (full, (len(children), 1)):
                raise InvalidValue(
                    f"{rule} gave scores of shape {scores.shape} where (k, m) = {full}, or (k, 1), is due"
                )
            step[at : at + block] = best(np.broadcast_to(scores, full), rng, rule)
        groups = [(first + int(child), who[step == child]) for child in np.unique(step)]
        waiting.extend(reversed(groups))
    return found, evaluations


def best(scores: Floats, rng: Any, rule: Rule) -> NDArray[np.intp]:
    """The row of each column's highest score, ties at random: (k, m) -> (m,)."""
    ties = scores == scores.max(axis=0)
    n_ties = ties.sum(axis=0)
    if not n_ties.all():
        raise InvalidValue(f"{rule} gave a score that is not a number; scores may be infinite but not NaN")
    winners: NDArray[np.intp] = ties.argmax(axis=0)
    for column in np.flatnonzero(n_ties > 1):
        winners[column] = np.flatnonzero(ties[:, column])[rng.integers(int(n_ties[column]))]
    return winners


def update(
    shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32] | None, arm: int, reward: float, context: Any
) -> None:
    """One reward updates every belief on the path from the arm to the root."""
    path = shape.path_up(int(shape.node_of[arm]))
    rows.observe(np.array(path), reward, context)
    if summary is not None:
        summarise(shape, rows, rule, summary, path[1:])


def summarise(shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32], inner: Any) -> None:
    """Bring what the rule keeps up to date at these inner nodes, the lowest first."""
    for node in inner:
        kept = rule.summarise(shape, rows, int(node), summary)
        assert kept is not None
        summary[node] = kept


def new_summary(shape: Shape, rows: Rows, rule: Rule) -> NDArray[np.int32] | None:
    """What the rule keeps for every node, None where it keeps nothing: (nodes,). A leaf stands for itself."""
    if not rule.summarises:
        return None
    summary = np.arange(shape.n_nodes, dtype=np.int32)
    summarise(shape, rows, rule, summary, shape.inner[::-1])
    return summary


def absorb(shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32] | None, batch: Batch) -> None:
    """Many rewards at once: the same as one by one, because evidence adds up."""
    rows.absorb(shape, batch)
    if summary is not None:
        touched = shape.touched(batch.count)
        summarise(shape, rows, rule, summary, touched[shape.content[touched] < 0][::-1])


def group(positions: NDArray[np.int64], rewards: Floats, n_arms: int) -> tuple[Floats, Floats]:
    """How many rewards each arm got, and their sum: (arms,) each."""
    count, total = np.bincount(positions, minlength=n_arms), np.bincount(positions, rewards, minlength=n_arms)
    return count.astype(np.float64), total.astype(np.float64)


class Walk:
    """One policy's tree, beliefs, rule and stream, ready to step. ``choose`` and ``update`` answer -1 and False, having
    done nothing, where the input is not what they need; the policy then finds out why.
    """

    engine = "readable"

    def __init__(self, shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32] | None, rng: Any) -> None:
        self.shape, self.rows, self.rule, self.summary, self.rng = shape, rows, rule, summary, rng
        self._lock = RLock()  # a step is several Python operations; threads take turns
        self._closed = False
        self.evaluations = 0  # children scored so far: the paper's computational cost
        self.narrowest = 2**31 - 1  # the readable engine takes no shortcuts

    def close(self, closed: bool = True) -> None:
        """Refuse further steps: the tree is about to change."""
        with self._lock:
            self._closed = closed

    def reset(self) -> None:
        """The evidence has been changed from outside; nothing here derives from it."""

    def choose(self, context: Any) -> int:
        if not fits(context, self.rows.dim):
            return -1
        found = self.choose_many(1, None if context is None else context[None])
        return -1 if found is None else int(found[0])

    def choose_many(self, m: int, contexts: Floats | None) -> NDArray[np.int32] | None:
        with self._lock:
            if self._closed:
                return None
            found, evaluations = descend(self.shape, self.rows, self.rule, self.summary, contexts, m, self.rng)
            self.evaluations += evaluations
            return found

    def update_few(self, arms: NDArray[np.int64], rewards: Floats, contexts: Floats | None) -> bool:
        """A step of Python costs as much as many nodes of a batch: leave it to the batch."""
        return False

    def update(self, arm: int, reward: Any, context: Any) -> bool:
        low, high = self.rows.support
        if not isinstance(reward, int | float) or not max(low, -LARGEST) <= reward <= min(high, LARGEST):
            return False
        if not fits(context, self.rows.dim):
            return False
        with self._lock:
            if self._closed:
                return False
            update(self.shape, self.rows, self.rule, self.summary, arm, float(reward), context)
            return True


def fits(context: Any, dim: int | None) -> bool:
    """Whether a context is ready to use: None where none is needed, else float64s of the right length and size."""
    if dim is None or context is None:
        return dim is None and context is None
    ready = isinstance(context, np.ndarray) and context.dtype == np.float64 and context.shape == (dim,)
    return ready and bool((np.abs(context) <= LARGEST).all())  # false for NaN
