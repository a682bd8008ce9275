"""Replicates, and runs that are selected and renamed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue

VARIED = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
FIXED = bt.problems.bernoulli(bt.Tree({"a": [0, 1], "b": [2, 3]}), [0.1, 0.2, 0.6, 0.5])


class Own(bt.TS):
    """A policy of the user's own, stepped from Python."""


class Failing(bt.TS):
    """Fails on the second run of the first seed."""

    def __init__(self, tree: bt.Tree, *, rng: Any) -> None:
        super().__init__(tree, rng=rng)
        if rng.spawn_key[0] == 0 and len(rng.spawn_key) == 4:
            raise RuntimeError("the second run")


@pytest.mark.parametrize("policy", [bt.TSC, Own])
def test_replicates_are_runs_of_their_own_on_the_same_instance(policy: Any) -> None:
    run = functools.partial(bt.simulate, {"it": policy}, VARIED, horizon=60, seeds=3, rng=4, checkpoints=6)
    one, three = run(), run(replicates=3)
    each = three.replicates["it"]  # (seeds, replicates, times)
    assert each.shape == (3, 3, 6)
    assert np.array_equal(each[:, 0], one.regret["it"])  # the first run is the one without replicates
    assert np.allclose(each.mean(axis=1), three.regret["it"])
    assert len({tuple(row) for row in each[0]}) == 3
    later = run(replicates=[1, 2], jobs=2)  # more of them can be added later
    assert np.array_equal(later.replicates["it"], each[:, 1:])
    assert sum(three.clusters["it"][0].values()) == pytest.approx(60)
    assert one.replicates == {}


def test_replicates_of_a_fixed_problem_leave_plays_out() -> None:
    runs = bt.simulate([bt.TS, bt.TSC], FIXED, horizon=20, seeds=2, replicates=2)
    assert (runs.plays, runs.arms) == ({}, ())
    assert runs.instance is not None


def test_a_replicate_that_fails_takes_its_policy_and_no_other() -> None:
    with pytest.raises(bt.errors.PolicyFailed, match="the second run") as failed:
        bt.simulate({"bad": Failing, "TS": bt.TS}, VARIED, horizon=10, seeds=2, replicates=2)
    assert failed.value.runs.policies == ("TS",)
    assert failed.value.finished["bad"].seeds == (1,)


def test_numbers_of_replicates_that_make_no_sense() -> None:
    for wrong in (0, [], [1, 1]):
        with pytest.raises(InvalidValue, match="replicate"):
            bt.simulate([bt.TS], FIXED, horizon=5, seeds=2, replicates=wrong)
    with pytest.raises(InvalidType, match="replicate"):
        bt.simulate([bt.TS], FIXED, horizon=5, seeds=2, replicates=1.5)  # type: ignore[arg-type]


def test_select_and_rename_keep_the_runs_as_they_are() -> None:
    runs = bt.simulate([bt.TS, bt.TSC, bt.UCT], FIXED, horizon=20, seeds=2)
    some = runs.select(["UCT", "TS"])
    assert some.policies == ("UCT", "TS")
    assert runs.select("TSC").policies == ("TSC",)
    renamed = some.rename({"UCT": "TS", "TS": "flat"})  # all at once: names may be swapped
    assert renamed.policies == ("TS", "flat")
    for part in ("regret", "engine", "evaluations", "seconds", "clusters", "plays"):
        assert getattr(renamed, part)["TS"] is getattr(runs, part)["UCT"]
    assert renamed.times is runs.times
    for wrong in (["LinTS"], [], ["TS", "TS"]):
        with pytest.raises(InvalidValue):
            runs.select(wrong)
    with pytest.raises(InvalidValue, match="no policy 'x'"):
        runs.rename({"x": "y"})
    with pytest.raises(InvalidValue, match="the same name"):
        runs.rename({"TS": "TSC"})


def test_runs_know_how_their_policies_were_built(tmp_path: Path) -> None:
    policies: dict[str, Any] = {
        "deep": bt.on("default", functools.partial(functools.partial(bt.HTS, depth=1), prior=bt.Beta(1, 2))),
        "TSC": bt.TSC,
        "own": Own,
    }
    problem = bt.problems.bernoulli({"default": FIXED.instance(0).tree}, [0.1, 0.2, 0.6, 0.5])
    runs = bt.simulate(policies, problem, horizon=5, seeds=2)
    assert runs.built == {"deep": ("HTS", {"depth": 1}), "TSC": ("TSC", {})}  # a prior is neither a number nor a text
    runs.save(tmp_path / "runs.csv")
    assert bt.Runs.load(tmp_path / "runs.csv").built == runs.built
    assert runs.rename({"deep": "d"}).built["d"] == ("HTS", {"depth": 1})


def test_progress_may_be_a_function_of_the_share_that_is_done() -> None:
    seen: list[float] = []
    bt.simulate([bt.TS, Own], FIXED, horizon=200, seeds=4, replicates=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] >= 0
    assert seen[-1] == 1.0
    with pytest.raises(InvalidType, match="progress"):
        bt.simulate([bt.TS], FIXED, horizon=5, seeds=1, progress="yes")  # type: ignore[arg-type]
