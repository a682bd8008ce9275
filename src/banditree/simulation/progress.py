"""Show a progress bar during long work: on a terminal, and nowhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from banditree.errors import missing_extra
from banditree.stream import native

LONG = 10.0  # seconds
NO_NATIVE = "This runs on the readable engine, about 20 times slower: the native one was not built (no C++ compiler?)."


@contextmanager
def progress_bar(progress: bool | None, *, seconds: float = 0.0, rate: bool = False, **options: Any) -> Iterator[Any]:
    """Open a Rich progress bar, or give None: it is shown on a terminal unless ``progress`` says otherwise.

    It needs Rich, and the main thread. Tasks have a field ``rate``, a text, if there is a ``rate``. Where the native
    engine is missing, and ``seconds``, what the work takes on the readable one, is long, a line says so; where that is
    not known beforehand, call `say_why_slow`.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        if progress:
            raise missing_extra("cli", "a progress bar needs Rich", "; or leave out progress=True") from None
        shown = False
    if not shown or threading.current_thread() is not threading.main_thread():
        yield None
        return
    console = Console(stderr=True)
    say_why_slow(console, seconds)
    columns = [rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn()]
    columns += [rich.TextColumn("{task.fields[rate]}")] if rate else []
    columns += [rich.TimeRemainingColumn(elapsed_when_finished=not rate)]
    with rich.Progress(*columns, console=console, transient=console.is_terminal, **options) as bar:
        yield bar


def say_why_slow(console: Any, seconds: float) -> bool:
    """Print that the native engine is missing, if it is and the work takes so long; return whether it was printed."""
    slow = native is None and seconds > LONG
    if slow:
        console.print(NO_NATIVE, style="yellow")
    return slow
