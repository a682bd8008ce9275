"""Simulations in other processes: Ctrl-C, terminals and pipes, joblib's processes, and Dask."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from dask import distributed

import banditree as bt
from banditree.errors import InvalidValue, PolicyFailed
from tests.support.helpers import needs_native, to_be_stopped

HEAD = """
import sys, time
import joblib
import numpy as np
import banditree as bt
problem = bt.problems.bernoulli(bt.Tree({"a": [0, 1], "b": [2]}), [0.1, 0.5, 0.9])

class Own(bt.TSC):
    pass
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", HEAD + textwrap.dedent(code)]


INTERRUPTED = """
def factory(tree, *, rng):
    seed = rng.spawn_key[0]
    if seed >= 2 and not {finished}:
        busy()
    return {kind}(tree, rng=rng) if seed >= 2 else Short(tree, rng=rng)

class Short(bt.TSC):
    # The first two seeds are soon done: they always play one arm.
    def choose(self, context=None):
        return 2
    def update(self, arm, reward, context=None):
        pass

def busy():
    print("busy\\n", end="", flush=True)

def show(share):  # two seeds at most are not finished
    if share >= {finished} > 0:
        busy()

policies = {{"policy": factory}}
try:
    with joblib.parallel_config(backend={backend!r}):
        bt.simulate(policies, problem, horizon={horizon}, seeds={seeds}, jobs={jobs}, progress=show)
except bt.errors.Interrupted as stopped:
    assert isinstance(stopped, KeyboardInterrupt)
    runs = stopped.runs
    print(stopped)
    print("kept", None if runs is None else (runs.seeds, runs.policies, runs.regret["policy"].shape))
"""


def interrupted(
    kind: str, jobs: int, *, horizon: int, seeds: str, backend: str = "threading", finished: float = 0.0
) -> str:
    """Return what a simulation prints if it is stopped in its third seed, or when a share of its steps is done."""
    code = INTERRUPTED.format(kind=kind, horizon=horizon, jobs=jobs, seeds=seeds, backend=backend, finished=finished)
    with to_be_stopped(HEAD + code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "busy\n"
        if not finished:
            time.sleep(0.3)  # into the run; nothing depends on how far
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return out


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("kind", "horizon"), [pytest.param("bt.TSC", 100_000_000, marks=needs_native), ("Own", 100_000_000)]
)
def test_ctrl_c_stops_in_the_middle_of_a_run(kind: str, horizon: int, jobs: int) -> None:
    out = interrupted(kind, jobs, horizon=horizon, seeds="[2, 3, 4]")
    assert "Stopped with 0 of 3 seeds finished" in out
    assert "kept None" in out


@pytest.mark.parametrize(("jobs", "backend"), [(1, "threading"), (2, "threading"), (2, "loky")])
def test_ctrl_c_keeps_the_seeds_that_are_finished(jobs: int, backend: str) -> None:
    out = interrupted("Own", jobs, horizon=3000, seeds="2000", backend=backend, finished=3 / 2000)
    first, second = [line for line in out.splitlines() if line != "busy"]
    finished = int(first.split()[2])
    assert 1 <= finished < 2000
    assert first.endswith("of 2000 seeds finished")
    assert second.endswith(f"('policy',), ({finished}, 100))")


BAR = """
class Slow(bt.TSC):
    def choose(self, context=None):
        time.sleep(0.001)
        return super().choose()
bt.simulate([Slow], problem, horizon=640, seeds=2, progress={progress})
print("done")
"""


