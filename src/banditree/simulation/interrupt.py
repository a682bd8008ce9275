"""Ctrl-C that comes when it can do no harm, and does not get lost.

Python raises a KeyboardInterrupt anywhere: in the middle of the standard library's locks, some of which then stay
closed for ever, or while it collects garbage, where the exception is dropped.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class CtrlC:
    """Raises, as Python's own handler does, but not while it is held back; and knows afterwards that it was called."""

    def __init__(self) -> None:
        self.came = self.held = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        again, self.came = self.came, True
        if again or not self.held:  # who presses it twice does not want to wait
            signal.default_int_handler(number, frame)

    def check(self) -> None:
        """Raise what came while it was held back, or was lost."""
        if self.came:
            self.came = False
            raise KeyboardInterrupt

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Nothing is raised in here: keep it short, and `check` afterwards."""
        before, self.held = self.held, True
        try:
            yield
        finally:
            self.held = before


@contextmanager
def ctrl_c() -> Iterator[CtrlC]:
    """What to ask about Ctrl-C every now and then in long work. Inside another ``ctrl_c()`` the two are one.

    Where the user's program handles Ctrl-C itself, ignores it, or works in another thread, nothing is changed, and the
    answer is always no.
    """
    found, main = signal.getsignal(signal.SIGINT), threading.current_thread() is threading.main_thread()
    if main and isinstance(found, CtrlC):
        yield found
    elif main and found is signal.default_int_handler:
        ours, complain = CtrlC(), sys.unraisablehook
        try:
            sys.unraisablehook = lambda lost: None if _is_ctrl_c(lost) else complain(lost)
            signal.signal(signal.SIGINT, ours)
            yield ours
            ours.check()
        finally:
            ours.came = False  # it was raised, or is on its way
            with ours.held_back():  # one that comes now would prevent the end of its own handler
                signal.signal(signal.SIGINT, found)
                sys.unraisablehook = complain
            ours.check()
    else:
        yield CtrlC()


def _is_ctrl_c(lost: Any) -> bool:
    """Whether what Python drops and would print is what `check` raises in a moment."""
    return lost.exc_type is KeyboardInterrupt
