"""The bar of a reproduction: which figure, how far, how long still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

Tick = Callable[[], None]
Show = Callable[[str, int], AbstractContextManager[Tick | None]]


@contextmanager
def bar(tasks: Mapping[str, float], progress: bool | None) -> Iterator[Show]:
    """A bar over {task: expected seconds}; ``show(task, ticks)`` is open while one runs.

    On a terminal unless ``progress`` is False; elsewhere, and without Rich, nothing is shown and nothing ticks.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        shown = False
    if not shown:
        yield _nothing
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=120) as screen:
        line = screen.add_task("", total=sum(tasks.values()))

        @contextmanager
        def show(task: str, ticks: int) -> Iterator[Tick]:
            before, cost = screen.tasks[0].completed, tasks[task]
            screen.update(line, description=task, refresh=True)
            yield lambda: screen.advance(line, cost / ticks)
            screen.update(line, completed=before + cost)

        yield show


@contextmanager
def _nothing(task: str, ticks: int) -> Iterator[None]:
    yield None
