"""The script ``banditree``. It is outside the package, so that Ctrl-C while that is being imported ends it quietly."""

import os
import signal
import sys
from types import FrameType

STOPPED = 130  # the exit code after Ctrl-C


def main() -> None:
    """Import the command line, and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell has it ignored
        signal.signal(signal.SIGINT, _stop)
    from banditree.cli.main import main as run

    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _stop(_: int, __: FrameType | None) -> None:
    """End the process at once: nothing has started that would have to be finished."""
    print("Stopped.", file=sys.stderr, flush=True)
    os._exit(STOPPED)
