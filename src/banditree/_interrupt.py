"""Ctrl-C that does not get lost. Python drops a KeyboardInterrupt that comes up while it collects garbage."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Remembering:
    """A handler that raises, as Python's own does, and knows afterwards that it did."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)

    def again(self) -> None:
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def ctrl_c() -> Iterator[Callable[[], None]]:
    """While open, Ctrl-C is raised as ever, and remembered: the function that this gives raises it again.

    Long work calls it every now and then. Inside another ``ctrl_c()`` the two are one. Where the user's program handles
    Ctrl-C itself, ignores it, or works in another thread, nothing is changed and the function does nothing.
    """
    found = signal.getsignal(signal.SIGINT)
    if isinstance(found, _Remembering):
        yield found.again
    elif found is signal.default_int_handler and threading.current_thread() is threading.main_thread():
        ours, complain = _Remembering(), sys.unraisablehook
        signal.signal(signal.SIGINT, ours)
        sys.unraisablehook = lambda lost: None if _is_ctrl_c(lost) else complain(lost)
        try:
            yield ours.again
        finally:
            signal.signal(signal.SIGINT, found)
            sys.unraisablehook = complain
    else:
        yield lambda: None


def _is_ctrl_c(lost: Any) -> bool:
    """Whether what Python drops and would print is what is raised again in a moment."""
    return lost.exc_type is KeyboardInterrupt
