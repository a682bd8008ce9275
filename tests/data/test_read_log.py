"""Reading a log: every source gives the same, and everything that is wrong is said at once."""

from __future__ import annotations

import gzip
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import banditree as bt
from banditree import ope
from banditree.errors import InvalidType, InvalidValue, UnknownArm

TABLE: dict[str, list[Any]] = {
    "item": ["hat", "cap", "hat", "boot"],
    "click": [1, 0, None, 1],
    "p": [0.5, 0.25, 0.5, 0.25],
    "age": [31, 22, 40, 55.5],
    "device": ["tv", "pc", "pc", "phone"],
    "at": ["2024-03-01 10:00:00", "2024-03-01 09:00:00", "2024-03-01 12:00:00", "2024-03-02 08:00:00"],
}
COLUMNS: dict[str, Any] = {
    "arm": "item",
    "reward": "click",
    "propensity": "p",
    "context": ["age", "device"],
    "time": "at",
}


def sources(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(folder / "log.csv", index=False)
    (folder / "log.csv.gz").write_bytes(gzip.compress((folder / "log.csv").read_bytes()))
    pq.write_table(pa.table(TABLE), folder / "log.parquet")
    return {
        "mapping": TABLE,
        "pandas": frame,
        "polars": pl.DataFrame(TABLE, strict=False),
        "arrow": pa.table(TABLE),
        "csv": folder / "log.csv",
        "csv.gz": str(folder / "log.csv.gz"),
        "parquet": folder / "log.parquet",
    }


def test_every_source_gives_the_same_log(tmp_path: Path) -> None:
    for name, source in sources(tmp_path).items():
        log = bt.read_log(source, **COLUMNS)
        assert log.arms.tolist() == ["hat", "cap", "boot"], name
        assert log.rewards.tolist() == [1.0, 0.0, 1.0], name
        assert log.propensities is not None
        assert log.propensities.tolist() == [0.5, 0.25, 0.25], name
        assert log.context_names == ("age", "device=pc", "device=phone", "device=tv"), name
        assert log.contexts is not None
        assert log.contexts.tolist() == [[31, 0, 0, 1], [22, 1, 0, 0], [55.5, 0, 1, 0]], name
        assert log.times is not None
        assert log.times.tolist()[1] == datetime(2024, 3, 1, 9), name
        assert (len(log), log.without_reward) == (3, 1), name
        assert "1 row without a reward yet: left out" in log.notes, name


def test_frames_with_their_own_kinds_of_values() -> None:
    frame = pd.DataFrame(
        {
            "item": pd.Series([3, 1, 3], dtype="Int64"),
            "click": pd.Series([True, False, None], dtype="boolean"),
            "p": np.array([0.5, 0.25, 0.5], np.float32),
            "at": pd.to_datetime(["2024-03-01T10:00:00Z", "2024-03-01T09:00:00Z", "2024-03-01T12:00:00Z"]),
        }
    )
    log = bt.read_log(frame, arm="item", reward="click", propensity="p", time="at")
    assert log.arms.dtype == np.int64
    assert log.arms.tolist() == [3, 1]
    assert log.rewards.tolist() == [1.0, 0.0]
    assert log.in_time().arms.tolist() == [1, 3]
    truth = bt.read_log({"a": ["x", "y"], "r": ["True", " false"]}, arm="a", reward="r")
    assert truth.rewards.tolist() == [1.0, 0.0]


def test_everything_wrong_is_reported_at_once(tmp_path: Path) -> None:
    rows = ["item,click,p,age", "a,1,0,30", "b,0,1.5,old", "c,yes,0.5,20", ",1,,25", "d,0,-0.1,40", "e,1,0,", "f,,,"]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    with pytest.raises(ope.LogError) as caught:
        bt.read_log(tmp_path / "log.csv", arm="item", reward="click", propensity="p", context=["age"])
    result = {(problem.column, problem.rows) for problem in caught.value.problems}
    assert result == {
        ("click", (4,)),  # yes is not a number
        ("item", (5,)),  # empty
        ("p", (2, 7)),  # 0
        ("p", (3,)),  # above 1
        ("p", (5,)),  # empty; row 8 has no reward, so nobody asks
        ("p", (6,)),  # negative
        ("age", (3,)),  # text among numbers
        ("age", (7,)),  # empty
    }
    message = str(caught.value)
    assert message.startswith("9 problems in log.csv\n")
    assert "rows 2, 7, column 'p': 0; a propensity is the probability" in message


def test_many_rows_with_one_problem_share_a_line() -> None:
    table = {"a": ["x"] * 1000, "r": [1] * 1000, "p": [0.0] * 1000}
    with pytest.raises(ope.LogError) as caught:
        bt.read_log(table, arm="a", reward="r", propensity="p")
    assert len(caught.value.problems) == 1
    assert len(caught.value.problems[0].rows) == 1000
    assert "1,000 rows (0, 1, 2, ...), column 'p': 0; a propensity" in str(caught.value)


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"a": ["x"], "r": [1]}, {"propensity": "q"}, "no such column"),
        ({"a": ["x"], "reward": [1]}, {}, "no such column"),
        ({"a": ["x"], "r": [1]}, {"propensity": "r"}, "named twice"),
        ({"a": ["x"], "r": [1], "c": [1]}, {"context": "c"}, r"for example \['c'\]"),
        ({"a": ["x"], "r": [1]}, {"time": 3}, "must be the name of a column"),
        ({"a": [], "r": []}, {}, "no rows; a log needs at least one"),
        ({"a": ["x", "y"], "r": [None, None]}, {}, r"no rows with a reward \(2 rows without\)"),
        ({"a": ["x"], "r": [float("inf")]}, {}, "not finite"),
        ({"a": [["x"]], "r": [1]}, {}, "is a list; give text or a whole number"),
        ({"a": ["x"] * 2, "r": [1, 0], "t": ["2024-03-01", "soon"]}, {"time": "t"}, "'soon' is not a time"),
        ({"a": ["x"] * 2, "r": [1, 0], "t": ["2024-03-01", "2024-03-01T00:00Z"]}, {"time": "t"}, "no time zone"),
        ({"a": ["x"] * 2, "r": [1, 0], "t": [1, None]}, {"time": "t"}, "not a time"),
        ({"a": ["x"] * 2, "r": [1, 0], "c": ["n", ""]}, {"context": ["c"]}, "row 1, column 'c': empty"),
        (
            {"a": ["x"] * 1001, "r": [1] * 1001, "c": [f"c{i}" for i in range(1001)]},
            {"context": ["c"]},
            "1,001 different",
        ),
    ],
)
def test_wrong_tables(table: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidValue, InvalidType), match=words):
        bt.read_log(table, arm="a", reward="r", **options)


