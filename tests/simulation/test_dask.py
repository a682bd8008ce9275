"""A real Dask cluster of two processes: the same numbers, also when a worker dies; errors come home."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from dask import distributed

import banditree as bt
from banditree.errors import InvalidValue, PolicyFailed

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
    assert same(caught.value.runs, simulated({"TS": bt.TS}))
