"""Give the policies in a forked process new locks, and those without a seed a fresh random stream.

A web server that loads a policy and then forks has one copy per worker. Policies built without a seed get a fresh one
in each worker; those built with a seed continue unchanged.
"""

from __future__ import annotations

import importlib
import os
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from banditree.stream import reseed as reseeded
from banditree.stream import unlock

if TYPE_CHECKING:
    from banditree.policy.policy import Policy

_policies: WeakSet[Policy] = WeakSet()
_unseeded: WeakSet[Policy] = WeakSet()


def remember(policy: Policy, *, reseed: bool) -> None:
    """Register a policy, to be repaired in processes that are forked from this one."""
    _policies.add(policy)
    if reseed:
        _unseeded.add(policy)


def _before_fork() -> None:
    """Import what NumPy imports when it is first needed: a thread in the middle of that would be gone in the child."""
    if _policies:
        importlib.import_module("numpy.ma")


def _after_fork() -> None:
    """Complete what threads that no longer exist had begun, and reseed policies without a seed."""
    for policy in list(_policies):
        policy._lock = RLock()
        unlock(policy._stream)
        policy._state.readable.free()
        policy._mended()
    for policy in list(_unseeded):
        reseeded(policy._stream)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