def on_a_terminal(progress: str) -> str:
    """All that a terminal shows while a simulation runs."""
    here, there = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        python(BAR.format(progress=progress)), stdout=there, stderr=there, env=environment
    ) as process:
        os.close(there)
        shown = b""
        while True:
            try:
                piece = os.read(here, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(here)
    assert process.returncode == 0
    return shown.decode()


def test_a_terminal_has_a_bar_with_the_rate_and_the_time_left() -> None:
    shown = on_a_terminal("None")
    assert "simulating" in shown
    assert "steps/s" in shown
    assert "0:00:0" in shown
    assert "done" in shown


def test_the_bar_is_off_by_a_flag() -> None:
    assert on_a_terminal("False").strip() == "done"


def test_elsewhere_it_is_silent() -> None:
    done = subprocess.run(python(BAR.format(progress="None")), capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


MEMORY = """
import resource
problem = bt.problems.bernoulli(bt.Tree(2), [0.4, 0.6])
bt.simulate([bt.UCB1, bt.TS], problem, horizon=100, seeds=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
bt.simulate([bt.UCB1], problem, horizon={horizon}, seeds=1)
bt.simulate([bt.TS], problem, horizon={horizon} // 10, seeds=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@needs_native
def test_memory_does_not_grow_with_the_horizon() -> None:
    grown = {}
    for horizon in (10_000, 10_000_000):
        command = python(MEMORY.format(horizon=horizon))
        grown[horizon] = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert grown[10_000_000] <= grown[10_000] + 1000  # kilobytes: 10 million numbers would be 80,000


def test_names_and_modules_do_not_get_in_each_others_way() -> None:
    code = """
    bt.on("tree", bt.TS)
    import banditree.simulation.simulator
    import inspect
    print(*bt.simulate([bt.TS], problem, horizon=1, seeds=1).regret["TS"].shape)
    print("seeds" in inspect.signature(bt.simulate).parameters)
    """
    done = subprocess.run(python(code), capture_output=True, text=True, check=True)
    assert done.stdout == "1 1\nTrue\n"


# ---------------------------------------------------------------- Dask


POLICIES = {"TS": bt.TS, "TSC": bt.TSC, "HTS": bt.HTS}
PROBLEM = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    start: Any = distributed.LocalCluster  # it carries no types
    connect: Any = distributed.Client
    with (
        start(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        connect(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=300)
        yield client


def simulated(policies: Any = POLICIES, problem: Any = PROBLEM, **options: Any) -> bt.Runs:
    return bt.simulate(policies, problem, **({"horizon": 300, "seeds": 8, "rng": 1} | options))


def same(one: bt.Runs, two: bt.Runs) -> bool:
    return one.policies == two.policies and all(
        np.array_equal(one.regret[name], two.regret[name]) and one.clusters[name] == two.clusters[name]
        for name in one.policies
    )


def test_a_cluster_gives_the_same_numbers(cluster: Any) -> None:
    home = os.getpid()

    def elsewhere(tree: bt.Tree, *, rng: Any) -> bt.Policy:
        if os.getpid() == home:
            raise RuntimeError("this is no worker")
        return bt.TSC(tree, rng=rng)

    at_home = simulated()
    with joblib.parallel_config(backend="dask"):
        assert same(at_home, simulated())
        assert same(at_home, simulated(jobs=2))
        runs = simulated({"TSC": elsewhere})
    assert np.array_equal(runs.regret["TSC"], at_home.regret["TSC"])
    with pytest.raises(PolicyFailed, match="this is no worker"):
        simulated({"TSC": elsewhere})


def test_a_worker_that_dies_is_replaced(cluster: Any, tmp_path: Path) -> None:
    killed, home = tmp_path / "killed", os.getpid()

    def deadly(tree: bt.Tree, *, rng: np.random.SeedSequence) -> bt.Policy:
        if rng.spawn_key[0] == 3 and os.getpid() != home and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return bt.TSC(tree, rng=rng)

    with joblib.parallel_config(backend="dask"):
        runs = simulated({"TSC": deadly})
    assert int(killed.read_text()) not in cluster.run(os.getpid).values()
    assert same(runs, simulated({"TSC": bt.TSC}))


class Raising(bt.TSC):
    def choose(self, context: Any = None, **limits: Any) -> Any:
        raise ZeroDivisionError("my own fault")


def test_errors_come_home(cluster: Any) -> None:
    with joblib.parallel_config(backend="dask"):
        with pytest.raises(PolicyFailed, match=r"policy 'own', seed 0: raised at step 1: .* my own fault") as caught:
            simulated({"own": lambda tree, rng: Raising(tree, rng=rng), "TS": bt.TS})
        with pytest.raises(InvalidValue, match=r"policy 'HTS' \(seed .\): no tree 'ward'"):
            simulated({"HTS": bt.on("ward", bt.HTS)})
    assert caught.value.runs is not None
    assert same(caught.value.runs, simulated({"TS": bt.TS}))
