"""Work that is one task a seed: on one core, on threads, or on whatever joblib is set up for; with a bar and Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.simulation.interrupt import CtrlC, ctrl_c
from banditree.simulation.progress import screen
from banditree.stream import native

Draw = Callable[[int], Any]
Run = Callable[[int, Any, Any], Any]
Progress = bool | None | Callable[[float], None]  # a bar or none, or a function of the share that is done

READABLE = 25_000  # steps a second of the readable engine, about
SHORT = 20_000  # steps that are worth a task of their own
LOOK = 0.1  # seconds between two looks at how far the workers are


class Monitor(Protocol):
    """How far the runs are, and whether to stop; shared by the workers and the thread that watches them."""

    steps: int
    stop: bool

    def add(self, steps: int) -> None: ...


class PlainMonitor:
    """A monitor where there is no native engine."""

    def __init__(self) -> None:
        self.steps, self.stop = 0, False

    def add(self, steps: int) -> None:
        self.steps += steps


def new_monitor() -> Monitor:
    monitor: Monitor = PlainMonitor() if native is None else native.Monitor()
    return monitor


def n_workers(jobs: int | None) -> int:
    """How many workers ``jobs`` means, as in joblib: None is one, -1 all cores, -2 all but one, ..."""
    if jobs is None:
        return 1
    if isinstance(jobs, bool) or not isinstance(jobs, int | np.integer):
        raise InvalidType(f"jobs={jobs!r} must be an int: 1, 2, ..., or -1 for all cores")
    if jobs == 0:
        raise InvalidValue("jobs=0 must be 1, 2, ..., or -1 for all cores")
    return int(jobs) if jobs > 0 else max(1, len(_cores()) + 1 + int(jobs))


def _cores() -> Sequence[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def over_seeds(
    seeds: Sequence[int], draw: Draw, run: Run, *, jobs: int | None, slow: bool, steps: int, progress: Progress
) -> Generator[Any, None, None]:
    """``run(seed, draw(seed), monitor)`` for every seed, results as they are finished.

    ``slow`` says that ``draw`` keeps Python busy: with several workers it is done in processes. Where the user has set
    joblib to another backend (``joblib.parallel_config(backend="dask")``), whole tasks go there. On Ctrl-C, or when a
    task raises, the results of seeds that are finished by then still come, and then the exception.
    """
    backend, configured = _joblib_settings()
    workers = n_workers(configured if jobs is None else jobs)
    with ctrl_c() as stop, _bar(steps, progress) as show:
        if backend is not None:
            yield from _through_joblib(backend, seeds, draw, run, jobs, steps, show, stop)
        else:
            most = max(1, min(SHORT * len(seeds) // max(steps, 1), len(seeds) // (4 * workers)))
            yield from _on_threads(seeds, draw, run, workers, slow, show, stop, most)


def _on_threads(
    seeds: Sequence[int],
    draw: Draw,
    run: Run,
    workers: int,
    slow: bool,
    show: Callable[[int], None],
    stop: CtrlC,
    most: int = 1,
) -> Iterator[Any]:
    """Up to ``most`` seeds are a task: handing one out costs as much as a short run."""
    monitor = new_monitor()
    drawn = _in_processes(draw, seeds, workers) if slow and workers > 1 else None
    tasks: Iterator[tuple[Any, ...]]
    if drawn is None:
        parts = (seeds[at : at + most] for at in range(0, len(seeds), most))
        tasks = ((_several, draw, run, part, monitor) for part in parts)
    else:
        tasks = ((_drawn, run, seed, instance, monitor) for seed, instance in zip(seeds, drawn, strict=True))
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    with ThreadPoolExecutor(workers) as pool:
        try:
            left = len(seeds)
            while left:
                task = next(tasks, None)
                with stop.held_back():  # an interrupt in a future's lock would leave it closed
                    if task is not None:
                        pool.submit(*task).add_done_callback(finished.put)
                    show(monitor.steps)
                stop.check()
                try:
                    future = finished.get(timeout=LOOK if task is None else 0)
                except Empty:
                    continue
                results, error = future.result()
                left -= len(results)
                yield from results
                if error is not None:
                    raise error
            show(monitor.steps)
        except (KeyboardInterrupt, Exception):  # what is finished still counts
            monitor.stop = True
            pool.shutdown(wait=True, cancel_futures=True)
            while not finished.empty():
                future = finished.get()
                if not future.cancelled() and future.exception() is None:
                    yield from future.result()[0]
            raise
        finally:  # an error, Ctrl-C, or a caller that has seen enough: stop the workers, who look at the monitor
            monitor.stop = True
            pool.shutdown(wait=True, cancel_futures=True)
            if drawn is not None:
                drawn.close()


def _several(
    draw: Draw, run: Run, seeds: Sequence[int], monitor: Monitor
) -> tuple[list[Any], KeyboardInterrupt | Exception | None]:
    """The results of some seeds, up to the first that fails, and its error."""
    results: list[Any] = []
    try:
        for seed in seeds:
            results.append(run(seed, draw(seed), monitor))
    except (KeyboardInterrupt, Exception) as error:
        return results, error
    return results, None


def _drawn(run: Run, seed: int, instance: Any, monitor: Monitor) -> tuple[list[Any], None]:
    return [run(seed, instance, monitor)], None


def _task(draw: Draw, run: Run, seed: int, monitor: Monitor | None) -> Any:
    return run(seed, draw(seed), monitor or new_monitor())


def _joblib_settings() -> tuple[Any, int | None]:
    """What the user has set joblib to: a backend, None where it is the default or threads, and a number of jobs."""
    joblib = sys.modules.get("joblib")  # who has set something has imported joblib
    if joblib is None:
        return None, None
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    _, jobs = joblib.parallel.get_active_backend()
    ours = type(backend).__name__ in ("ThreadingBackend", "SequentialBackend")
    return None if ours else backend, jobs


def _through_joblib(
    backend: Any,
    seeds: Sequence[int],
    draw: Draw,
    run: Run,
    jobs: int | None,
    steps: int,
    show: Callable[[int], None],
    stop: CtrlC,
) -> Iterator[Any]:
    from joblib import Parallel, delayed

    tasks = (delayed(_task)(draw, run, seed, None) for seed in seeds)
    one_by_one = bool(getattr(backend, "supports_return_generator", False))
    results = Parallel(n_jobs=jobs, return_as="generator" if one_by_one else "list")(tasks)
    for done, result in enumerate(results, start=1):
        show(steps * done // len(seeds))
        yield result
        stop.check()


def _in_processes(draw: Draw, seeds: Sequence[int], workers: int) -> Generator[Any, None, None] | None:
    """Instances in the order of the seeds, drawn ahead by processes of one thread each; None without joblib."""
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
def _bar(steps: int, progress: Progress) -> Iterator[Callable[[int], None]]:
    """A function to call with the steps done so far; on a terminal it shows how many a second, and the time left."""
    if callable(progress):
        yield lambda done: progress(done / steps)
        return
    with screen(progress, _columns, seconds=steps / READABLE) as bar:
        if bar is None:
            yield lambda _: None
            return
        task = bar.add_task("simulating", total=steps, rate="")

        def show(done: int) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{done / elapsed:,.0f} steps/s" if elapsed > 0.2 else ""
            bar.update(task, completed=done, rate=rate)

        yield show


def _columns(rich: Any) -> tuple[Any, ...]:
    return (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
    )