def test_arms_are_held_against_a_tree_by_what_uses_both() -> None:
    log = bt.read_log({"a": ["x", "y", "z", "z"], "r": [1, 0, 1, 1]}, arm="a", reward="r")
    with pytest.raises(UnknownArm, match=r"2 arms of the log, on 3 rows, not in Tree.*'y', 'z'"):
        log.places(bt.Tree(["x", "w"]))
    assert log.rows(slice(0, 1)).places(bt.Tree(["w", "x"])).tolist() == [1]  # the others have no row there
    with pytest.raises(UnknownArm):
        bt.TS(bt.Tree(["x", "w"])).learn(log)


def test_text_ids_match_a_tree_of_ints_where_all_do_and_the_other_way_round() -> None:
    text = bt.read_log({"a": ["10", "2"], "r": [1, 0]}, arm="a", reward="r")
    assert text.places(bt.Tree([2, 10])).tolist() == [1, 0]
    ints = bt.read_log({"a": [10, 2], "r": [1, 0]}, arm="a", reward="r")
    assert ints.places(bt.Tree(["2", "10"])).tolist() == [1, 0]
    for ids in (["10", "3"], ["10", "02"]):  # 02 is not how 2 is written
        odd = bt.read_log({"a": ids, "r": [1, 0]}, arm="a", reward="r")
        with pytest.raises(UnknownArm, match=r"2 arms .* text in the log and numbers in the tree, and not all"):
            odd.places(bt.Tree([2, 10]))


def test_splitting_goes_by_time() -> None:
    log = bt.read_log({"a": [0, 1, 2, 3], "r": [0, 0, 1, 1], "t": [4, 3, 2, 1]}, arm="a", reward="r", time="t")
    first, rest = log.split(0.5)
    assert (first.arms.tolist(), rest.arms.tolist()) == ([3, 2], [1, 0])
    with pytest.raises(InvalidValue, match="leaves one part empty"):
        log.split(0.01)


def test_estimated_propensities_are_shares_of_rows_and_say_so() -> None:
    log = bt.read_log({"a": ["x", "x", "x", "y"], "r": [1, 0, 1, 1]}, arm="a", reward="r", propensity="estimated")
    assert log.propensities is not None
    assert log.propensities.tolist() == [0.75, 0.75, 0.75, 0.25]
    assert log.estimated
    assert any("propensities are estimated" in note for note in log.notes)
    result = bt.evaluate(log, {"x": 1.0}, tree=bt.Tree(["x", "y"]), estimators="ips")
    assert result["ips"].value == pytest.approx(2 / 3)  # the mean of x's rewards
    assert result.estimated


