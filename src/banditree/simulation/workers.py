"""Run one task per seed: on threads or on the user's joblib backend, with a progress bar, stopping on Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.simulation.interrupt import CtrlC, ctrl_c
from banditree.simulation.progress import progress_bar, say_why_slow
from banditree.stream import native

Draw = Callable[[int], Any]
Run = Callable[[int, Any, Any], Any]
Show = Callable[[int], None]  # called with the number of steps done
Progress = bool | None | Callable[[float], None]  # whether to show a bar, or a function of the share done

SOON = 1.0  # seconds after which the speed is known well enough to say how long it will take
SHORT = 20_000  # steps that are worth a task of their own
POLL = 0.1  # seconds between two looks at the workers


class Monitor(Protocol):
    """Steps done so far, and whether to stop; shared by the workers and the thread that watches them."""

    steps: int
    stop: bool

    def add(self, steps: int) -> None: ...


class PlainMonitor:
    """The monitor where there is no native engine."""

    def __init__(self) -> None:
        self.steps, self.stop = 0, False

    def add(self, steps: int) -> None:
        self.steps += steps


def new_monitor() -> Monitor:
    monitor: Monitor = PlainMonitor() if native is None else native.Monitor()
    return monitor


def n_workers(jobs: int | None) -> int:
    """Return how many workers ``jobs`` means, as in joblib: None is one, -1 all cores, -2 all but one, ..."""
    if jobs is None:
        return 1
    if isinstance(jobs, bool) or not isinstance(jobs, int | np.integer):
        raise InvalidType(f"jobs={jobs!r} must be an int: 1, 2, ..., or -1 for all cores")
    if jobs == 0:
        raise InvalidValue("jobs=0 must be 1, 2, ..., or -1 for all cores")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(jobs) if jobs > 0 else max(1, cores + 1 + int(jobs))


def over_seeds(
    seeds: Sequence[int], draw: Draw, run: Run, *, jobs: int | None, slow: bool, steps: int, progress: Progress
) -> Generator[Any, None, None]:
    """Call ``run(seed, draw(seed), monitor)`` for every seed, and yield the results as they are finished.

    ``slow`` says that ``draw`` takes long in Python: with several workers it is called in processes. Where the user has
    set joblib to another backend (``joblib.parallel_config(backend="dask")``), whole tasks go there. On Ctrl-C, or when
    a task raises, the seeds finished by then are still yielded before the exception is raised.
    """
    backend, configured = _joblib_settings()
    workers = n_workers(configured if jobs is None else jobs)
    with ctrl_c() as stop, _bar(steps, progress) as show:
        if backend is not None:
            yield from _through_joblib(backend, seeds, draw, run, jobs, steps, show, stop)
        else:
            # Starting a task costs as much as a short run, so several short seeds share one.
            most = max(1, min(SHORT * len(seeds) // max(steps, 1), len(seeds) // (4 * workers)))
            yield from _on_threads(seeds, draw, run, workers, slow, most, show, stop)


def _on_threads(
    seeds: Sequence[int], draw: Draw, run: Run, workers: int, slow: bool, most: int, show: Show, stop: CtrlC
) -> Iterator[Any]:
    """Run up to ``most`` seeds per task on threads; the calling thread watches for Ctrl-C."""
    monitor = new_monitor()
    finished: SimpleQueue[tuple[list[Any], BaseException | None]] = SimpleQueue()

    def work(part: Sequence[int], instances: Iterable[Any]) -> None:
        results: list[Any] = []
        error: BaseException | None = None
        try:
            for seed, instance in zip(part, instances, strict=True):
                results.append(run(seed, instance, monitor))
        except BaseException as raised:  # raised again in the calling thread
            error = raised
        finished.put((results, error))

    drawn = _in_processes(draw, seeds, workers) if slow and workers > 1 else None
    tasks: Iterator[tuple[Sequence[int], Iterable[Any]]]
    if drawn is None:
        parts = (seeds[at : at + most] for at in range(0, len(seeds), most))
        tasks = ((part, map(draw, part)) for part in parts)
    else:
        tasks = (([seed], [instance]) for seed, instance in zip(seeds, drawn, strict=True))
    with ThreadPoolExecutor(workers) as pool:
        try:
            left = len(seeds)
            while left:
                task = next(tasks, None)
                with stop.held_back():  # an interrupt inside the pool's locks would leave them locked
                    if task is not None:
                        pool.submit(work, *task)
                    show(monitor.steps)
                stop.check()
                try:
                    results, error = finished.get(timeout=POLL if task is None else 0)
                except Empty:
                    continue
                left -= len(results)
                yield from results
                if error is not None:
                    raise error
            show(monitor.steps)
        except (KeyboardInterrupt, Exception):
            monitor.stop = True
            pool.shutdown(cancel_futures=True)
            while not finished.empty():
                yield from finished.get()[0]
            raise
        finally:  # also when the caller stops early: the workers look at the monitor
            monitor.stop = True
            pool.shutdown(cancel_futures=True)
            if drawn is not None:
                drawn.close()


def _joblib_settings() -> tuple[Any, int | None]:
    """Return the user's joblib backend, None where it is the default or threads, and number of jobs."""
    joblib = sys.modules.get("joblib")  # if it is not imported, nothing was set
    if joblib is None:
        return None, None
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    _, jobs = joblib.parallel.get_active_backend()
    threads = type(backend).__name__ in ("ThreadingBackend", "SequentialBackend")
    return None if threads else backend, jobs


def _through_joblib(
    backend: Any, seeds: Sequence[int], draw: Draw, run: Run, jobs: int | None, steps: int, show: Show, stop: CtrlC
) -> Iterator[Any]:
    from joblib import Parallel, delayed

    one_by_one = bool(getattr(backend, "supports_return_generator", False))
    parallel = Parallel(n_jobs=jobs, return_as="generator" if one_by_one else "list")
    for done, result in enumerate(parallel(delayed(_task)(draw, run, seed) for seed in seeds), start=1):
        show(steps * done // len(seeds))
        yield result
        stop.check()


def _task(draw: Draw, run: Run, seed: int) -> Any:
    return run(seed, draw(seed), new_monitor())


def _in_processes(draw: Draw, seeds: Sequence[int], workers: int) -> Generator[Any, None, None] | None:
    """Draw instances ahead, in the order of the seeds, in processes of one thread each; None without joblib."""
    try:
        from joblib import Parallel, delayed, parallel_config
    except ImportError:
        return None
    with parallel_config(backend="loky", inner_max_num_threads=1):
        drawn: Generator[Any, None, None] = Parallel(n_jobs=workers, return_as="generator")(
            delayed(draw)(seed) for seed in seeds
        )
    return drawn


@contextmanager
def _bar(steps: int, progress: Progress) -> Iterator[Show]:
    """Give a function to call with the steps done so far; the bar has the steps per second and the time left."""
    if callable(progress):
        yield lambda done: progress(done / steps)
        return
    with progress_bar(progress, rate=True) as bar:
        if bar is None:
            yield lambda _: None
            return
        task = bar.add_task("simulating", total=steps, rate="")
        explained = False

        def show(done: int) -> None:
            nonlocal explained
            elapsed = bar.tasks[0].elapsed or 0.0
            if not explained and elapsed > SOON and done:
                explained = say_why_slow(bar.console, elapsed * steps / done)
            rate = f"{done / elapsed:,.0f} steps/s" if elapsed > 0.2 else ""
            bar.update(task, completed=done, rate=rate)

        yield show
