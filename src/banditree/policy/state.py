"""The state of a policy that changes with its tree, exclusive access to it, and policies in forked processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.priors import OwnPriors, prior_from_siblings
from banditree.errors import InvalidType
from banditree.policy.descent import Walk
from banditree.tree import Tree

if TYPE_CHECKING:
    from banditree.policy.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Replaced as a whole, so that other threads, and callers after an exception, see the old state or the new one."""

    full_tree: Tree  # the user's tree
    own_priors: OwnPriors
    walk: Walk

    @property
    def walked_tree(self) -> Tree:
        """The tree that is walked: the full one, cut to the depth."""
        return self.walk.tree

    @property
    def rows(self) -> Rows:
        return self.walk.rows


def transfer_evidence(old: State, new: State) -> None:
    """Fill the new state with the evidence of the arms that both have.

    The evidence of an inner node is the sum over its arms, so everything follows from the arms.
    """
    new.walk.since_faded = old.walk.since_faded
    new_leaves, old_leaves = _common_leaves(new.walked_tree, old.walked_tree)
    table = np.zeros(new.rows.table.shape)
    table[new_leaves] = old.rows.table[old_leaves]
    new.rows.table += new.walked_tree.shape.sum_up(table)
    new.walk.refresh()


def _common_leaves(new: Tree, old: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the leaves of the arms that both have, in the new tree and in the old."""
    n = len(old.arms)
    if new.arms[:n] == old.arms:  # arms were added or moved: nothing to look up
        return new.shape.node_of[:n], old.shape.node_of
    positions = np.fromiter(map(new.index.get, old.arms, repeat(-1)), np.intp, n)  # of the old arms in the new tree
    in_both = positions >= 0
    return new.shape.node_of[positions[in_both]], old.shape.node_of[in_both]


def priors_of_new(
    state: State, belief: Belief, arms: Mapping[object, Sequence[object]], prior: Belief | str | None
) -> OwnPriors:
    """Return the priors of new arms, estimated from their siblings or as given; none if they have the policy's."""
    if prior is None or not isinstance(arms, Mapping):
        return {}
    if prior == "cluster":
        estimates = {
            arm: prior_from_siblings(state.full_tree, state.walked_tree, state.rows, belief, tuple(above))
            for arm, above in arms.items()
        }
        return {arm: estimate for arm, estimate in estimates.items() if estimate is not None}
    if not isinstance(prior, Belief):
        raise InvalidType(f"prior={prior!r} must be 'cluster', or a {type(belief).__name__} as the policy has")
    return dict.fromkeys(arms, belief.like(prior))


@contextmanager
def hold(policy: Policy) -> Iterator[State]:
    """Hold a policy exclusively: calls from other threads wait.

    `choose` and `update` of the native engine take no lock: the walk refuses them, and they wait for it too.
    """
    with policy._lock:
        walk, was_held = policy._state.walk, policy._state.walk.is_held
        walk.is_held = True
        try:
            yield policy._state
        finally:
            policy._state.walk.is_held = was_held  # of the new state, if there is one: the old one is never used again


def state_of(policy: Policy) -> State:
    """Return the present state of a policy, for code that works with its beliefs or its walk."""
    return policy._state


policies: WeakSet[Policy] = WeakSet()  # all that there are
_abandoned: list[State] = []  # of the parent process: a thread that is not here may have been changing them


def _after_fork_in_child() -> None:
    """Give every policy a fresh stream, as copies have, and a lock and a walk that no other thread was using."""
    for policy in list(policies):
        old = policy._state
        _abandoned.append(old)
        policy._lock, policy._stream = RLock(), policy._fresh_stream()
        policy._state = policy._with_walk(old.full_tree, old.own_priors, old.rows)
        policy._state.walk.since_faded = old.walk.since_faded


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
