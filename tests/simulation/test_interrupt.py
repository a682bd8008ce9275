"""Ctrl-C stops the work even where Python drops it, as it does during garbage collection."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import banditree as bt
from banditree.catalogue import write_example
from banditree.cli import catalogue as commands
from banditree.cli import main as cli
from banditree.paper import reproduce as runner
from banditree.simulation import workers
from banditree.simulation.interrupt import ctrl_c

PROBLEM = bt.problems.bernoulli(bt.Tree({"a": [0, 1], "b": [2]}), [0.1, 0.5, 0.9])


class Unlucky:
    """Is interrupted, or raises another error, while it is collected."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.error = error

    def __del__(self) -> None:
        if self.error is not None:
            raise self.error
        signal.raise_signal(signal.SIGINT)


def lose_ctrl_c() -> None:
    Unlucky()


@pytest.fixture(autouse=True)
def complaints(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Collect the exceptions that Python drops; let Ctrl-C raise even if the tests were started with it ignored."""
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: dropped.append(lost.exc_type))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield dropped
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_python_drops_it(complaints: list[Any]) -> None:
    lose_ctrl_c()
    assert complaints == [KeyboardInterrupt]


def test_it_is_remembered_and_nothing_is_printed(complaints: list[Any]) -> None:
    with ctrl_c() as stop:
        stop.check()
        lose_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            stop.check()
        Unlucky(ValueError)
    assert complaints == [ValueError]
    lose_ctrl_c()
    assert complaints == [ValueError, KeyboardInterrupt]


def test_as_long_as_it_is_not_dropped_it_is_raised_at_once() -> None:
    done: list[str] = []

    def work() -> None:
        with ctrl_c():
            signal.raise_signal(signal.SIGINT)
            done.append("more")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == []


def test_held_back_it_waits_until_it_is_asked_for() -> None:
    with ctrl_c() as stop:
        with stop.held_back():
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop.check()
        stop.check()  # once is enough


def test_the_second_one_does_not_wait() -> None:
    with ctrl_c() as stop, stop.held_back():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        stop.is_pending = False


@pytest.mark.parametrize("asked", [0, 1])
def test_one_inside_another_is_the_same(asked: int) -> None:
    with ctrl_c() as outer:
        with ctrl_c() as inner:
            lose_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            (inner, outer)[asked].check()


def test_a_program_that_handles_it_keeps_its_handler() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with ctrl_c() as stop:
            signal.raise_signal(signal.SIGINT)
            stop.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT]


def test_one_that_is_dropped_last_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), ctrl_c():
        lose_ctrl_c()


def test_one_at_the_very_end_is_raised_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the handler is removed: `signal.signal` lets it run first."""
    put = signal.signal

    def late(number: int, handler: Any) -> Any:
        if handler is signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return put(number, handler)

    monkeypatch.setattr(signal, "signal", late)
    with pytest.raises(KeyboardInterrupt), ctrl_c():
        pass
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with ctrl_c() as stop:
        stop.check()
    assert bt.simulate([bt.TS], PROBLEM, horizon=5, seeds=2).seeds == (0, 1)


def test_another_thread_changes_nothing() -> None:
    found: list[Any] = []

    def work() -> None:
        with ctrl_c() as stop:
            stop.check()
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_simulation_stops(jobs: int, monkeypatch: pytest.MonkeyPatch, complaints: list[Any]) -> None:
    @contextmanager
    def unlucky_bar(*_: Any) -> Iterator[Any]:
        yield lambda _: lose_ctrl_c()

    monkeypatch.setattr(workers, "steps_bar", unlucky_bar)
    with pytest.raises(bt.errors.Interrupted, match="of 4000 seeds finished") as stopped:
        bt.simulate([bt.TSC], PROBLEM, horizon=100, seeds=4000, jobs=jobs)
    assert stopped.value.runs is None or len(stopped.value.runs.seeds) < 4000
    assert complaints == []


def unlucky(function: Callable[..., Any]) -> Callable[..., Any]:
    def meets_ctrl_c(*arguments: Any, **options: Any) -> Any:
        lose_ctrl_c()
        return function(*arguments, **options)

    return meets_ctrl_c


@pytest.mark.parametrize(("where", "finished"), [("draw", "1 figure is"), ("write_report", "2 figures are")])
def test_a_reproduction_stops(where: str, finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two figures, and after the last one."""
    monkeypatch.setattr(runner, where, unlucky(getattr(runner, where)))
    arguments = ["reproduce", "sine", "surface", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.application(), arguments)
    assert result.exit_code == 130
    assert f"Stopped: {finished} finished and kept" in result.stderr


def test_a_command_that_was_done_already_says_so_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "write_example", unlucky(write_example))
    result = CliRunner().invoke(cli.application(), ["example", str(tmp_path / "items.csv")])
    assert (result.exit_code, result.stderr) == (130, "Stopped.\n")
    assert (tmp_path / "items.csv").exists()
