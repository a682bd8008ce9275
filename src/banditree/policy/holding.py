"""Lock a policy: one thread at a time, and a consistent state after an exception such as Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import Any

from banditree.errors import InvalidValue
from banditree.policy.state import State


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

    @contextmanager
    def held(self, *, changes: bool = True) -> Iterator[State]:
        """Exclusive access: calls from other threads block until it ends.

        ``changes`` says that the evidence may have changed afterwards; the engine then forgets what it derived from it.
        """
        closed = self._closed(changes=changes)
        with self._lock, closed as state:
            yield state

    def _closed(self, *, changes: bool) -> Closed:
        """What the holder of the lock enters to have the walk to itself. Made before the lock is taken."""
        return Closed(self, outermost=not self._is_held(), changes=changes)

    def _free_lock(self) -> Any:
        """Return the lock, for steps that the engine completes or leaves undone; raise inside of `held`."""
        if self._is_held():
            raise InvalidValue(f"this {self._name} is held; call choose or update outside `with policy.held()`")
        return self._lock

    def _mended(self, outermost: bool = True) -> State:
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
        state = self.owner._mended(self.outermost)
        state.walk.close()
        return state

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        state = self.owner._state  # the new one, if there is one; the old one then stays closed
        state.readable.reset()
        if self.changes:
            state.walk.reset()
        if self.outermost:
            state.walk.close(False)
