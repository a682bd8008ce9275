"""What every command does about mistakes: a sentence on stderr and an exit code, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from banditree.errors import BanditreeError, InvalidValue

MISTAKE, STOPPED = 2, 130  # exit codes: the user's mistake, Ctrl-C


def leave(message: str, code: int) -> NoReturn:
    """Say why on stderr, and end the command."""
    print(message, file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def mistakes() -> Iterator[None]:
    """A message and an exit code for what users get wrong, and for Ctrl-C."""
    try:
        yield
    except BrokenPipeError:  # the reader left, as head does: no mistake, and nobody to tell
        raise
    except (BanditreeError, OSError) as error:
        leave(f"Error: {error}", MISTAKE)
    except KeyboardInterrupt as stopped:
        leave(f"Stopped: {stopped}" if str(stopped) else "Stopped.", STOPPED)


def check_place(file: Path) -> None:
    """Refuse a file that could not be written, before the work that it is for."""
    if not file.parent.is_dir():
        raise InvalidValue(f"cannot write {file}: there is no folder {file.parent}; make it first")
    if file.is_dir():
        raise InvalidValue(f"cannot write {file}: it is a folder; give the name of a file")
