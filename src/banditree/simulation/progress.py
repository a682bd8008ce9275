"""Show how far long work is: a bar on a terminal, and elsewhere a line now and then, by the logger ``banditree``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from banditree.base.words import duration
from banditree.errors import missing_extra
from banditree.stream import native

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

ShowShare = Callable[[float], None]  # called with the share of the work that is done, from 0 to 1
ShowSteps = Callable[[int], None]  # called with the number of steps done
Progress = bool | None | ShowShare  # whether to show a bar, or a function to call instead

LONG_SECONDS = 10.0  # work that takes longer says that the native engine is missing
LINE_SECONDS = 30.0  # between two lines
ESTIMATE_SECONDS = 1.0  # after which the speed is known well enough to say how long the work will take
NO_NATIVE = "This runs on the readable engine, about 20 times slower: the native one was not built (no C++ compiler?)."


class ProgressLines:
    """Say now and then how much of the work is done, where there is no terminal to show a bar on.

    Called with the share that is done, from 0 to 1. Work in several rounds starts again at 0.
    """

    def __init__(self, what: str = "") -> None:
        self._what = what
        self._started = self._said = time.monotonic()
        self._share = 0.0

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if share < self._share:  # another round
            self._started = now
        self._share = share
        if share > 0 and now - self._said > LINE_SECONDS:
            self._said = now
            left = (now - self._started) * (1 - share) / share
            say(f"{self._what}{100 * share:.0f}% done, {duration(left)} left")


def say(text: str) -> None:
    """Say something about long work; commands print it on stderr."""
    import logging  # `import banditree` does not wait for it

    logging.getLogger("banditree").info("%s", text)


@contextmanager
def progress_bar(
    progress: bool | None, *, seconds: float = 0.0, rate: bool = False, **options: Any
) -> Iterator[RichProgress | None]:
    """Open a Rich progress bar, or give None: it is shown on a terminal unless ``progress`` says otherwise.

    It needs Rich, and the main thread. Tasks have a field ``rate``, a text, if there is a ``rate``. Where the native
    engine is missing, and ``seconds``, the time on the readable one, is long, a line says so; where that is not
    known in advance, call `say_why_slow`.
    """
    is_shown = sys.stderr.isatty() if progress is None else progress
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        if progress:
            raise missing_extra("cli", "a progress bar needs Rich", "; or leave out progress=True") from None
        is_shown = False
    if not is_shown or threading.current_thread() is not threading.main_thread():
        yield None
        return
    console = Console(stderr=True)
    say_why_slow(console, seconds)
    columns = [rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn()]
    columns += [rich.TextColumn("{task.fields[rate]}")] if rate else []
    columns += [rich.TimeRemainingColumn(elapsed_when_finished=not rate)]
    with rich.Progress(*columns, console=console, transient=console.is_terminal, **options) as bar:
        yield bar


def say_why_slow(console: Console, seconds: float) -> bool:
    """Print that the native engine is missing, if it is and the work takes so long; return whether it was printed."""
    is_slow = native is None and seconds > LONG_SECONDS
    if is_slow:
        console.print(NO_NATIVE, style="yellow")
    return is_slow


@contextmanager
def steps_bar(steps: int, progress: Progress) -> Iterator[ShowSteps]:
    """Open a bar over the steps of a simulation; give a function to call with the number of steps done so far."""
    if callable(progress):
        yield lambda done: progress(done / steps)
        return
    with progress_bar(progress, rate=True) as bar:
        if bar is None:
            lines = ProgressLines("simulating: ")
            yield lambda done: lines(done / steps) if progress is None else None
            return
        task = bar.add_task("simulating", total=steps, rate="")
        is_explained = False

        def show(done: int) -> None:
            nonlocal is_explained
            elapsed = bar.tasks[0].elapsed or 0.0
            if not is_explained and elapsed > ESTIMATE_SECONDS and done:
                is_explained = say_why_slow(bar.console, elapsed * steps / done)
            rate = f"{done / elapsed:,.0f} steps/s" if elapsed > 0.2 else ""
            bar.update(task, completed=done, rate=rate)

        yield show


@contextmanager
def tasks_bar(
    tasks: Mapping[str, float], progress: bool | None
) -> Iterator[Callable[[str], AbstractContextManager[ShowShare | None]]]:
    """Open a bar over ``{task: expected seconds}``; ``with show(task) as update`` surrounds the work on a task.

    ``update`` is called with the share of the task that is done; it is None where nothing is shown. Where there is no
    terminal and ``progress`` is None, lines say how long it takes and how far it is.
    """
    if progress is None and not sys.stderr.isatty():
        yield _task_lines(tasks)
        return
    with progress_bar(progress, seconds=20 * sum(tasks.values()), speed_estimate_period=120) as bar:
        if bar is None:
            yield lambda _: nullcontext()
            return
        line = bar.add_task("", total=sum(tasks.values()))

        @contextmanager
        def show(task: str) -> Iterator[ShowShare]:
            before, cost = bar.tasks[0].completed, tasks[task]
            bar.update(line, description=task, refresh=True)
            yield lambda share: bar.update(line, completed=before + cost * share)
            bar.update(line, completed=before + cost)

        yield show


def _task_lines(tasks: Mapping[str, float]) -> Callable[[str], AbstractContextManager[ShowShare | None]]:
    total = sum(tasks.values())
    if total > LONG_SECONDS:
        say(f"{duration(total).capitalize()}: {', '.join(tasks)}")
    update, done = ProgressLines(), 0.0

    @contextmanager
    def show(task: str) -> Iterator[ShowShare]:
        nonlocal done
        yield lambda share: update((done + tasks[task] * share) / total)
        done += tasks[task]

    return show
