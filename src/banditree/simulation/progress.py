"""The bar of long work: on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from banditree.errors import missing_extra
from banditree.stream import native

LONG = 10.0  # seconds
NO_NATIVE = "This runs on the readable engine, about 20 times slower: the native one was not built (no C++ compiler?)."


@contextmanager
def screen(
    progress: bool | None, columns: Callable[[Any], tuple[Any, ...]], *, seconds: float, **options: Any
) -> Iterator[Any]:
    """Rich's bar, or None: on a terminal unless ``progress`` overrules; in the main thread, and if Rich is installed.

    ``columns`` makes the columns from Rich's module, which is imported only here. Where the native engine is missing,
    and would save most of the ``seconds`` that the readable one takes, a line says so.
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
    if native is None and seconds > LONG:
        console.print(NO_NATIVE, style="yellow")
    with rich.Progress(*columns(rich), console=console, transient=console.is_terminal, **options) as bar:
        yield bar
