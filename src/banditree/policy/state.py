"""The state of a policy: what changes with the tree, who may change it, and what a forked process does with it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.priors import prior_from_siblings
from banditree.errors import InvalidType
from banditree.policy import descent, engines
from banditree.stream import native, reseed, unlock
from banditree.tree import Tree

if TYPE_CHECKING:
    from banditree.policy.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Replaced as a whole, so that other threads, and callers after an exception, see the old state or the new one."""

    given: Tree  # the user's tree
    own_priors: dict[Any, Belief]  # priors of some arms, and of clusters by their paths
    tree: Tree  # the tree that is walked: the given one, cut to the depth
    rows: Rows
    walk: engines.Walk
    readable: descent.Walk  # the walk itself, or its readable twin, which learns what the native one leaves


def transfer_evidence(old: State, new: State) -> State:
    """Fill the new state with the evidence of the arms that both have, and close it until nobody holds the policy.

    The evidence of an inner node is the sum over its arms, so everything follows from the arms.
    """
    new.walk.min_wide, new.walk.since_faded = old.walk.min_wide, old.walk.since_faded
    new_leaves, old_leaves = _common_leaves(new.tree, old.tree)
    new.rows.take_over(old.rows, new.tree.shape, new_leaves, old_leaves)
    new.readable.summarise(new.tree.shape.inner[::-1])
    new.walk.reset()
    new.walk.close()
    return new


def _common_leaves(new: Tree, old: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the leaves of the arms that both have, in the new tree and in the old."""
    n = len(old.arms)
    if new.arms[:n] == old.arms:  # arms were added or moved: nothing to look up
        return new.shape.node_of[:n], old.shape.node_of
    pairs = [(at, old.index[arm]) for at, arm in enumerate(new.arms) if arm in old.index]
    new_positions, old_positions = np.array(pairs, np.intp).reshape(-1, 2).T
    return new.shape.node_of[new_positions], old.shape.node_of[old_positions]


def priors_of_new(
    state: State, belief: Belief, arms: Mapping[Any, Sequence[object]], prior: Belief | str | None
) -> dict[Any, Belief]:
    """What new arms start from, where it is not the policy's own prior: what arms beside them showed, or as given."""
    if prior is None or not isinstance(arms, Mapping):
        return {}
    if prior == "cluster":
        estimates = {
            arm: prior_from_siblings(state.given, state.tree, state.rows, belief, tuple(above))
            for arm, above in arms.items()
        }
        return {arm: estimate for arm, estimate in estimates.items() if estimate is not None}
    if not isinstance(prior, Belief):
        raise InvalidType(f"prior={prior!r} must be 'cluster', or a {type(belief).__name__} as the policy has")
    return dict.fromkeys(arms, belief.like(prior))


@contextmanager
def hold(policy: Policy, *, changes: bool = True) -> Iterator[State]:
    """Have a policy's state to oneself: calls from other threads wait until the end.

    The walk is closed meanwhile, so that `choose` and `update`, which come without the policy's lock, wait for it.
    ``changes`` says that the evidence may have changed afterwards; the engine then forgets what it derived from it.
    """
    with policy._lock:
        state = policy._state
        is_inner = state.walk.closed  # inside of another `hold`
        state.walk.close()
        try:
            yield state
        finally:
            state = policy._state  # the new one, if there is one; the old one then stays closed
            state.readable.reset()
            if changes:
                state.walk.reset()
            if not is_inner:
                state.walk.close(False)


def state_of(policy: Policy) -> State:
    """Return the parts of a policy as they are now, for code that works with its beliefs or its walk."""
    return policy._state


_policies: WeakSet[Policy] = WeakSet()
_unseeded: WeakSet[Policy] = WeakSet()


def remember(policy: Policy, *, is_seeded: bool) -> None:
    """Register a policy, to be repaired in processes that are forked from this one."""
    _policies.add(policy)
    if not is_seeded:
        _unseeded.add(policy)


def _before_fork() -> None:
    """Import what NumPy imports when it is first needed: a thread in the middle of that would be gone in the child."""
    if _policies:
        importlib.import_module("numpy.ma")


def _after_fork_in_child() -> None:
    """Complete what threads that no longer exist had begun, and reseed policies without a seed."""
    if native is not None:
        native.after_fork(True)
    for policy in list(_policies):
        policy._lock = RLock()
        unlock(policy._stream)
        state = policy._state
        state.readable.free()
        state.readable.reset()
        state.walk.reset()
        state.walk.close(False)
    for policy in list(_unseeded):
        reseed(policy._stream)


if hasattr(os, "register_at_fork"):  # of several functions for `before`, the last one registered is called first
    if native is not None:  # a fork waits for threads that compute without the GIL
        os.register_at_fork(before=native.before_fork, after_in_parent=partial(native.after_fork, False))
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
