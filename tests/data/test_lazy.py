"""Logs whose rows an engine keeps: the numbers of the same rows in memory, and the same sentences about bad ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import banditree as bt
from banditree.catalogue import CatalogueError
from banditree.data import lake, lazy
from banditree.data.log import Log, LogError
from banditree.errors import BanditreeError, EngineFailed, InvalidType, InvalidValue, MissingExtra, UnknownArm
from tests.support.engines import ENGINES, MISSING, Make, on_duckdb

TREE = bt.Tree({"x": ["a", "b", "c"], "y": ["d", "e"]})
COLUMNS: dict[str, Any] = {"arm": "item", "reward": "click", "propensity": "p"}


def made(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "item": rng.choice(["a", " b", "c ", "d", "e"], n).astype(object),
            "click": (rng.random(n) < 0.3).astype(float),
            "p": rng.choice([0.1, 0.2, 0.45], n),
            "visit": rng.integers(-(2**60), 2**60, n),
            "at": pd.Timestamp("2023-12-30") + pd.to_timedelta(rng.permutation(n) * 3661, "s"),
            "age": rng.integers(18, 80, n),
            "spent": rng.normal(1e5, 2.0, n),
        }
    )
    frame.loc[rng.choice(n, 7, replace=False), "click"] = np.nan
    return frame


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Make:
    return ENGINES[request.param]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed, so not tested: {' and '.join(MISSING)}")
def test_every_engine_is_tested() -> None:
    assert {"DuckDB", "Polars", "Dask", "Spark", "Ibis"} == set(ENGINES)


def means(policy: bt.Policy, **options: Any) -> list[Any]:
    return [(row.path, row.plays, pytest.approx(row.mean, rel=1e-9)) for row in policy.table(**options)]


def test_a_lazy_log_counts_as_the_same_rows_in_memory(engine: Make) -> None:
    frame = made()
    log, known = bt.read_log(engine(frame), **COLUMNS), bt.read_log(frame, **COLUMNS)
    assert log.is_lazy
    assert not known.is_lazy
    assert "rows kept by" in repr(log)
    assert (len(log), log.without_reward, set(log.ids)) == (393, 7, set(known.ids))
    assert log.summed().notes == known.notes
    for found, wanted in zip(log.counts(TREE), known.counts(TREE), strict=True):
        assert found == pytest.approx(wanted, rel=1e-12)
    for reward in ("click", "spent"):
        ours, theirs = (
            bt.read_catalogue(source, arm="item", reward=reward, tree=TREE) for source in (engine(frame), frame)
        )
        for what in ("plays", "successes", "reward_mean", "reward_sd"):
            found, wanted = getattr(ours, what), getattr(theirs, what)
            assert (found is None) == (wanted is None)
            assert found is None or found == pytest.approx(wanted, rel=1e-9)


def test_a_table_of_events_is_summed_by_its_engine(engine: Make) -> None:
    frame = made()
    frame["kind"] = frame["item"].str.strip().map({"a": "x", "b": "x", "c": None, "d": "y", "e": "y"})
    for reward in ("click", "spent"):
        columns: dict[str, Any] = {"arm": "item", "path": ["kind"], "reward": reward}
        ours, theirs = (bt.read_catalogue(source, **columns) for source in (engine(frame), frame))
        assert ours.tree.clusters.keys() == {"x", "y", "(no kind)"}
        order = [theirs.tree.position(arm) for arm in ours.tree.arms]
        for what in ("plays", "successes", "reward_mean", "reward_sd"):
            found, wanted = getattr(ours, what), getattr(theirs, what)
            assert (found is None) == (wanted is None)
            assert found is None or found == pytest.approx(wanted[order], rel=1e-9)
    frame.loc[3, "kind"] = "z"
    with pytest.raises(CatalogueError, match=r"is in \w here, but in \w in row \d; an arm has only one place"):
        bt.read_catalogue(engine(frame), **columns)
    with pytest.raises(CatalogueError, match="no such column; did you mean 'kind'"):
        bt.read_catalogue(engine(frame), **columns | {"path": ["knd"]})


def test_a_file_that_is_gone_is_said_by_the_engine() -> None:
    table: dict[str, Any] = {"arm": "item", "path": ["kind"]}
    rewards: list[dict[str, Any]] = [{"reward": "click"}, {"plays": "n", "successes": "s"}]
    for given in rewards:
        with pytest.raises(EngineFailed, match=r"the data frame failed while .*: No such file"):
            bt.read_catalogue(pl.scan_csv("/none.csv"), **table, **given)


def test_nothing_is_read_before_an_answer_is_wanted_and_an_engine_that_fails_is_quoted() -> None:
    p = "case when range = 5000 then error('the disk is gone') else 0.5 end"
    log = bt.read_log(duckdb.sql(f"select 'a' item, 1 click, {p} p from range(9000)"), **COLUMNS)
    with pytest.raises(EngineFailed, match=r"DuckDB failed while computing sums by arm: .*the disk is gone"):
        len(log)


@pytest.mark.parametrize("name", ["numbers", "large", "times", "days", "zones", "shares"])
def test_folds_are_the_same_on_every_engine(engine: Make, name: str) -> None:
    frame = made()
    begin = pd.Timestamp("1969-02-27 23:59:59.999999")
    frame["numbers"], frame["large"] = frame["visit"] % 1000 - 500, frame["visit"]
    frame["times"] = begin + pd.to_timedelta(np.arange(len(frame)) * 7_654_321_987, "us")
    frame["days"], frame["shares"] = frame["times"].dt.normalize(), frame["spent"] / 7 - 14000
    frame["zones"] = frame["times"].dt.tz_localize("UTC")
    frame["zones"] = frame["zones"].dt.tz_convert("Asia/Tokyo") if engine is ENGINES["Polars"] else frame["zones"]
    known = bt.read_log(frame, **COLUMNS, fold=name)
    assert known.folds is not None
    counts = np.bincount(known.folds, minlength=5)
    assert counts.min() > 45  # of about 79
    sums = bt.read_log(engine(frame), **COLUMNS, fold=name).summed("folds")
    assert sums.folds is not None
    assert np.bincount(sums.folds, sums.counted).tolist() == counts.tolist()
    places, its = known.places(TREE), sums.places(TREE)
    wanted = np.bincount(known.folds * 5 + places, known.rewards, minlength=25)
    assert np.bincount(sums.folds * 5 + its, sums.counted * sums.rewards, minlength=25) == pytest.approx(wanted)


def test_bad_rows_are_counted_by_the_engine_with_examples(engine: Make) -> None:
    frame = made(60)
    frame["click"] = 1.0
    frame.loc[3, "item"], frame.loc[4, "item"] = "", None
    frame.loc[5, "p"], frame.loc[6, "p"], frame.loc[7, "p"] = 0.0, -0.5, np.nan
    frame.loc[10:29, "p"] = 1.5
    frame.loc[8, "click"], frame.loc[9, "click"] = np.inf, -1e300
    log = bt.read_log(engine(frame), **COLUMNS)
    with pytest.raises(LogError, match="27 problems in the rows of ") as caught:
        log.counts(TREE)
    assert caught.value.problems[0].number
    text = str(caught.value)
    assert "2 rows, column 'item': empty; every row needs an arm; such as item=" in text
    assert "20 rows, column 'p': above 1; a propensity is the probability" in text
    assert text.count("p=1.5") == lazy.MAX_EXAMPLES
    for part in ("column 'p': 0; ", "'p': negative; ", "'p': empty; ", "'click': inf is not finite", "is too large"):
        assert part in text
    frame["click"] = np.nan
    with pytest.raises(LogError, match="no rows with a reward \\(60 rows without\\)"):
        len(bt.read_log(engine(frame), **COLUMNS))


def test_columns_that_are_missing_or_of_other_types_are_refused_at_once(engine: Make) -> None:
    frame = made(20)
    frame["word"] = "yes"
    source = engine(frame)
    with pytest.raises(LogError, match=r"column 'pp': no such column; did you mean 'p'\?"):
        bt.read_log(source, **COLUMNS | {"propensity": "pp"})
    with pytest.raises(LogError, match="column 'word': 'yes' is not a number; give numbers, or cast the column"):
        bt.read_log(source, **COLUMNS | {"reward": "word"})
    for name in ("time", "fold"):
        with pytest.raises(LogError, match="column 'word': a column of String; give numbers, dates or times"):
            bt.read_log(source, **COLUMNS | {name: "word"})
    with pytest.raises(InvalidType, match="name both columns"):
        bt.read_log(source, arm="item")
    with pytest.raises(InvalidValue, match="column 'item' is named twice"):
        bt.read_log(source, arm="item", reward="item")


def test_unknown_arms_are_counted_in_rows() -> None:
    frame = made()
    with pytest.raises(UnknownArm, match=f"2 arms of the log, on {(frame['item'].isin(['d', 'e'])).sum()} rows"):
        bt.TS(bt.Tree(["a", "b", "c"])).learn(bt.read_log(on_duckdb(frame), arm="item", reward="age"))


def test_what_looks_at_single_rows_says_where_they_are() -> None:
    log = bt.read_log(on_duckdb(made()), **COLUMNS, time="at", context=["age"])
    for name in ("codes", "rewards", "propensities", "contexts", "times", "columns", "arms"):
        with pytest.raises(InvalidValue, match=r"the rows of this log are kept by DuckDB.*into memory first"):
            getattr(log, name)
    with pytest.raises(InvalidValue, match="kept by DuckDB"):
        bt.replay([bt.TS], log, tree=TREE)
    with pytest.raises(InvalidValue, match="takes contexts, and the rows of a lazy log are only summed"):
        bt.evaluate(log, bt.LinATS(TREE, dim=1), tree=TREE)
    plain = bt.read_log(on_duckdb(made()), **COLUMNS)
    with pytest.raises(InvalidValue, match="no order; name the column of their times"):
        plain.split()
    with pytest.raises(InvalidType, match="log is a DuckDBPyRelation; read it first"):
        bt.evaluate(on_duckdb(made()), "uniform", tree=TREE)
    with pytest.raises(InvalidValue, match="half_life= forgets in the order of rows"):
        bt.TS(TREE, half_life=100).learn(plain)


def test_learning_is_a_group_by(engine: Make) -> None:
    frame = made()
    log, known = bt.read_log(engine(frame), **COLUMNS), bt.read_log(frame, **COLUMNS)
    for kind in (bt.ATS, bt.TSC, bt.UCBC):
        ours, theirs = kind(TREE, rng=1), kind(TREE, rng=1)
        ours.learn(log)
        theirs.learn(known)
        assert means(ours) == means(theirs)


def test_rewards_outside_the_support_are_refused_whatever_their_sum(engine: Make) -> None:
    frame = pd.DataFrame({"item": list("aabb"), "click": [2.0, -1.0, 0.0, 1.0]})
    log = bt.read_log(engine(frame), arm="item", reward="click")
    for kind in (bt.ATS, bt.TSC, bt.TSMax):
        policy = kind(TREE, rng=1)
        with pytest.raises(InvalidValue, match=r"reward -1\.0 for arm 'a' is outside \[0, 1\]; for unbounded"):
            policy.learn(log)
        assert policy.table()[0].plays == 0
    unbounded = bt.UCBC(TREE, rng=1)
    unbounded.learn(log)
    assert unbounded.table()[0].plays == 4


def has_chunks(engine: Make) -> bool:
    return engine is not ENGINES.get("Spark") and (
        engine is not ENGINES["Polars"] or hasattr(pl.LazyFrame, "collect_batches")
    )


def test_policies_that_look_at_single_rows_read_chunks(engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine is ENGINES.get("Ibis") and not hasattr(duckdb.DuckDBPyConnection, "fetch_record_batch"):
        pytest.skip("Ibis 12 itself does not read rows from DuckDB 2")
    monkeypatch.setattr(lazy, "CHUNK", 150)
    frame = made()
    frame["device"] = np.where(frame["age"] % 3 == 0, "tv", "pc")
    columns: dict[str, Any] = {"arm": "item", "reward": "spent", "context": ["age", "device"]}
    log, known = bt.read_log(engine(frame), **columns), bt.read_log(frame, **columns)
    features = bt.Features.from_frame(frame[["age", "device"]])
    policies = [bt.TSC(TREE, prior=bt.Gaussian(), rng=1), bt.LinTS(TREE, features=features, rng=1)]
    for ours in policies:
        if not has_chunks(engine):
            with pytest.raises(InvalidType, match="does not hand over rows in chunks; write them to Parquet files"):
                ours.learn(log)
            continue
        theirs = bt.from_bytes(ours.to_bytes(), rng=1)
        ours.learn(log)
        theirs.learn(known)
        options = {} if ours.dim is None else {"context": {"age": 30, "device": "tv"}}
        assert means(ours, **options) == means(theirs, **options)
    with pytest.raises(InvalidType, match="the categories of 'device' are not known before all rows are read"):
        bt.LinTS(TREE, dim=3).learn(log)


def test_a_policy_learns_all_chunks_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made()
    log = bt.read_log(on_duckdb(frame), arm="item", reward="spent", context=["age"])
    policy = bt.LinTS(TREE, dim=1, rng=1)
    policy.update("a", 3.0, context=[1.0])
    before = policy.to_bytes()
    chunks = list(log.chunks())

    def fail(native: Any, engine: str) -> Any:
        yield from (frame.iloc[:100], frame.iloc[100:200])
        raise OSError("the network is gone")

    monkeypatch.setattr(lazy, "_tables", fail)
    with pytest.raises(EngineFailed, match="DuckDB failed while reading rows: the network is gone"):
        policy.learn(log)
    assert policy.to_bytes() == before
    policy.update("a", 3.0, context=[1.0])
    assert policy.table()[0].plays == 2
    assert sum(map(len, chunks)) == 400


def test_splitting_by_time_leaves_about_the_share(engine: Make) -> None:
    frame = made()
    frame.loc[0, "at"] = pd.Timestamp("1970-01-01")  # far from all others
    log, known = (bt.read_log(source, **COLUMNS, time="at") for source in (engine(frame), frame))
    first, rest = log.split(0.3)
    assert len(first) + len(rest) == 393
    assert len(first) == pytest.approx(0.3 * 393, abs=2)
    times = known.in_time().rows(slice(0, len(first)))
    assert first.counts(TREE)[1] == pytest.approx(times.counts(TREE)[1])


def test_rows_of_the_same_time_stay_together(engine: Make) -> None:
    frame = made().assign(click=1.0)
    frame["at"] = frame["at"].dt.floor("5D")  # 4 times, about 118 rows each
    log = bt.read_log(engine(frame), **COLUMNS, time="at")
    sizes = frame.groupby("at").size().to_list()
    for share, of in ((0.01, 1), (0.31, 1), (0.5, 2), (0.99, len(sizes) - 1)):
        if share in (0.01, 0.99):
            with pytest.raises(InvalidValue, match="leaves one part empty"):
                log.split(share)
        else:
            assert [len(part) for part in log.split(share)] == [sum(sizes[:of]), sum(sizes[of:])]


def test_shares_that_leave_a_part_empty_are_refused() -> None:
    frame = made().assign(at=5.0)
    with pytest.raises(InvalidValue, match="leaves one part empty"):
        bt.read_log(on_duckdb(frame), **COLUMNS, time="at").split(0.5)


# ---------------------------------------------------------------- files and exports


def save(frame: pd.DataFrame, folder: Path) -> None:
    (folder / "parts").mkdir()
    for at, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(folder / "parts" / f"{at}.parquet")
    frame.to_csv(folder / "log.csv.gz", index=False)
    frame.iloc[:100].to_csv(folder / "log-1.csv", index=False)
    frame.iloc[100:].to_csv(folder / "log-2.csv", index=False)
    for day, rows in frame.groupby(frame["at"].dt.date):
        (folder / "hive" / f"day={day}").mkdir(parents=True)
        rows.to_csv(folder / "hive" / f"day={day}" / "rows.csv.gz", index=False)
    frame = frame.assign(at=frame["at"].dt.tz_localize("UTC"))
    frame.to_json(folder / "log.ndjson", orient="records", lines=True, date_format="iso")


@pytest.mark.parametrize("name", ["parts/*.parquet", "parts", "log.csv.gz", "log-*.csv", "hive", "log.ndjson"])
def test_files_that_memory_need_not_hold(tmp_path: Path, name: str) -> None:
    frame = made()
    frame["item"] = frame["item"].str.strip().map({"a": "007", "b": "08", "c": "1", "d": "d", "e": "e"})
    save(frame, tmp_path)
    assert lake.is_lake(tmp_path / name) == (name != "log.csv.gz")
    log = bt.read_log(lake.open_lake(tmp_path / name, ["item"]), **COLUMNS, time="at")
    assert log.ids == ("007", "08", "1", "d", "e")
    assert len(log) == 393
    assert len(log.split()[0]) == pytest.approx(393 / 2, abs=2)


def test_without_duckdb_a_large_file_is_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("item,click\na,1\n")
    assert not lake.is_lake(tmp_path / "log.csv")
    monkeypatch.setattr(lake, "MAX_BYTES", 10)
    assert lake.is_lake(tmp_path / "log.csv")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(lake, "find_spec", lambda name: None)
    assert not lake.is_lake(tmp_path / "log.csv")
    with pytest.raises(MissingExtra, match="larger than memory need DuckDB"):
        lake.open_lake(tmp_path / "*.csv")


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"DuckDB cannot read .*none/\*.csv'"):
        lake.open_lake(tmp_path / "none" / "*.csv")
    with pytest.raises(InvalidValue, match="names no kind of files that are read"):
        lake.open_lake(tmp_path / "*.xls")
    with pytest.raises(InvalidValue, match="has no CSV, Parquet or NDJSON files"):
        lake.open_lake(tmp_path)


def service_rows(n: int, overall: bool) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    rows = []
    for at in range(n):
        arm = str(rng.choice(list("abcde")))
        rows.append(
            {
                "id": f"d{at}",
                "at": f"2026-03-01T{at % 24:02}:{at % 60:02}:00.000{at % 999:03}Z",
                "arm": arm,
                "propensity": 0.2,
                **({"propensity_overall": 0.2 if at % 40 else None} if overall else {}),
                "reward": float(rng.random() < 0.3) if at % 9 else None,
                "path": ["x" if arm in "abc" else "y", arm],
                "shown": arm if at % 17 else None,
                "withdrawn": at % 23 == 0,
                "group": "control" if at % 10 == 0 else "policy",
                "only": ["a", "b"] if at % 29 == 0 else None,
                "exclude": [],
            }
        )
    return rows


@pytest.mark.parametrize("overall", [True, False])
@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_an_export_of_the_service_is_the_same_log(tmp_path: Path, ending: str, overall: bool) -> None:
    rows = service_rows(500, overall)
    cells = [{name: json.dumps(v) if isinstance(v, list | bool) else v for name, v in row.items()} for row in rows]
    pd.DataFrame(cells).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "log.ndjson").write_text("\n".join(map(json.dumps, rows)))
    known = bt.read_log(tmp_path / "log.csv")
    log = bt.read_log(lake.open_lake(tmp_path / f"log.{ending}"))
    assert log.is_lazy
    assert log.learned_online
    assert set(log.summed().notes) == set(known.notes)
    assert (len(log), log.paths) == (len(known), known.paths)
    tree = known.tree
    assert tree is not None
    assert log.counts(tree)[1] == pytest.approx(known.counts(tree)[1])
    ours, theirs = (bt.evaluate(one, "uniform", tree=tree, estimators="ips") for one in (log, known))
    assert ours["ips"].value == pytest.approx(theirs["ips"].value, rel=1e-9)


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_an_export_without_a_row_of_use_says_where_they_went(tmp_path: Path, ending: str) -> None:
    rows = [
        row | {"exclude": ["a"], "only": [], "withdrawn": False, "shown": row["arm"]} for row in service_rows(5, True)
    ]
    cells = [{name: json.dumps(v) if isinstance(v, list | bool) else v for name, v in row.items()} for row in rows]
    pd.DataFrame(cells).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "log.ndjson").write_text("\n".join(map(json.dumps, rows)))
    name = tmp_path / f"log.{ending}"
    with pytest.raises(LogError, match="no rows; 5 rows limited by 'exclude': left out; a log needs at least one"):
        len(bt.read_log(name if ending == "csv" else lake.open_lake(name)))


def test_every_error_of_a_lazy_log_is_one_of_ours() -> None:
    for source in (on_duckdb(made().rename(columns={"p": "click2"})), pl.LazyFrame({"a": [[1], [2]], "b": [1, 2]})):
        with pytest.raises(BanditreeError):
            bt.read_log(source, arm="a", reward="b")


def test_sums_are_a_log_in_memory() -> None:
    sums = bt.read_log(on_duckdb(made()), **COLUMNS, fold="visit").summed("folds")
    assert isinstance(sums, Log)
    assert not sums.is_lazy
    assert sums.counted.sum() == 393
