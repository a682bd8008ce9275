"""The service's clock: it never goes back and never jumps, whatever happens to the clock that it follows."""

from __future__ import annotations

import sys
import threading
import time

SLEW = 0.1  # how much faster or slower than true time it may go, to follow its source


def monotonic() -> int:
    """Return a time in microseconds that nobody can set; where possible, one that counts while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return time.monotonic_ns() // 1000


class Clock:
    """Tells the time in microseconds since 1970.

    It starts at the time of its source and goes on at the pace of a monotonic clock. When the source differs, by
    whatever amount, it goes up to a tenth faster or slower until they agree again: a source that jumps by 30 days for a
    second moves it by a tenth of a second.
    """

    def __init__(self, source: int) -> None:
        self._at, self._read = source, monotonic()
        self._telling = threading.Lock()

    def now(self, source: int | None = None) -> int:
        """Return the time, given that of the source if it is known."""
        with self._telling:
            read = monotonic()
            passed = read - self._read
            slack = round(passed * SLEW)
            ahead = 0 if source is None else source - (self._at + passed)
            self._at += max(passed + max(-slack, min(slack, ahead)), 0)
            self._read = read
            return self._at
