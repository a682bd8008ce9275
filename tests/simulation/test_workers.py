"""One task per seed: how many workers there are, where tasks run, what happens on errors, and the bar."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

from banditree.errors import MissingExtra
from banditree.simulation import workers
from banditree.simulation.workers import PlainMonitor, n_workers, new_monitor, run_seeds
from banditree.stream import native


def draw(seed: int) -> int:
    return 10 * seed


def run(seed: int, instance: int, monitor: Any) -> tuple[int, int]:
    monitor.add(3)
    return seed, instance + 1


def work(seeds: list[int], run: Any = run, *, slow: bool = False, **options: Any) -> Iterator[Any]:
    settings = {"jobs": 1, "steps": 3 * len(seeds), "progress": None} | options
    return run_seeds(seeds, draw, run, is_slow=slow, **settings)


def test_jobs_are_counted_as_in_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5}, raising=False)
    assert [n_workers(jobs) for jobs in (None, 1, 3, -1, -2, -9)] == [1, 1, 3, 4, 3, 1]
    assert [n_workers(np.int64(jobs)) for jobs in (2, -2)] == [2, 3]  # type: ignore[arg-type]
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert n_workers(-1) == 6


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("slow", [False, True])
def test_every_seed_is_drawn_and_run(jobs: int, slow: bool) -> None:
    assert sorted(work([4, 0, 2], jobs=jobs, slow=slow)) == [(0, 1), (2, 21), (4, 41)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_short_seeds_that_share_a_task_are_run_once_each(jobs: int) -> None:
    ran: list[int] = []

    def note(seed: int, instance: int, monitor: Any) -> int:
        ran.append(seed)
        return seed

    assert sorted(work(list(range(999)), note, jobs=jobs)) == list(range(999))
    assert sorted(ran) == list(range(999))


def test_seeds_before_one_that_fails_in_the_same_task_are_kept() -> None:
    def fail(seed: int, instance: int, monitor: Any) -> int:
        if seed == 70:
            raise LookupError("seed 70")
        return seed

    found: list[int] = []
    with pytest.raises(LookupError, match="seed 70"):
        found.extend(work(list(range(400)), fail))
    assert found[:70] == list(range(70))


def test_slow_draws_stay_here_without_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert sorted(work([1, 2], jobs=2, slow=True)) == [(1, 11), (2, 21)]


def test_the_number_of_jobs_may_come_from_joblib() -> None:
    together = threading.Barrier(2, timeout=300)

    def meet(seed: int, instance: int, monitor: Any) -> int:
        together.wait()
        return seed

    with joblib.parallel_config(n_jobs=2):
        assert sorted(work([0, 1], meet, jobs=None)) == [0, 1]


class OnlyLists(ThreadingBackend):  # type: ignore[misc]
    """A backend that cannot hand out results one by one, as some for clusters cannot."""

    supports_return_generator = False


def test_a_backend_that_gives_everything_at_once() -> None:
    joblib.register_parallel_backend("only lists", OnlyLists)
    with joblib.parallel_config(backend="only lists", n_jobs=2):
        assert list(work([3, 1])) == [(3, 31), (1, 11)]


def test_an_error_stops_the_rest() -> None:
    seen: list[int] = []

    def fail(seed: int, instance: int, monitor: Any) -> int:
        if seed == 1:
            raise LookupError("seed 1")
        while seed > 1 and not monitor.stop:  # runs until it is told to stop
            pass
        seen.append(seed)
        return seed

    with pytest.raises(LookupError, match="seed 1"):
        list(work(list(range(50)), fail, jobs=2))
    assert 0 in seen
    assert len(seen) < 50


def test_a_caller_that_has_seen_enough_stops_the_workers() -> None:
    stopped = threading.Event()

    def endless(seed: int, instance: int, monitor: Any) -> int:
        while seed and not monitor.stop:
            pass
        if seed:
            stopped.set()
        return seed

    results = work([1, 0], endless, jobs=2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert stopped.wait(10)


def test_ctrl_c_first_hands_out_what_is_finished() -> None:
    def interrupted(seed: int, instance: int, monitor: Any) -> int:
        if seed == 1:
            raise KeyboardInterrupt
        while seed == 2 and not monitor.stop:
            pass
        if seed == 2:
            return 2  # finished while the others were being stopped
        if monitor.stop:
            raise KeyboardInterrupt
        return seed

    results: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        results.extend(work([2, 0, 1, 3, 4, 5, 6, 7], interrupted, jobs=2))
    assert {0, 2} <= set(results) <= {0, 2, 3, 4, 5, 6, 7}


def test_monitors_count_steps() -> None:
    for monitor in (PlainMonitor(), new_monitor()):
        monitor.add(5)
        monitor.add(2)
        assert (monitor.steps, monitor.stop) == (7, False)
        monitor.stop = True
        assert monitor.stop


def test_without_the_native_engine_the_monitor_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(new_monitor(), PlainMonitor) == (native is None)
    monkeypatch.setattr(workers, "native", None)
    assert isinstance(new_monitor(), PlainMonitor)


def test_the_bar_shows_when_asked_and_is_silent_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(work([1, 2]))) == 2
    assert len(list(work([1, 2], progress=False))) == 2
    assert capsys.readouterr().err == ""
    assert len(list(work([1, 2], progress=True))) == 2
    assert "simulating" in capsys.readouterr().err


def test_without_rich_there_is_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert len(list(work([1]))) == 1
    assert capsys.readouterr().err == ""
    with pytest.raises(MissingExtra, match=r"[Rr]ich"):  # the error says why there is none
        list(work([1], progress=True))


def test_the_bar_says_how_fast(capsys: pytest.CaptureFixture[str]) -> None:
    pause = threading.Event()

    def slowly(seed: int, instance: int, monitor: Any) -> int:
        monitor.add(3)
        pause.wait(0.4)
        return seed

    assert len(list(work([1], slowly, progress=True))) == 1
    assert "steps/s" in capsys.readouterr().err
