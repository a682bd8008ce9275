"""Show the progress of a reproduction: the figure that runs, how much is done, and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from banditree.simulation.progress import progress_bar

Progress = Callable[[float], None]  # called with the share of a task that is done
Show = Callable[[str], AbstractContextManager[Progress | None]]


@contextmanager
def bar(tasks: Mapping[str, float], progress: bool | None) -> Iterator[Show]:
    """Open a bar over ``{task: expected seconds}``; ``with show(task) as update`` surrounds the work on a task.

    ``update`` is called with the share of the task that is done; it is None where no bar is shown.
    """
    with progress_bar(progress, seconds=20 * sum(tasks.values()), speed_estimate_period=120) as shown:
        if shown is None:
            yield lambda task: nullcontext()
            return
        line = shown.add_task("", total=sum(tasks.values()))

        @contextmanager
        def show(task: str) -> Iterator[Progress]:
            before, cost = shown.tasks[0].completed, tasks[task]
            shown.update(line, description=task, refresh=True)
            yield lambda share: shown.update(line, completed=before + cost * share)
            shown.update(line, completed=before + cost)

        yield show
