"""What every command does about mistakes: a sentence on stderr and an exit code, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn, TextIO

from banditree.errors import BanditreeError, InvalidValue
from banditree.output.files import place
from banditree.output.words import visible
from banditree.simulation.interrupt import ctrl_c

MISTAKE, STOPPED = 2, 130  # exit codes: the user's mistake, Ctrl-C


def leave(message: str, code: int) -> NoReturn:
    """Say why on stderr, and end the command."""
    print(visible(message, lines=True), file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def mistakes() -> Iterator[None]:
    """A message and an exit code for what users get wrong, and for Ctrl-C."""
    try:
        with ctrl_c():
            yield
    except BrokenPipeError:  # the reader left, as head does: no mistake, and nobody to tell
        raise
    except NotADirectoryError as error:
        leave(f"Error: {_in_the_way(error.filename)} is a file; give a folder", MISTAKE)
    except (BanditreeError, OSError) as error:
        leave(f"Error: {error}", MISTAKE)
    except KeyboardInterrupt as stopped:
        leave(f"Stopped: {stopped}" if str(stopped) else "Stopped.", STOPPED)


def show_what_can_be_shown() -> None:
    """Where output is in an encoding without box characters or √, as when redirected on Windows, show "?" instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def carries_all(stream: TextIO) -> bool:
    """Whether every character can be written to it."""
    return stream.encoding.lower().startswith("utf")


def check_places(*files: Path | None, source: Path | None = None) -> None:
    """Refuse, before the work that they are for, files that cannot be written, are the source, or are named twice."""
    taken = {} if source is None else {Path(os.path.realpath(source)): "the file that is read"}
    for file in files:
        if file is None:
            continue
        target = place(file)
        for other, what in taken.items():
            if target == other or (target.exists() and other.exists() and target.samefile(other)):
                raise InvalidValue(f"cannot write {file}: it is {what}; give another name")
        taken[target] = "another output of this command"


def _in_the_way(path: str) -> Path:
    """The file on this path that stands where a folder is needed."""
    return next((part for part in (Path(path), *Path(path).parents) if part.is_file()), Path(path))
