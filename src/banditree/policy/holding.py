"""Exclusive access to a policy: one thread at a time, and consistent after any exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from banditree.errors import InvalidValue
from banditree.policy.state import State


class Held:
    """Base of objects with a state that several threads use in turn."""

    _state: State
    _name: str

    def __init__(self) -> None:
        self._lock = RLock()

    @contextmanager
    def held(self, *, changes: bool = True) -> Iterator[State]:
        """Take exclusive access: calls from other threads block until it ends.

        ``changes`` says that the evidence may change; the engine then discards what it derived from it.
        """
        outermost = not self._is_held()
        with self._lock:
            self._mend(outermost)
            self._state.walk.close()
            try:
                yield self._state
            finally:
                self._state.readable.reset()
                if changes:
                    self._state.walk.reset()
                if outermost:
                    self._state.walk.close(False)  # of the new walk if there is one; the old one then stays closed

    def _exclusive(self) -> _Exclusive:
        """Take exclusive access for the policy's own steps, which the engine keeps consistent."""
        return _Exclusive(self)

    def _mend(self, outermost: bool) -> None:
        """Repair what an exception such as Ctrl-C has left: a change half applied, or a walk that is still closed."""
        self._state.readable.reset()
        if outermost and self._state.walk.closed:
            self._state.walk.reset()
            self._state.walk.close(False)

    def _is_held(self) -> bool:
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return owned

    def _refuse_if_held(self) -> None:
        if self._is_held():
            raise InvalidValue(f"this {self._name} is held; call choose or update outside `with policy.held()`")


class _Exclusive:
    """Hold the lock of a policy in a ``with`` block; `contextmanager` would take as long as a step of the walk."""

    __slots__ = ("policy",)

    def __init__(self, policy: Held) -> None:
        self.policy = policy

    def __enter__(self) -> State:
        self.policy._refuse_if_held()
        self.policy._lock.acquire()
        try:
            self.policy._mend(True)
        except BaseException:
            self.policy._lock.release()
            raise
        return self.policy._state

    def __exit__(self, *_: object) -> None:
        self.policy._lock.release()
