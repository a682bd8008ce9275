"""End commands on errors: one sentence on stderr and an exit code instead of a traceback; and check output files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn, TextIO

from banditree.base.files import find_target
from banditree.base.words import visible
from banditree.errors import BanditreeError, Interrupted, InvalidValue

USER_ERROR, STOPPED = 2, 130  # exit codes; STOPPED is for Ctrl-C


def exit_with(message: str, code: int) -> NoReturn:
    """Print a message on stderr and end the command."""
    print(visible(message, lines=True), file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn errors that users can fix, and Ctrl-C, into a message and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output is gone, as with head: not an error
        raise
    except NotADirectoryError as error:
        exit_with(f"Error: {_in_the_way(error.filename)} is a file; give a folder", USER_ERROR)
    except (BanditreeError, OSError) as error:
        exit_with(f"Error: {error}", USER_ERROR)
    except KeyboardInterrupt as stopped:
        has_more = isinstance(stopped, Interrupted)  # else the text is of Python's own, such as what it was decoding
        exit_with(f"{stopped}." if has_more else "Stopped.", STOPPED)


def replace_unprintable() -> None:
    """Print "?" for characters that the output's encoding lacks, such as box characters when redirected on Windows."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def can_write_unicode(stream: TextIO) -> bool:
    """Whether every character can be written to the stream."""
    return stream.encoding.lower().startswith("utf")


def check_outputs(*files: Path | None, source: Path | None = None) -> None:
    """Check before the work starts that output files can be written, differ, and are not the source."""
    taken = {} if source is None else {Path(os.path.realpath(source)): "the input file"}
    for file in files:
        if file is None:
            continue
        target = find_target(file)
        for other, what in taken.items():
            if target == other or (target.exists() and other.exists() and target.samefile(other)):
                raise InvalidValue(f"cannot write {file}: it is {what}; give another name")
        taken[target] = "another output of this command"


def _in_the_way(path: str) -> Path:
    """Find the file on this path that is where a folder is needed."""
    return next((part for part in (Path(path), *Path(path).parents) if part.is_file()), Path(path))
