"""The bar of a reproduction: which figure, how far, how long still."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from banditree.simulation.progress import screen

Progress = Callable[[float], None]  # called with the share of a task that is done
Show = Callable[[str], AbstractContextManager[Progress | None]]


@contextmanager
def bar(tasks: Mapping[str, float], progress: bool | None) -> Iterator[Show]:
    """A bar over {task: expected seconds}; ``show(task)`` is open while one runs.

    It gives a function to call with the share done, or None where `screen` shows nothing.
    """
    with screen(progress, _columns, seconds=20 * sum(tasks.values()), speed_estimate_period=120) as bar:
        if bar is None:
            yield _nothing
            return
        line = bar.add_task("", total=sum(tasks.values()))

        @contextmanager
        def show(task: str) -> Iterator[Progress]:
            before, cost = bar.tasks[0].completed, tasks[task]
            bar.update(line, description=task, refresh=True)
            yield lambda share: bar.update(line, completed=before + cost * share)
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
def _nothing(task: str) -> Iterator[None]:
    yield None
