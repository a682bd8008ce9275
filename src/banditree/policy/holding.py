"""Exclusive access to a policy: one thread at a time, and whole whatever exception comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from banditree.errors import InvalidValue
from banditree.policy.state import State


class Held:
    """What has a state that calls from several threads use in turn."""

    _state: State
    _name: str

    def __init__(self) -> None:
        self._lock = RLock()

    @contextmanager
    def held(self, *, changes: bool = True) -> Iterator[State]:
        """Exclusive access: calls from other threads block until it ends.

        ``changes`` says that the evidence may be another afterwards; the engine then forgets what it derived from it.
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
                    self._state.walk.close(False)  # the new walk, if there is one; the old one then stays closed

    def _exclusive(self) -> _Exclusive:
        """The same for steps of the policy's own, which the engine makes whole."""
        return _Exclusive(self)

    def _mend(self, outermost: bool) -> None:
        """Complete what an exception such as Ctrl-C has left: a change half made, or a walk that is still closed."""
        self._state.readable.reset()
        if outermost and self._state.walk.closed:
            self._state.walk.reset()
            self._state.walk.close(False)

    def _is_held(self) -> bool:
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return owned

    def _refuse_if_held(self) -> None:
        if self._is_held():
            raise InvalidValue(f"this {self._name} is held; choose and update before or after `with policy.held()`")


class _Exclusive:
    """The lock of a policy as a context, with its state; `contextmanager` would take as long as a step of the walk."""

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
