"""The bar of a reproduction: which figure, how far, how long still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from banditree.paper.results import stem

Tick = Callable[[], None]
Show = Callable[[str, str, int], AbstractContextManager[Tick | None]]


@contextmanager
def bar(tasks: Sequence[tuple[str, str, float]], progress: bool | None) -> Iterator[Show]:
    """A bar over (figure, variant, expected seconds); ``show(figure, variant, ticks)`` is open while one runs.

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
    seconds = {(figure, variant): cost for figure, variant, cost in tasks}
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(elapsed_when_finished=True),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=120) as screen:
        task = screen.add_task("figures", total=sum(seconds.values()))

        @contextmanager
        def show(figure: str, variant: str, ticks: int) -> Iterator[Tick]:
            before, cost = screen.tasks[0].completed, seconds[figure, variant]
            screen.update(task, description=f"figure {stem(figure, variant)}", refresh=True)
            yield lambda: screen.advance(task, cost / ticks)
            screen.update(task, completed=before + cost)

        yield show


@contextmanager
def _nothing(figure: str, variant: str, ticks: int) -> Iterator[None]:
    yield None
