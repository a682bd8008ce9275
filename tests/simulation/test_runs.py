"""Results of a simulation: numbers of the tables computed by hand, data frames, files, and how they print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import banditree as bt
from banditree.errors import BadFile, BanditreeError, InvalidValue, MissingExtra
from banditree.report.intervals import student
from banditree.simulation.runs import HEADER, Run, Runs
from tests.simulation.test_simulate import OwnProblem

TREE = bt.Tree({"a": [0, 1], "b": [2], "c": {"deep": [3]}})
FIXED = bt.problems.bernoulli(TREE, [0.1, 0.4, 0.7, 0.6])
DRAWN = bt.problems.unstructured(n_arms=6, n_clusters=2)


def by_hand() -> Runs:
    """Two policies, three seeds, two times."""

    def run(first: float, last: float, seconds: float, evaluations: float) -> Run:
        return Run("native", np.array([first, last], float), np.array([1, 2, 3, 4]), evaluations, seconds)

    runs = {
        "bad": [run(2, 7, 0.5, 4), run(3, 8, 0.5, 5), run(4, 12, 1, 6)],
        "good": [run(1, 2, 1, 3), run(2, 4, 1, 3), run(3, 6, 1, 3)],
    }
    return Runs.gather(runs, seeds=[5, 1, 8], times=np.array([10, 20]), problem=FIXED, instance=FIXED.instance(0))


def test_the_table_by_hand() -> None:
    runs = by_hand()
    good, bad = runs.table()
    assert (good.policy, good.rank, good.mean, good.sd) == ("good", 1, 4.0, 2.0)
    assert good.se == pytest.approx(2 / np.sqrt(3))
    assert good.interval == pytest.approx((4 - 4.302653 * good.se, 4 + 4.302653 * good.se))  # Student's t, two degrees
    assert (good.evaluations, good.microseconds, good.engine) == (3.0, pytest.approx(3e6 / 60), "native")
    assert (bad.policy, bad.rank, bad.mean, bad.sd) == ("bad", 2, 9.0, pytest.approx(np.sqrt(7)))
    assert (bad.evaluations, bad.microseconds) == (5.0, pytest.approx(2e6 / 60))
    early = runs.table(time=10)
    assert (early["policy"], early["mean"], early["sd"]) == (["good", "bad"], [2.0, 3.0], [1.0, 1.0])


def test_intervals_reach_as_far_as_students_t() -> None:
    for n in (*range(2, 60), 100, 999, 1000, 1001, 1002, 1003, 5000, 100_000):
        assert student(n) == pytest.approx(scipy.stats.t.ppf(0.975, n - 1), abs=1e-5)
    assert np.isnan(student(1))


def test_a_comparison_by_hand() -> None:
    compared = by_hand().compare("good", "bad")
    assert (compared.a, compared.b, compared.seeds) == ("good", "bad", 3)
    assert compared.difference == -5.0  # of -5, -4, -6
    assert compared.se == pytest.approx(1 / np.sqrt(3))
    assert compared.z == pytest.approx(-5 * np.sqrt(3))
    assert compared.interval == pytest.approx((-5 - 4.302653 / np.sqrt(3), -5 + 4.302653 / np.sqrt(3)))
    assert str(compared).startswith(
        "good has 5 less regret than bad (95% interval of the difference -7.484 to -2.516, z"
    )
    other = by_hand().compare("bad", "good")
    assert (other.difference, other.z) == (5.0, -compared.z)
    assert "bad has 5 more regret than good" in str(other)
    early = by_hand().compare("bad", "good", time=10)  # of 1, 1, 1
    assert (early.difference, early.se) == (1.0, 0.0)
    assert np.isnan(early.z)


def test_pairing_matters() -> None:
    """If seeds differ much and policies little, only paired differences show it."""
    hard = np.arange(20.0)[:, None] * 100
    runs = {
        name: [Run("native", seed + more, np.zeros(1, np.int64)) for seed in hard]
        for name, more in (("a", 0), ("b", 1))
    }
    runs["b"][0].regret += 0.5
    compared = Runs.gather(runs, seeds=range(20), times=np.array([1]), problem=DRAWN).compare("a", "b")
    assert compared.z < -30


def test_one_seed_has_no_spread() -> None:
    runs = bt.simulate([bt.TS, bt.UCB1], FIXED, horizon=10, seeds=1)
    assert all(np.isnan(row.sd) and np.isnan(row.se) for row in runs.table())
    assert np.isnan(runs.compare("TS", "UCB1").z)
    assert [row.split()[2:5] for row in repr(runs).splitlines()[3:5]] == [["–", "–", "–"]] * 2


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda runs: runs.compare("good", "best"), "no policy 'best'; there are bad, good"),
        (lambda runs: runs.table(time=15), "not recorded at time 15"),
        (lambda runs: runs.compare("good", "bad", time=0), "not recorded at time 0"),
    ],
)
def test_what_is_not_there_is_told(ask: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        ask(by_hand())


def test_the_plays_add_up() -> None:
    runs = bt.simulate([bt.TSC, bt.UCB1], FIXED, horizon=50, seeds=3)
    assert runs.times[-1] == 50
    assert runs.arms == (0, 1, 2, 3)
    assert runs.instance.best() == 0.7
    for name in runs.policies:
        plays = runs.plays[name]
        assert plays.shape == (3, 4)
        assert (plays.sum(axis=1) == 50).all()
        assert list(runs.clusters[name][1].items()) == [
            ("a", plays[1, :2].sum()),
            ("b", plays[1, 2]),
            ("c", plays[1, 3]),
        ]
        assert np.allclose(runs.regret[name][:, -1], plays @ [0.6, 0.3, 0.0, 0.1])


def test_where_instances_differ_there_are_no_plays_an_arm() -> None:
    runs = bt.simulate([bt.TSC], DRAWN, horizon=50, seeds=3)
    assert (runs.plays, runs.arms, runs.instance) == ({}, (), None)
    assert [sum(seed.values()) for seed in runs.clusters["TSC"]] == [50, 50, 50]


def test_printing_says_which_policy_is_best_and_shows_the_table() -> None:
    headline, _, *lines = repr(by_hand()).splitlines()
    assert headline.startswith("good has the least regret")
    assert lines[0].split() == list(by_hand().table().columns)
    assert [line.split()[0] for line in lines[1:3]] == ["good", "bad"]
    assert lines[3].startswith("Problem: bernoulli(")


def test_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = by_hand().to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["policy", "seed", "time", "regret"]
    assert frame.shape == (12, 4)
    assert frame.iloc[3].tolist() == ["bad", 1, 20, 8.0]
    monkeypatch.setitem(sys.modules, "narwhals", None)
    assert by_hand().to_frame().equals(frame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    other = by_hand().to_frame()
    assert isinstance(other, pl.DataFrame)
    assert other.rows() == list(frame.itertuples(index=False, name=None))
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pip install pandas, polars or pyarrow"):
        by_hand().to_frame()


def equal(one: Runs, two: Runs) -> bool:
    arrays = all(
        np.array_equal(one.regret[name], two.regret[name])
        and np.array_equal(one.evaluations[name], two.evaluations[name], equal_nan=True)
        for name in one.policies
    )
    plays = one.plays.keys() == two.plays.keys() and all(np.array_equal(one.plays[k], two.plays[k]) for k in one.plays)
    rest = ("seeds", "engine", "seconds", "clusters", "arms", "problem", "policies")
    same = all(getattr(one, name) == getattr(two, name) for name in rest)
    return arrays and plays and same and np.array_equal(one.times, two.times) and two.times.dtype == np.int64


@pytest.mark.parametrize(
    "problem", [FIXED, DRAWN, OwnProblem(), bt.problems.open_bandit()], ids=["fixed", "drawn", "own", "shop"]
)
def test_a_file_keeps_everything(problem: Any, tmp_path: Path) -> None:
    class Own(bt.TSC):
        walk = property(lambda self: self._state.walk)

    policies = {"TSC": bt.TSC, 'odd, "name"\nand ünicode': Own}
    runs = bt.simulate(policies, problem, horizon=30, seeds=[7, 2], checkpoints=4)
    runs.save(tmp_path / "runs.csv")
    loaded = bt.Runs.load(tmp_path / "runs.csv")
    assert equal(runs, loaded)
    assert repr(loaded) == repr(runs)
    table = pd.read_csv(tmp_path / "runs.csv", comment="#")
    assert len(table) == 2 * 2 * len(runs.times)


def test_odd_numbers_are_kept(tmp_path: Path) -> None:
    values = np.array([0.1 + 0.2, 1e-300, np.inf])
    runs = {"own": [Run("readable", values, np.zeros(4, np.int64), np.nan)]}
    Runs.gather(runs, seeds=[0], times=np.array([1, 2, 3]), problem=FIXED, instance=FIXED.instance(0)).save(
        tmp_path / "runs.csv"
    )
    loaded = Runs.load(tmp_path / "runs.csv")
    assert loaded.regret["own"][0].tolist() == values.tolist()
    assert np.isnan(loaded.evaluations["own"]).all()


def damaged(text: str) -> dict[str, str | bytes]:
    first, _, rest = text.partition("\n")
    header, lines = json.loads(first.removeprefix(HEADER)), rest.splitlines(keepends=True)
    without = {key: HEADER + json.dumps({k: v for k, v in header.items() if k != key}) + "\n" + rest for key in header}
    files: dict[str, str | bytes] = {
        "empty": "",
        "other": "policy,seed,time,regret\na,1,2,3\n",
        "binary": b"\x80\x81\x82\n",
        "cut header": first[:60],
        "no rows": first + "\n",
        "no columns": first + "\n" + "".join(lines[1:]),
        "cut": text[: len(text) - 20],
        "a policy less": HEADER
        + json.dumps(header | {"evaluations": dict([*header.get("evaluations", {}).items()][1:])})
        + "\n"
        + rest,
        "the clusters of a seed less": HEADER
        + json.dumps(header | {"clusters": {name: each[1:] for name, each in header["clusters"].items()}})
        + "\n"
        + rest,
        "a row less": first + "\n" + "".join(lines[:-1]),
        "a seed less": first + "\n" + "".join(line for line in lines if ",8," not in line),
        "swapped": first + "\n" + "".join([lines[0], *lines[:0:-1]]),
        "not a number": text.replace("12.0", "twelve"),
        "a list": HEADER + "[1, 2]\n" + rest,
    }
    return files | {f"no {key}": value for key, value in without.items()}


DAMAGES = list(damaged(HEADER + '{"engine": {}, "clusters": {}, "seconds": {}, "arms": []}\npolicy\n'))


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    by_hand().save(path)
    text = damaged(path.read_text())[kind]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadFile, match=r"runs\.csv (is damaged|was not written)") as caught:
        Runs.load(path)
    assert isinstance(caught.value, BanditreeError)


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    by_hand().save(path)
    before = path.read_text()
    broken = Runs.gather(
        {"own": [Run("readable", np.zeros(1), np.zeros(4, np.int64), clusters={("no", "JSON"): object()})]},  # type: ignore[dict-item]
        seeds=[0],
        times=np.array([1]),
        problem=FIXED,
    )
    with pytest.raises(TypeError):
        broken.save(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_any_kind_are_kept(tmp_path: Path) -> None:
    names = ["cr\rx", "a,b", '"', "line\nbreak", "#1 TS", "C# TSC", "é", " TS ", "1"]
    runs = bt.simulate(dict.fromkeys(names, bt.TS), FIXED, horizon=3, seeds=2)
    runs.save(tmp_path / "runs.csv")
    loaded = Runs.load(tmp_path / "runs.csv")
    assert loaded.policies == tuple(names)
    assert all((loaded.regret[name] == runs.regret[name]).all() for name in names)
    frame = pd.read_csv(tmp_path / "runs.csv", skiprows=1, dtype={"policy": str})
    assert list(dict.fromkeys(frame["policy"])) == names
    assert len(str(runs.table()).splitlines()) == 1 + len(names)


def test_a_file_that_csv_cannot_read_is_damaged(tmp_path: Path) -> None:
    runs = bt.simulate({"TS": bt.TS}, FIXED, horizon=9000, seeds=1, checkpoints=9000)
    file = tmp_path / "runs.csv"
    runs.save(file)
    first, rest = file.read_text().split("\n", 1)
    file.write_text(f'{first}\n"{rest}')
    with pytest.raises(BadFile, match="is damaged"):
        Runs.load(file)


def test_an_engine_is_native_only_if_all_seeds_were() -> None:
    class Own(bt.TS):
        pass

    def mixed(tree: bt.Tree, *, rng: Any) -> bt.TS:
        return (Own if rng.spawn_key[0] == 1 else bt.TS)(tree, rng=rng)

    assert bt.simulate([mixed], FIXED, horizon=3, seeds=2).engine["mixed"] == "readable"


def test_seeds_of_a_fixed_problem_must_have_the_same_arms() -> None:
    class Wrong:
        fixed = True

        def instance(self, rng: Any) -> Any:
            return bt.problems.unstructured(2 + 2 * rng.bit_generator.seed_seq.spawn_key[0], 2).instance(rng)

    with pytest.warns(UserWarning, match=r"says fixed = True, but seeds have different arms; plays are left out"):
        runs = bt.simulate([bt.TS], Wrong(), horizon=3, seeds=2)
    assert (runs.seeds, runs.plays, runs.instance) == ((0, 1), {}, None)


def test_one_seed_is_one_seed() -> None:
    runs = bt.simulate([bt.TS, bt.TSC], FIXED, horizon=3, seeds=1)
    assert "after 3 steps, over 1 seed" in repr(runs)
    assert "1 paired seed)" in str(runs.compare("TS", "TSC"))