def test_estimated_propensities_follow_the_context() -> None:
    """Rows of a known softmax policy: the fitted probabilities are close to the true ones, unlike plain shares."""
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.standard_normal((n, 2))
    scores = np.exp(x @ np.array([[1.0, 0.0, -1.0], [0.0, 0.5, -0.5]]) + np.array([0.0, 0.3, -0.2]))
    chances = scores / scores.sum(axis=1, keepdims=True)
    arms = (chances.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    table = {"a": arms, "r": rng.random(n), "u": x[:, 0], "v": x[:, 1]}
    log = bt.read_log(table, arm="a", reward="r", propensity="estimated", context=["u", "v"])
    assert log.propensities is not None
    true = chances[np.arange(n), arms]
    error = np.abs(log.propensities - true)
    # Eight coefficients from 20,000 rows: standard errors near 0.02, so probabilities within about 0.01 on average.
    assert error.mean() < 0.01
    assert np.abs(np.bincount(arms)[arms] / n - true).mean() > 0.1


def test_learning_from_a_log_equals_its_rows(engine: str) -> None:
    tree = bt.Tree({"x": [0, 1], "y": [2]})
    rng = np.random.default_rng(1)
    arms, rewards, x = rng.integers(3, size=50), rng.integers(2, size=50), rng.standard_normal((50, 2))
    table = {"a": [str(arm) for arm in arms], "r": rewards, "u": x[:, 0], "v": x[:, 1]}
    log = bt.read_log(table, arm="a", reward="r", context=["u", "v"])
    for make in (lambda: bt.TSC(tree, rng=1), lambda: bt.LinTSC(tree, dim=2, rng=1)):
        one, two = make(), make()
        one.learn(log)
        two.update_many(arms, rewards, contexts=None if two.dim is None else x)
        assert str(one.table()) == str(two.table())
    bare = bt.read_log({"a": arms, "r": rewards}, arm="a", reward="r")
    with pytest.raises(InvalidValue, match="needs contexts"):
        bt.LinTSC(tree, dim=2, rng=1).learn(bare)


def test_ids_of_another_kind_are_matched_or_hinted_at_wherever_ids_are_given() -> None:
    text_tree = bt.Tree(["1", "2"])
    log = bt.read_log({"a": [1, 2], "r": [1, 0], "p": [0.5, 0.5]}, arm="a", reward="r", propensity="p")
    assert bt.evaluate(log, {1: 1.0}, tree=text_tree, estimators="ips")["ips"].value == 1.0
    hint = "ids are text in the tree and numbers in the"
    with pytest.raises(UnknownArm, match=f"{hint} target"):
        bt.evaluate(log, {1: 0.5, 3: 0.5}, tree=text_tree)
    with pytest.raises(UnknownArm, match=f"{hint} log"):
        bt.read_log({"a": [1, 3], "r": [1, 0]}, arm="a", reward="r").places(text_tree)
    with pytest.raises(InvalidValue, match=f"{hint} policy"):
        bt.evaluate(log, bt.TS(bt.Tree([1, 2])), tree=text_tree)


def test_estimated_propensities_of_a_thousand_arms_take_seconds() -> None:
    rng = np.random.default_rng(8)
    n, n_arms = 12_000, 1000
    x = rng.standard_normal((n, 3))
    scores = x @ rng.normal(0, 0.5, (3, n_arms)) + rng.normal(0, 1, n_arms) + rng.gumbel(size=(n, n_arms))
    table = {"a": scores.argmax(axis=1), "r": np.zeros(n), "u": x[:, 0], "v": x[:, 1], "w": x[:, 2]}
    started = time.process_time()
    log = bt.read_log(table, arm="a", reward="r", propensity="estimated", context=["u", "v", "w"])
    assert time.process_time() - started < 60  # about 2 on a machine of 2020; the ascent before took minutes
    assert log.propensities is not None
    shares = np.bincount(log.codes)[log.codes] / n
    gain = np.log(log.propensities).mean() - np.log(shares).mean()
    assert gain > 0.2  # the true coefficients gain about 0.35; shares alone gain nothing


def test_a_policy_with_features_learns_from_the_columns_of_a_log(engine: str, tmp_path: Path) -> None:
    tree = bt.Tree({"x": [0, 1], "y": [2]})
    rng = np.random.default_rng(4)
    n = 60
    table: dict[str, Any] = {"a": rng.integers(3, size=n), "r": rng.standard_normal(n), "age": rng.integers(18, 91, n)}
    table |= {"device": rng.choice(["tv", "pc"], n).tolist(), "old": rng.random(n) < 0.5}
    pd.DataFrame(table).to_csv(tmp_path / "log.csv", index=False)
    features = bt.Features({"device": ["pc", "tv"], "age": (18, 90), "old": bool})
    visits = [{name: table[name][row] for name in ("device", "age", "old")} for row in range(n)]
    expected = features.encode(visits)
    for source in (table, tmp_path / "log.csv", pd.DataFrame(table), pl.DataFrame(table)):
        log = bt.read_log(source, arm="a", reward="r", context=["old", "age", "device"])
        assert log.features is not None
        assert set(log.features.spec) == {"old", "age", "device"}
        assert log.features.spec["device"] == ["pc", "tv"]
        assert np.array_equal(log.encode(features), expected)
        assert np.array_equal(log.rows(slice(5, 9)).encode(features), expected[5:9])
        policy, again = (bt.LinTSC(tree, features=features, rng=1) for _ in range(2))
        policy.learn(log)
        again.update_many(table["a"], table["r"], contexts=visits)
        assert str(policy.table()) == str(again.table())
    bare = bt.read_log(table, arm="a", reward="r")
    assert bare.features is None
    with pytest.raises(InvalidValue, match="no contexts"):
        bt.LinTSC(tree, features=features, rng=1).learn(bare)
    other = bt.read_log(table, arm="a", reward="r", context=["age"])
    with pytest.raises(InvalidValue, match="feature 'device' is not a column here; there are 'age'"):
        bt.LinTSC(tree, features=features, rng=1).learn(other)


def test_text_stays_text_and_a_file_without_types_is_read_by_its_cells(tmp_path: Path) -> None:
    sizes, codes, ages = ["38", "40", "XL"], ["01234", "40123", "01234"], [31, 22, 40]
    table = {"a": ["x", "y", "x"], "r": [1, 0, 1], "size": sizes, "zip": codes, "age": ages}
    frame = pd.DataFrame(table)
    frame.to_csv(tmp_path / "log.csv", index=False)
    for source in (table, frame, frame.astype({"size": "category", "zip": "category"}), pl.DataFrame(table)):
        log = bt.read_log(source, arm="a", reward="r", context=["size", "zip", "age"])
        assert log.context_names == ("size=38", "size=40", "size=XL", "zip=01234", "zip=40123", "age")
        assert log.features is not None
        assert log.features.spec["zip"] == ["01234", "40123"]
    with pytest.raises(
        ope.LogError, match=r"'XL' is not a number; if these are categories, say so: context={'size'.* --context size:"
    ):
        bt.read_log(tmp_path / "log.csv", arm="a", reward="r", context=["size", "zip"])
    log = bt.read_log(tmp_path / "log.csv", arm="a", reward="r", context={"size": "category", "zip": None})
    assert log.context_names == ("size=38", "size=40", "size=XL", "zip=01234", "zip=40123")
    assert bt.read_log(table, arm="a", reward="r", context={"age": "category"}).context_names[0] == "age=22"
    assert bt.read_log(frame, arm="a", reward="r", context={"zip": "number"}).context_names == ("zip",)
    levels = frame.assign(age=frame["age"].astype("category"))
    assert bt.read_log(levels, arm="a", reward="r", context=["age"]).context_names == ("age=22", "age=31", "age=40")
    with pytest.raises(InvalidValue, match="a column is 'category' or 'number'"):
        bt.read_log(table, arm="a", reward="r", context={"age": "int"})


def service_rows(overall: bool) -> dict[str, list[Any]]:
    """A policy that shows arm a with 0.9, and a control group of a tenth that shows both arms equally often."""
    rows: dict[str, list[Any]] = {name: [] for name in ("arm", "propensity", "reward", "path", "at", "group")}
    rows |= {"propensity_overall": []} if overall else {}
    chances = {"policy": {"a": 0.9, "b": 0.1}, "control": {"a": 0.5, "b": 0.5}}
    for group, n_rows in (("policy", 900), ("control", 100)):
        for arm, chance in chances[group].items():
            for _ in range(round(n_rows * chance)):
                rows["arm"].append(arm)
                rows["propensity"].append(chance)
                rows["reward"].append(20.0 if arm == "b" else 10.0)
                rows["path"].append([arm])
                rows["at"].append(len(rows["at"]))
                rows["group"].append(group)
                if overall:
                    rows["propensity_overall"].append(0.9 * chances["policy"][arm] + 0.1 * chances["control"][arm])
    return rows


def test_rows_of_both_groups_are_weighted_by_the_probability_over_both() -> None:
    log = bt.read_log(service_rows(overall=True))
    result = bt.evaluate(log, {"b": 1.0}, tree=bt.Tree(["a", "b"]), estimators="ips")
    assert len(log) == 1000
    assert result["ips"].value == pytest.approx(20.0)
    assert not any("weights average" in note for note in result.notes)
    before = bt.read_log(service_rows(overall=False))  # a log of 0.3, whose propensities are right for each group alone
    assert len(before) == 900
    assert any("100 rows of the control group" in note for note in before.notes)
    assert bt.evaluate(before, {"b": 1.0}, tree=bt.Tree(["a", "b"]), estimators="ips")["ips"].value == pytest.approx(20)
