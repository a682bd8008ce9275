"""Build the state of a policy, and transfer its evidence to another tree: everything that changes with the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.priors import beside
from banditree.errors import InvalidType
from banditree.policy import descent, engines
from banditree.rules import Rule
from banditree.tree import Tree
from banditree.tree.build import Name


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Replaced as a whole, so that other threads, and callers after an exception, see the old state or the new one."""

    given: Tree  # the user's tree
    own_priors: dict[Any, Belief]  # priors of some arms, and of clusters by their paths
    tree: Tree  # the tree that is walked: the given one, cut to the depth
    position_of: dict[Name, int]  # arm -> its position
    arms: tuple[Name, ...]
    rows: Rows
    summary: NDArray[np.int32] | None  # (nodes,) representative of each node, if the rule has them
    walk: engines.Walk
    readable: descent.Walk  # the walk itself, or its readable twin, which learns what the native one leaves

    def refresh(self, rule: Rule) -> None:
        """Recompute the representatives from the evidence."""
        fresh = descent.new_summary(self.tree.shape, self.rows, rule)
        if self.summary is not None and fresh is not None:
            self.summary[:] = fresh


def build(given: Tree, own: dict[Any, Belief], walked: Tree, rows: Rows, rule: Rule, options: engines.Options) -> State:
    """Build the state of a policy with these beliefs over a tree."""
    rows.join_evidence()
    rows.fades = options.fade < 1
    rows.attach(walked.shape)
    summary = descent.new_summary(walked.shape, rows, rule)
    readable = descent.Walk(walked, rows, rule, summary, options.stream, options.explore, options.fade)
    walk = engines.build(readable, options)
    return State(given, own, walked, walked.index, walked.arms, rows, summary, walk, readable)


def transferred(old: State, new: State) -> State:
    """Fill the new state with the evidence of the arms that both have, and close it until nobody holds the policy.

    The evidence of an inner node is the sum over its arms, so everything follows from the arms.
    """
    new.walk.min_wide = old.walk.min_wide
    here, there = _common_leaves(new, old)
    new.rows.take_over(old.rows, new.tree.shape, here, there)
    new.refresh(new.readable.rule)
    new.walk.reset()
    new.walk.close()
    return new


def _common_leaves(new: State, old: State) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the leaves of the arms that both have, in the new tree and in the old."""
    if new.arms[: len(old.arms)] == old.arms:  # arms were added or moved: nothing to look up
        n = len(old.arms)
        return new.tree.shape.node_of[:n], old.tree.shape.node_of
    found = [(at, old.position_of[arm]) for at, arm in enumerate(new.arms) if arm in old.position_of]
    here, there = np.array(found, np.intp).reshape(-1, 2).T
    return new.tree.shape.node_of[here], old.tree.shape.node_of[there]


def priors_of_new(
    state: State, belief: Belief, arms: Mapping[Any, Sequence[Any]], prior: Belief | str | None
) -> dict[Any, Belief]:
    """What new arms start from, where it is not the policy's own prior: what arms beside them showed, or as given."""
    if prior is None or not isinstance(arms, Mapping):
        return {}
    if prior == "cluster":
        found = {arm: beside(state.given, state.tree, state.rows, belief, tuple(above)) for arm, above in arms.items()}
        return {arm: each for arm, each in found.items() if each is not None}
    if not isinstance(prior, Belief):
        raise InvalidType(f"prior={prior!r} must be 'cluster', or a {type(belief).__name__} as the policy has")
    return dict.fromkeys(arms, belief.like(prior))
