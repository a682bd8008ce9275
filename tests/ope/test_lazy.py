"""Estimates from sums of a lazy log are those of its rows in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import banditree as bt
from banditree import ope
from banditree.data.lazy import LazyLog
from banditree.errors import InvalidValue
from banditree.ope.estimators import ESTIMATORS
from banditree.ope.evaluation import Evaluation
from tests.support.engines import ENGINES, Make, on_duckdb, to_dask

TREE = bt.Tree({"x": ["a", "b", "c"], "y": ["d", "e"]})
TARGET = {"a": 0.5, "d": 0.3, "e": 0.2}
COLUMNS: dict[str, Any] = {"arm": "arm", "reward": "reward", "propensity": "p", "fold": "id"}
BEHAVIOUR = np.array([0.1, 0.2, 0.2, 0.3, 0.2])
FIXED = [
    *(kind() for name, kind in ESTIMATORS.items() if name not in ("switch-dr", "dros", "mips", "offcem")),
    *(ope.SwitchDR(tau=tau) for tau in (0.7, 2.2, math.inf)),
    *(ope.DRos(lam=lam) for lam in (0.5, 30.0, math.inf)),
    *(kind(depth=depth) for kind in (ope.MIPS, ope.OffCEM) for depth in (1, 2)),
]


def made(n: int, rates: Any = (0.2, 0.4, 0.3, 0.6, 0.5), seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arms = rng.choice(5, n, p=BEHAVIOUR)
    frame = pd.DataFrame({"arm": np.array(list("abcde"))[arms], "p": BEHAVIOUR[arms], "id": rng.integers(0, 10**12, n)})
    frame["reward"] = (rng.random(n) < np.array(rates)[arms]).astype(float)
    frame["revenue"] = np.round(frame["reward"] * rng.gamma(2, 10, n), 2) + 1e5
    frame["sold"] = np.where(rng.random(n) < 0.03, frame["revenue"] - 1e5, 0.0)
    frame["near"] = rng.uniform(0.05, 0.9, n)
    frame["at"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(n), "min")
    return frame


def both(frame: pd.DataFrame, make: Make, columns: dict[str, Any], **options: Any) -> tuple[Evaluation, Evaluation]:
    """Evaluate the rows as an engine keeps them, and in memory."""
    logs = (bt.read_log(source, **columns) for source in (make(frame), frame))
    lazily, known = (bt.evaluate(log, TARGET, tree=TREE, **options) for log in logs)
    return lazily, known


def agree(ours: Evaluation, theirs: Evaluation, *, rel: float = 1e-9) -> None:
    assert len(ours.estimates) == len(theirs.estimates)
    for one, other in zip((*ours, ours.logging), (*theirs, theirs.logging), strict=True):
        assert one.estimator.label == other.estimator.label
        size = max(abs(other.value), abs(other.se) if not math.isnan(other.se) else 0.0, 1.0)
        for what in ("value", "se", "ess", "largest"):
            found, wanted = getattr(one, what), getattr(other, what)
            scale = size if what in ("value", "se") else max(wanted, 1.0)
            assert found == pytest.approx(wanted, abs=rel * scale, nan_ok=True), (one.estimator.label, what)
        for found, wanted in zip(one.interval, other.interval, strict=True):
            assert found == pytest.approx(wanted, abs=10 * rel * size, nan_ok=True), (one.estimator.label, "interval")
    assert (ours.rows, ours.missing) == (theirs.rows, theirs.missing)
    assert ours.unsupported == pytest.approx(theirs.unsupported, rel=rel, abs=rel)


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_an_engine_gives_the_numbers_of_the_rows_in_memory(make: Make) -> None:
    for reward in ("reward", "revenue"):
        ours, theirs = both(made(900), make, COLUMNS | {"reward": reward})
        agree(ours, theirs)
        assert (ours.verdict, ours.notes) == (theirs.verdict, theirs.notes)


def test_the_verdict_is_the_same_where_rewards_are_rare() -> None:
    for seed, (n, reward) in enumerate([(300, "sold"), (3000, "sold"), (3000, "reward")]):
        frame = made(n, rates=(0.002, 0.001, 0.003, 0.004, 0.02), seed=seed)
        ours, theirs = both(frame, on_duckdb, COLUMNS | {"reward": reward})
        agree(ours, theirs)
        assert ours.verdict == theirs.verdict
        assert ours.difference is not None
        assert theirs.difference is not None
        assert ours.difference.contributions == pytest.approx(theirs.difference.contributions, rel=1e-9)
        assert ours.difference.n_events == theirs.difference.n_events
    frame["reward"] = 1 - frame["reward"]
    ours, theirs = both(frame, on_duckdb, COLUMNS)
    agree(ours, theirs)
    assert ours.verdict == theirs.verdict


def test_propensities_that_all_differ_are_summed_in_bands() -> None:
    """The estimators that are linear in weights are exact whatever the width of bands."""
    ours, theirs = both(made(2000), ENGINES["Polars"], COLUMNS | {"propensity": "near", "reward": "revenue"})
    agree(ours, theirs)


def test_wide_bands_change_linear_estimators_by_nothing_and_others_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditree.data.lazy.MAX_GROUPS", 3000)
    columns = COLUMNS | {"propensity": "near"}
    linear = ["ips", "snips", "dm", "dr", "sndr"]
    ours, theirs = both(made(30000), ENGINES["Polars"], columns, estimators=linear)
    assert len(ours.inputs.rewards) < 5000
    agree(ours, theirs)
    others = [ope.SwitchDR(tau=3.0), ope.DRos(lam=9.0)]
    ours, theirs = both(made(30000), ENGINES["Polars"], columns, estimators=others)
    agree(ours, theirs, rel=1e-3)
    assert any("bands that are" in note for note in ours.notes)


rewards = st.sampled_from([(0.0, 1.0), (0.0, 0.5, 1.0), (0.0, 3.0, 7.25), (1e6, 1e6 + 1, 1e6 + 3)])


@st.composite
def logs(draw: st.DrawFn) -> pd.DataFrame:
    """Small logs: any arms, few or many different propensities, rewards of any size, or all equal."""
    n = draw(st.integers(2, 40))
    of_arm = draw(st.lists(st.sampled_from([0.05, 0.1, 0.3, 0.3000001, 1.0]), min_size=1, max_size=3))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    arms, earned = column(st.sampled_from("abcde")), column(st.sampled_from(draw(rewards)))
    ids = column(st.integers(-(2**62), 2**62))
    return pd.DataFrame({"arm": arms, "reward": earned, "p": column(st.sampled_from(of_arm)), "id": ids})


@settings(max_examples=25, deadline=None)
@given(logs())
def test_every_estimator_is_the_same_on_any_rows(frame: pd.DataFrame) -> None:
    ours, theirs = both(frame, ENGINES["Polars"], COLUMNS, estimators=FIXED, behaviour=BEHAVIOUR)
    agree(ours, theirs)


def test_a_logging_policy_takes_the_place_of_propensities() -> None:
    columns = {"arm": "arm", "reward": "revenue", "fold": "id"}
    agree(*both(made(900), on_duckdb, columns, behaviour=BEHAVIOUR))
    agree(*both(made(900), on_duckdb, columns | {"propensity": "estimated"}))


def test_estimators_with_a_model_need_folds_that_the_engine_can_cut() -> None:
    columns = {name: column for name, column in COLUMNS.items() if name != "fold"}
    log = bt.read_log(on_duckdb(made(300)), **columns)
    result = bt.evaluate(log, TARGET, tree=TREE)
    assert {one.estimator.name for one in result} == {"ips", "snips", "mips"}
    assert any("read_log(..., fold=)" in note and "dr" in note for note in result.notes)
    with pytest.raises(InvalidValue, match="dr needs folds of the rows, which the engine cuts by a column"):
        bt.evaluate(log, TARGET, tree=TREE, estimators="dr")
    timed = bt.read_log(on_duckdb(made(300)), **columns, time="at")
    known = bt.read_log(made(300), **columns, fold="at")
    agree(*(bt.evaluate(log, TARGET, tree=TREE, estimators="dr") for log in (timed, known)))
    with pytest.raises(InvalidValue, match="model= fits an estimator to rows in memory"):
        bt.evaluate(timed, TARGET, tree=TREE, estimators="dm", model=LinearRegression())


def test_a_log_of_a_learning_policy_is_weighted_by_blocks_of_time() -> None:
    """Blocks stand for rows in order: the numbers are near, and the same on every engine."""
    frame = made(6000).sort_values("at")
    columns = COLUMNS | {"propensity": "near", "time": "at"}
    logs = [bt.read_log(make(frame), **columns) for make in (on_duckdb, ENGINES["Polars"])]
    known = bt.evaluate(bt.read_log(frame, **columns), TARGET, tree=TREE, adaptive="estimated")
    first, second = (bt.evaluate(log, TARGET, tree=TREE, adaptive="estimated") for log in logs)
    agree(first, second)
    for name in ("ips", "snips", "dr"):
        assert first[name].value == pytest.approx(known[name].value, abs=known[name].se / 2)
        assert first[name].se == pytest.approx(known[name].se, rel=0.1)


def test_a_contest_splits_by_time_and_its_policies_learn_from_sums() -> None:
    frame = made(2000).sort_values("at")
    ours = ope.contest([bt.ATS, bt.TSC], bt.read_log(on_duckdb(frame), **COLUMNS, time="at"), tree=TREE)
    log = bt.read_log(frame, **COLUMNS, time="at")
    first, rest = log.rows(slice(0, ours.learned)), log.rows(slice(ours.learned, None))
    assert ours.learned == pytest.approx(1000, abs=2)
    for name, kind in (("ATS", bt.ATS), ("TSC", bt.TSC)):
        policy = kind(TREE, rng=np.random.SeedSequence(0))
        policy.learn(first)
        agree(ours.evaluations[name], bt.evaluate(rest, policy, tree=TREE))


def test_two_workers_of_a_dask_cluster_sum_the_same() -> None:
    distributed = pytest.importorskip("distributed")
    frame = made(500)
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        log = bt.read_log(to_dask(frame, npartitions=2), **COLUMNS)
        assert isinstance(log, LazyLog)
        ours = bt.evaluate(log, TARGET, tree=TREE)
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter) > 10
    agree(ours, bt.evaluate(bt.read_log(frame, **COLUMNS), TARGET, tree=TREE))


def test_one_vector_is_what_a_target_is_for_sums() -> None:
    log = bt.read_log(pl.from_pandas(made(100)).lazy(), **COLUMNS)
    with pytest.raises(InvalidValue, match=r"target has shape \(100, 5\); .* in the order of tree.arms: \(5,\)$"):
        bt.evaluate(log, np.full((100, 5), 0.2), tree=TREE)
