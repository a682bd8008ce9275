"""The bar of long work: on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from banditree.errors import MissingExtra


@contextmanager
def screen(progress: bool | None, columns: Callable[[Any], tuple[Any, ...]], **options: Any) -> Iterator[Any]:
    """Rich's bar, or None: on a terminal unless ``progress`` overrules; in the main thread, and if Rich is installed.

    ``columns`` makes the columns from Rich's module, which is imported only here.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        if progress:
            raise MissingExtra("a progress bar needs rich: pip install 'banditree[cli]', or progress=None") from None
        shown = False
    if not shown or threading.current_thread() is not threading.main_thread():
        yield None
        return
    console = Console(stderr=True)
    with rich.Progress(*columns(rich), console=console, transient=console.is_terminal, **options) as bar:
        yield bar
