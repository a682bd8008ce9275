"""Walk down the tree to choose an arm, and update the beliefs on the way up. All algorithms of the paper share this.

Twin of ``native/policy/descent.hpp``: with the native random stream, both take the same steps, draw for draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats, Indices, Places
from banditree.beliefs import Rows
from banditree.beliefs.base import Batch
from banditree.errors import InvalidValue
from banditree.errors.checks import MAX_PLAYS, MAX_REWARD
from banditree.policy.limits import AnyLimits, Limits
from banditree.rules import Rule, View
from banditree.stream import Rng
from banditree.tree import Tree
from banditree.tree.build import Name

BLOCK = 65536  # most scores in memory when many decisions are made together
STEP_OF_FADING = 0.01  # of the evidence, lost at once
LEARNED = -1  # what `Walk.learn` returns; any other number is the first row that is not allowed


def highest(scores: Floats, rng: Rng, rule: Rule) -> Places:
    """Return the row of the highest score in each column; ties are broken at random: (k, m) -> (m,)."""
    ties = scores == scores.max(axis=0)
    n_ties = ties.sum(axis=0)
    if not n_ties.all():
        raise InvalidValue(f"{rule} gave a score that is not a number; scores may be infinite but not NaN")
    winners: Places = ties.argmax(axis=0)
    for column in np.flatnonzero(n_ties > 1):
        winners[column] = np.flatnonzero(ties[:, column])[rng.integers(int(n_ties[column]))]
    return winners


def in_order(scores: Floats, rng: Rng, rule: Rule) -> Places:
    """Return the rows from the highest score to the lowest, ties in random order: (k,) -> (k,)."""
    if np.isnan(scores).any():
        raise InvalidValue(f"{rule} gave a score that is not a number; scores may be infinite but not NaN")
    order = np.argsort(-scores, kind="stable")
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        for i in range(end - 1, start, -1):
            j = start + int(rng.integers(i - start + 1))
            order[i], order[j] = order[j], order[i]
        start = end
    return order


class Fading(NamedTuple):
    """How evidence fades: by a hundredth at once, so that few rewards touch every node. All weights are within 1%."""

    every: int = 0  # rewards between two steps, 0 for none
    factor: float = 1.0  # by which a step multiplies all evidence

    @classmethod
    def of(cls, half_life: float | None) -> Fading:
        if half_life is None:
            return cls()
        every = max(1, int(min(-half_life * math.log2(1 - STEP_OF_FADING), 2.0**53)))
        return cls(every, 0.5 ** (every / half_life))


NO_FADING = Fading()


class Walk:
    """The readable engine: walks one policy's tree with its beliefs, rule and random stream.

    What it is given has been checked (`banditree.policy.inputs`), and the policy's lock is held.
    """

    engine = "readable"
    native: Any = None  # its twin, where the native engine walks
    is_held = False  # whether somebody has the policy to themselves, so that `choose` and `update` refuse
    since_faded = 0  # rewards since evidence was last multiplied, where it fades

    def __init__(
        self, tree: Tree, rows: Rows, rule: Rule, rng: Rng, explore: float = 0.0, fading: Fading = NO_FADING
    ) -> None:
        self.tree, self.shape, self.rows, self.rule, self.rng = tree, tree.shape, rows, rule, rng
        self.explore, self.fading = explore, fading
        self.scored = 0  # children scored so far: the paper's computational cost
        self.summary: NDArray[np.int32] | None = None  # (nodes,) representative of each node, if the rule has them
        self._is_summarised = True  # whether the representatives agree with the evidence
        if rule.summarises:
            self.summary = np.arange(self.shape.n_nodes, dtype=np.int32)  # a leaf represents itself
            self.summarise(self.shape.inner[::-1])

    @property
    def evaluations(self) -> int:
        """How many children have been scored so far: the paper's computational cost."""
        return self.scored

    def refresh(self) -> None:
        """Compute again what derives from the evidence, which has been replaced."""
        self.summarise(self.shape.inner[::-1])

    def summarise(self, inner: Iterable[int]) -> None:
        """Recompute the representatives of these inner nodes, the lowest first, if the rule has them."""
        if self.summary is not None:
            start = self.shape.start
            for node in inner:
                kept = self.rule.summarise(self.rows, int(node), self.summary[start[node] : start[node + 1]])
                assert kept is not None
                self.summary[node] = kept
        self._is_summarised = True

    def limits(self, arms: NDArray[np.int64], only: bool) -> AnyLimits:
        return Limits(self.shape, arms, only)

    # Choosing

    def choose(self, context: object, /) -> Name | None:
        """Choose without the policy's lock, if that is possible: only the native engine does, in one step."""
        return None

    def choose_within(self, limits: AnyLimits | None, context: Floats | None) -> int:
        """Choose one arm, and return its position; -1 if a score is not a number."""
        return int(self._choose(1, None if context is None else context[None], limits)[0])

    def choose_many(self, m: int, contexts: Floats | None) -> NDArray[np.int32] | None:
        return self._choose(m, contexts, None)

    def _choose(self, m: int, contexts: Floats | None, limits: AnyLimits | None) -> NDArray[np.int32]:
        """Make m decisions: (m,) positions of arms."""
        self._complete()
        if self.explore == 0:
            return self._descend(m, contexts, limits)
        arms = np.empty(m, np.int32)
        for i in range(m):  # each decision first draws whether it explores
            context = None if contexts is None else contexts[i : i + 1]
            arms[i] = (self._any_arms(1, limits) if self._explores() else self._descend(1, context, limits))[0]
        return arms

    def slate(self, k: int, limits: AnyLimits | None, context: Floats | None) -> NDArray[np.int32] | None:
        """Choose k different arms, best first, with one draw per node: depth first, best children first."""
        self._complete()
        if self._explores():
            return self._any_arms(k, limits)
        contexts = None if context is None else context[None]
        arms: list[int] = []
        waiting = [0]
        while len(arms) < k:
            node = waiting.pop()
            children = self.children(node, limits)
            if not len(children):
                arms.append(int(self.shape.content[node]))
            elif len(children) == 1:
                waiting.append(int(children[0]))
            else:
                scores = self._score(self.view(node, children, contexts, limits))[:, 0]
                waiting.extend(children[in_order(scores, self.rng, self.rule)][::-1].tolist())
        return np.array(arms, np.int32)

    def _descend(self, m: int, contexts: Floats | None, limits: AnyLimits | None) -> NDArray[np.int32]:
        """Walk m decisions from the root to an arm each: (m,) positions of arms.

        At each node: score the children, step to the best. Decisions at the same node are scored together.
        """
        arms = np.empty(m, np.int32)
        waiting = [(0, np.arange(m))]  # nodes, and the decisions that have reached them
        while waiting:
            node, who = waiting.pop()
            children = self.children(node, limits)
            if len(children) == 0:
                arms[who] = self.shape.content[node]
            elif len(children) == 1:  # nothing to choose
                waiting.append((int(children[0]), who))
            else:
                step = np.empty(len(who), np.intp)
                block = max(1, BLOCK // max(len(children), (self.rows.dim or 1) ** 2))
                for at in range(0, len(who), block):
                    these = who[at : at + block]
                    view = self.view(node, children, None if contexts is None else contexts[these], limits, len(these))
                    step[at : at + block] = highest(self._score(view), self.rng, self.rule)
                for best in sorted(set(step.tolist()), reverse=True):
                    waiting.append((int(children[best]), who[step == best]))
        return arms

    def view(self, node: int, children: Indices, contexts: Floats | None, limits: AnyLimits | None, m: int = 1) -> View:
        """Return the rule's view of some children of a node, for m decisions with contexts (m, dim)."""
        summary = self.summary
        if limits is not None and summary is not None:
            summary = summary.copy()
            summary[children] = [self._representative(int(child), limits) for child in children]
        return View(self.rows, node, np.asarray(children, np.intp), contexts, m, self.rng, summary)

    def _score(self, view: View) -> Floats:
        self.scored += len(view.children) * view.m
        scores = np.asarray(self.rule.score(view))
        full = len(view.children), view.m
        if scores.shape not in (full, (len(view.children), 1)):
            raise InvalidValue(
                f"{self.rule} gave scores of shape {scores.shape}; it must give (k, m) = {full}, or (k, 1)"
            )
        return scores if scores.shape == full else np.broadcast_to(scores, full)

    def _representative(self, node: int, limits: AnyLimits) -> int:
        """Return the representative of a node with limited arms: the best allowed arm, or the first if none was tried.

        A cluster in which no arm was ever tried represents itself.
        """
        assert self.summary is not None
        children = limits.allowed(node) if self.shape.content[node] < 0 else ()
        if not len(children) or self.shape.content[self.summary[node]] < 0:
            return int(self.summary[node])
        candidates = np.array([self._representative(int(child), limits) for child in children], np.int32)
        best = self.rule.summarise(self.rows, node, candidates)
        return int(candidates[0]) if best is None or best == node else best

    def children(self, node: int, limits: AnyLimits | None) -> Places:
        """Return the nodes that compete at a node, in order: its children, or all arms where beliefs are joint."""
        if self.rows.joint and node > 0:
            return np.empty(0, np.intp)
        if self.rows.joint:
            leaves = self.shape.node_of if limits is None else self.shape.node_of[limits.arms_allowed()]
            return np.sort(leaves).astype(np.intp)
        if limits is not None:
            return np.asarray(limits.allowed(node), np.intp)
        return np.arange(self.shape.start[node], self.shape.start[node + 1])

    def wins(self, limits: AnyLimits | None, context: Floats | None, arm: int = -1) -> Floats | None:
        """Return the probabilities of all arms, or of the steps to one; None where they are computed step by step."""
        return None

    def path(self, position: int) -> list[int]:
        """Return the nodes from the root to an arm through which the walk goes."""
        leaf = int(self.shape.node_of[position])
        return [0, leaf] if self.rows.joint else self.shape.path_up(leaf)[::-1]

    def _explores(self) -> bool:
        return self.explore > 0 and bool(self.rng.random() < self.explore)

    def _any_arms(self, k: int, limits: AnyLimits | None) -> NDArray[np.int32]:
        """Choose k different arms, all ordered selections equally likely: the first k steps of a shuffle."""
        n = len(self.shape.node_of) if limits is None else limits.n_allowed
        swapped: dict[int, int] = {}  # ranks that have moved
        arms = []
        for i in range(k):
            j = i + int(self.rng.integers(n - i))
            rank = swapped.get(j, j)
            swapped[j] = swapped.get(i, i)
            arms.append(rank)
        return np.array(arms if limits is None else limits.arms_allowed()[arms], np.int32)

    # Learning

    def update(self, arm: object, reward: object, context: object, /) -> bool:
        """Learn without the policy's lock, if that is possible; say whether it was."""
        return False

    def learn_lists(self, arms: object, rewards: object, contexts: object, /) -> bool:
        """Learn short lists without the policy's lock, if that is possible; say whether it was."""
        return False

    def learn_one(self, position: int, reward: float, context: Floats | None) -> None:
        """Learn from one reward of the arm at this position."""
        self._fade()
        path = np.array(self.shape.path_up(int(self.shape.node_of[position])))
        self._change(lambda: self.rows.add(path, reward, 1.0, context), path[1:])
        self.since_faded += self.fading.every > 0

    def learn(self, arms: NDArray[np.int64], rewards: Floats, plays: Floats | None, contexts: Floats | None) -> int:
        """Learn many rewards at once, with the same result as one by one, because evidence adds up.

        Returns LEARNED, or the first row that is not allowed. The arrays are copied first, so that what is checked is
        what is used even if another thread changes them.
        """
        n = len(arms)
        arms, rewards, plays = arms.copy(), rewards.copy(), np.ones(n) if plays is None else plays.copy()
        bad = first_not_allowed(arms, rewards, plays, self.tree.n_arms, self.rows.support)
        if bad is not None:
            return bad
        done = 0
        while done < n:  # evidence that fades does so between two of these parts
            self._fade()
            end = min(done + self.fading.every - self.since_faded, n) if self.fading.every else n
            part = slice(done, end)
            batch = Batch.of(
                arms[part], rewards[part], plays[part], None if contexts is None else contexts[part], self.tree.n_arms
            )
            touched = self.shape.nodes_above(batch.count)
            self._change(
                lambda batch=batch: self.rows.add_batch(self.shape, batch),  # type: ignore[misc]
                touched[self.shape.content[touched] < 0][::-1],
            )
            self.since_faded += end - done if self.fading.every else 0
            done = end
        return LEARNED

    def forget(self, factor: float) -> None:
        """Multiply all evidence by ``factor``."""
        self._change(lambda: self.rows.forget(factor), self.shape.inner[::-1])

    def _fade(self) -> None:
        """Let evidence fade by a step, if enough rewards have come since the last."""
        if self.fading.every and self.since_faded == self.fading.every:
            self.forget(self.fading.factor)
            self.since_faded = 0

    def _change(self, change: Callable[[], None], inner: Iterable[int]) -> None:
        """Change the evidence, and then the representatives of these inner nodes, the lowest first."""
        self._complete()
        self._is_summarised = False
        change()
        self.summarise(self.shape.inner[::-1] if self.rows.shares_means else inner)

    def _complete(self) -> None:
        """Compute the representatives where an exception, such as Ctrl-C, came before that."""
        if not self._is_summarised:
            self.refresh()


def first_not_allowed(
    arms: NDArray[np.int64], rewards: Floats, plays: Floats, n_arms: int, support: tuple[float, float]
) -> int | None:
    """Return the first row whose arm, or sum of rewards, is not allowed; None if all are allowed."""
    with np.errstate(invalid="ignore", over="ignore"):
        fine = (arms >= 0) & (arms < n_arms)
        fine &= (plays > 0) & (plays <= MAX_PLAYS) & (np.abs(rewards) <= MAX_REWARD)
        fine &= (rewards >= support[0] * plays) & (rewards <= support[1] * plays)
    return None if fine.all() else int(np.argmin(fine))
