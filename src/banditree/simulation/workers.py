"""Run one task per seed: on threads or on the user's joblib backend, with a progress bar, stopping on Ctrl-C."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.simulation.progress import Progress, ShowSteps, steps_bar
from banditree.stream import native

Instance = TypeVar("Instance")
Found = TypeVar("Found")
Draw = Callable[[int], Instance]  # of a seed
Run = Callable[[int, Instance, "Monitor"], Found]  # of a seed and its instance

TASK_STEPS = 20_000  # steps that are worth a task of their own
POLL_SECONDS = 0.1  # between two looks at the workers


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


def run_seeds(
    seeds: Sequence[int],
    draw: Draw[Instance],
    run: Run[Instance, Found],
    *,
    jobs: int | None,
    is_slow: bool,
    steps: int,
    progress: Progress,
) -> Generator[Found, None, None]:
    """Call ``run(seed, draw(seed), monitor)`` for every seed, and yield the results as they are finished.

    ``is_slow`` says that ``draw`` takes long in Python: with several workers it is called in processes. Where the user
    has set joblib to another backend (``joblib.parallel_config(backend="dask")``), whole tasks go there. On Ctrl-C, or
    when a task raises, the seeds finished by then are still yielded before the exception is raised.
    """
    backend, configured = _joblib_settings()
    workers = n_workers(configured if jobs is None else jobs)
    with steps_bar(steps, progress) as show:
        if backend is not None:
            yield from _through_joblib(backend, seeds, draw, run, jobs, steps, show)
        else:
            # Starting a task costs as much as a short run, so several short seeds share one.
            task_seeds = max(1, min(TASK_STEPS * len(seeds) // max(steps, 1), len(seeds) // (4 * workers)))
            yield from _on_threads(seeds, draw, run, workers, is_slow, task_seeds, show)


def _on_threads(
    seeds: Sequence[int],
    draw: Draw[Instance],
    run: Run[Instance, Found],
    workers: int,
    is_slow: bool,
    task_seeds: int,
    show: ShowSteps,
) -> Iterator[Found]:
    """Run up to ``task_seeds`` seeds per task on threads; the calling thread watches for Ctrl-C."""
    monitor = new_monitor()
    finished: SimpleQueue[tuple[list[Found], BaseException | None]] = SimpleQueue()

    def work(part: Sequence[int], instances: Iterable[Instance]) -> None:
        results: list[Found] = []
        error: BaseException | None = None
        try:
            for seed, instance in zip(part, instances, strict=True):
                results.append(run(seed, instance, monitor))
        except BaseException as raised:  # raised again in the calling thread
            error = raised
        finished.put((results, error))

    drawn = _draw_in_processes(draw, seeds, workers) if is_slow and workers > 1 else None
    tasks: Iterator[tuple[Sequence[int], Iterable[Instance]]]
    if drawn is None:
        parts = (seeds[first : first + task_seeds] for first in range(0, len(seeds), task_seeds))
        tasks = ((part, map(draw, part)) for part in parts)
    else:
        tasks = (([seed], [instance]) for seed, instance in zip(seeds, drawn, strict=True))
    with ThreadPoolExecutor(workers) as pool:
        try:
            n_left = len(seeds)
            while n_left:
                task = next(tasks, None)
                if task is not None:
                    pool.submit(work, *task)
                show(monitor.steps)
                try:
                    results, error = finished.get(timeout=POLL_SECONDS if task is None else 0)
                except Empty:
                    continue
                n_left -= len(results)
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


def _joblib_settings() -> tuple[object, int | None]:
    """Return the user's joblib backend, None where it is the default or threads, and number of jobs."""
    joblib = sys.modules.get("joblib")  # if it is not imported, nothing was set
    if joblib is None:
        return None, None
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    _, jobs = joblib.parallel.get_active_backend()
    is_threads = type(backend).__name__ in ("ThreadingBackend", "SequentialBackend")
    return None if is_threads else backend, jobs


def _through_joblib(
    backend: object,
    seeds: Sequence[int],
    draw: Draw[Instance],
    run: Run[Instance, Found],
    jobs: int | None,
    steps: int,
    show: ShowSteps,
) -> Iterator[Found]:
    from joblib import Parallel, delayed

    yields_results = bool(getattr(backend, "supports_return_generator", False))
    parallel = Parallel(n_jobs=jobs, return_as="generator" if yields_results else "list")
    results = parallel(delayed(_run_seed)(draw, run, seed) for seed in seeds)
    try:
        for done, result in enumerate(results, start=1):
            show(steps * done // len(seeds))
            yield result
    finally:
        if yields_results:
            with warnings.catch_warnings():  # joblib warns of tasks that are left, as after Ctrl-C
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _run_seed(draw: Draw[Instance], run: Run[Instance, Found], seed: int) -> Found:
    return run(seed, draw(seed), new_monitor())


def _draw_in_processes(
    draw: Draw[Instance], seeds: Sequence[int], workers: int
) -> Generator[Instance, None, None] | None:
    """Draw instances ahead, in the order of the seeds, in processes of one thread each; None without joblib."""
    try:
        from joblib import Parallel, delayed, parallel_config
    except ImportError:
        return None
    with parallel_config(backend="loky", inner_max_num_threads=1):
        drawn: Generator[Instance, None, None] = Parallel(n_jobs=workers, return_as="generator")(
            delayed(draw)(seed) for seed in seeds
        )
    return drawn
