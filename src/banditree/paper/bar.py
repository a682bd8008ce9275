"""The bar of a reproduction: which figure, how far, how long still."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from banditree.simulation.progress import screen

Tick = Callable[[], None]
Show = Callable[[str, int], AbstractContextManager[Tick | None]]


@contextmanager
def bar(tasks: Mapping[str, float], progress: bool | None) -> Iterator[Show]:
    """A bar over {task: expected seconds}; ``show(task, ticks)`` is open while one runs.

    Where `screen` shows nothing, nothing ticks.
    """
    with screen(progress, _columns, seconds=20 * sum(tasks.values()), speed_estimate_period=120) as bar:
        if bar is None:
            yield _nothing
            return
        line = bar.add_task("", total=sum(tasks.values()))

        @contextmanager
        def show(task: str, ticks: int) -> Iterator[Tick]:
            before, cost = bar.tasks[0].completed, tasks[task]
            bar.update(line, description=task, refresh=True)
            yield lambda: bar.advance(line, cost / ticks)
            bar.update(line, completed=before + cost)

        yield show


def _columns(rich: Any) -> tuple[Any, ...]:
    return (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(elapsed_when_finished=True),
    )


@contextmanager
def _nothing(task: str, ticks: int) -> Iterator[None]:
    yield None
