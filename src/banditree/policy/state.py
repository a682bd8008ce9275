"""The state of a policy: what changes with the tree, who may change it, and what a forked process does with it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.priors import prior_from_siblings
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import descent, engines
from banditree.rules import Rule
from banditree.stream import native, unlock
from banditree.stream import reseed as reseeded
from banditree.tree import Tree
from banditree.tree.build import Name

if TYPE_CHECKING:
    from banditree.policy.policy import Policy


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


def transfer_evidence(old: State, new: State) -> State:
    """Fill the new state with the evidence of the arms that both have, and close it until nobody holds the policy.

    The evidence of an inner node is the sum over its arms, so everything follows from the arms.
    """
    new.walk.min_wide = old.walk.min_wide
    new_leaves, old_leaves = _common_leaves(new, old)
    new.rows.take_over(old.rows, new.tree.shape, new_leaves, old_leaves)
    new.refresh(new.readable.rule)
    new.walk.reset()
    new.walk.close()
    return new


def _common_leaves(new: State, old: State) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the leaves of the arms that both have, in the new tree and in the old."""
    if new.arms[: len(old.arms)] == old.arms:  # arms were added or moved: nothing to look up
        n = len(old.arms)
        return new.tree.shape.node_of[:n], old.tree.shape.node_of
    pairs = [(at, old.position_of[arm]) for at, arm in enumerate(new.arms) if arm in old.position_of]
    new_positions, old_positions = np.array(pairs, np.intp).reshape(-1, 2).T
    return new.tree.shape.node_of[new_positions], old.tree.shape.node_of[old_positions]


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


class Held:
    """What a policy needs for exclusive access to its state.

    An exception may come between any two steps of Python. ``with self._lock`` gives the lock back whenever it comes; a
    generator or an ``__enter__`` that took the lock might keep it. So the policy's own methods write just that.
    """

    __slots__ = ("_lock", "_name", "_state")
    _name: str
    _state: State

    def __init__(self) -> None:
        self._lock = RLock()

    def _close_walk(self, *, changes: bool) -> Closed:
        """What the holder of the lock enters to have the walk to itself. Made before the lock is taken."""
        return Closed(self, outermost=not self._is_held(), changes=changes)

    def _free_lock(self) -> AbstractContextManager[object]:
        """Return the lock, for steps that the engine completes or leaves undone; raise inside of `hold`."""
        if self._is_held():
            raise InvalidValue(f"this {self._name} is held; call choose or update outside `with hold(policy)`")
        return self._lock

    def _recover_state(self, outermost: bool = True) -> State:
        """Complete what an exception such as Ctrl-C has left: a change half made, or a walk that is still closed."""
        state = self._state
        state.readable.reset()
        if outermost and state.walk.closed:
            state.walk.reset()
            state.walk.close(False)
        return state

    def _is_held(self) -> bool:
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return owned


class Closed:
    """A walk that refuses `choose` and `update`, which come without the policy's lock.

    Where an exception comes before or after it, the walk stays closed until the next call mends it.
    """

    def __init__(self, owner: Held, *, outermost: bool, changes: bool) -> None:
        self.owner, self.outermost, self.changes = owner, outermost, changes

    def __enter__(self) -> State:
        state = self.owner._recover_state(self.outermost)
        state.walk.close()
        return state

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        state = self.owner._state  # the new one, if there is one; the old one then stays closed
        state.readable.reset()
        if self.changes:
            state.walk.reset()
        if self.outermost:
            state.walk.close(False)


def state_of(policy: Held) -> State:
    """Return the parts of a policy as they are now, for code that works with its beliefs or its walk."""
    return policy._state


@contextmanager
def hold(policy: Held, *, changes: bool = True) -> Iterator[State]:
    """Have a policy's state to oneself: calls from other threads block until the end.

    ``changes`` says that the evidence may have changed afterwards; the engine then forgets what it derived from it.
    """
    closed = policy._close_walk(changes=changes)
    with policy._lock, closed as state:
        yield state


_policies: WeakSet[Policy] = WeakSet()
_unseeded: WeakSet[Policy] = WeakSet()


def remember(policy: Policy, *, reseed: bool) -> None:
    """Register a policy, to be repaired in processes that are forked from this one."""
    _policies.add(policy)
    if reseed:
        _unseeded.add(policy)


def _before_fork() -> None:
    """Import what NumPy imports when it is first needed: a thread in the middle of that would be gone in the child.

    And wait for threads that compute without the GIL.
    """
    if _policies:
        importlib.import_module("numpy.ma")
    if native is not None:
        native.before_fork()


def _after_fork_in_parent() -> None:
    if native is not None:
        native.after_fork(False)


def _after_fork_in_child() -> None:
    """Complete what threads that no longer exist had begun, and reseed policies without a seed."""
    if native is not None:
        native.after_fork(True)
    for policy in list(_policies):
        policy._lock = RLock()
        unlock(policy._stream)
        policy._state.readable.free()
        policy._recover_state()
    for policy in list(_unseeded):
        reseeded(policy._stream)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
