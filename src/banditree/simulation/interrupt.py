"""Delay Ctrl-C where it would do harm, and raise it later where Python would lose it.

Python raises KeyboardInterrupt anywhere: inside the standard library's locks, some of which then stay locked for ever,
or during garbage collection, where the exception is dropped.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class CtrlC:
    """A signal handler that raises as Python's own does, except while held back, and remembers that it was called."""

    def __init__(self) -> None:
        self.is_pending = self.is_held = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        is_second, self.is_pending = self.is_pending, True
        if is_second or not self.is_held:  # a second Ctrl-C does not wait
            signal.default_int_handler(number, frame)

    def check(self) -> None:
        """Raise the interrupt that came while it was held back, or that Python dropped."""
        if self.is_pending:
            self.is_pending = False
            raise KeyboardInterrupt

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Do not raise inside this block: keep it short, and call `check` afterwards."""
        before, self.is_held = self.is_held, True
        try:
            yield
        finally:
            self.is_held = before


@contextmanager
def ctrl_c() -> Iterator[CtrlC]:
    """Handle Ctrl-C during long work, which calls `check` now and then. Nested blocks share one handler.

    Where the user's program handles or ignores Ctrl-C itself, or works in another thread, nothing changes, and `check`
    never raises.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and isinstance(handler, CtrlC):
        yield handler
    elif is_main and handler is signal.default_int_handler:
        ours, report_lost = CtrlC(), sys.unraisablehook
        try:
            # `check` raises what Python drops here, so it need not be printed.
            sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else report_lost(lost)
            signal.signal(signal.SIGINT, ours)
            yield ours
            ours.check()
        finally:
            ours.is_pending = False  # it was raised, or is about to be
            with ours.held_back():  # an interrupt here would leave our handler in place
                signal.signal(signal.SIGINT, handler)
                sys.unraisablehook = report_lost
            ours.check()
    else:
        yield CtrlC()
