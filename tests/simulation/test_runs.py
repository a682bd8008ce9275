"""Results of a simulation: tables and comparisons by hand, selecting, joining, replicates, frames and files."""

from __future__ import annotations

import csv
import functools
import io
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import banditree as bt
from banditree.base.intervals import student
from banditree.base.tables import Table
from banditree.errors import BadFile, BanditreeError, InvalidType, InvalidValue, MissingExtra
from banditree.problems.instance import describe
from banditree.simulation.runs import Run, Runs
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
    assert runs.instance is not None
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
    runs = bt.simulate(policies, problem, horizon=30, seeds=[7, 2], checkpoints=4, rng=5, delay=2)
    runs.save(tmp_path / "runs.npz")
    loaded = bt.Runs.load(tmp_path / "runs.npz")
    assert equal(runs, loaded)
    assert repr(loaded) == repr(runs)
    assert loaded.about == runs.about
    assert runs.about == {
        "rng": 5, "delay": 2, "batch": 1, "common_rewards": False, "version": bt.__version__, "horizon": 30,
        "problem": describe(problem),
    }  # fmt: skip


def test_a_csv_file_is_plain(tmp_path: Path) -> None:
    runs = by_hand()
    runs.save(tmp_path / "runs.csv")
    table = pd.read_csv(tmp_path / "runs.csv")
    assert table.equals(runs.to_frame())
    with pytest.raises(BadFile, match=r"runs\.csv holds the regret alone"):
        Runs.load(tmp_path / "runs.csv")


def test_a_file_of_0_3_is_read(tmp_path: Path) -> None:
    runs = by_hand()
    (tmp_path / "old.csv").write_text(written_by_0_3(runs), encoding="utf-8")
    loaded = bt.Runs.load(tmp_path / "old.csv")
    assert equal(runs, loaded)
    assert loaded.about == {"horizon": 20, "problem": repr(FIXED)}


def test_replicates_are_kept(tmp_path: Path) -> None:
    runs = bt.simulate([bt.TS, bt.TSC], FIXED, horizon=9, seeds=2, replicates=3, checkpoints=2)
    runs.save(tmp_path / "runs.npz")
    assert np.array_equal(bt.Runs.load(tmp_path / "runs.npz").replicates["TSC"], runs.replicates["TSC"])


def test_odd_numbers_are_kept(tmp_path: Path) -> None:
    values = np.array([0.1 + 0.2, 1e-300, np.inf])
    runs = {"own": [Run("readable", values, np.zeros(4, np.int64), np.nan)]}
    Runs.gather(runs, seeds=[0], times=np.array([1, 2, 3]), problem=FIXED, instance=FIXED.instance(0)).save(
        tmp_path / "runs.npz"
    )
    loaded = Runs.load(tmp_path / "runs.npz")
    assert loaded.regret["own"][0].tolist() == values.tolist()
    assert np.isnan(loaded.evaluations["own"]).all()


def written_by_0_3(runs: Runs, **changes: Any) -> str:
    """A CSV file as 0.3 wrote it, with JSON in the column ``details``, here all of it in the first row."""
    details: dict[str, Any] = {
        "problem": runs.problem,
        "engine": runs.engine,
        "seconds": runs.seconds,
        "evaluations": {name: values.tolist() for name, values in runs.evaluations.items()},
        "clusters": {name: [list(seed.items()) for seed in seeds] for name, seeds in runs.clusters.items()},
        "plays": {name: plays.tolist() for name, plays in runs.plays.items()},
        "arms": runs.arms,
        "built": runs.built,
    }
    details = {name: value for name, value in (details | changes).items() if value is not None}
    text = io.StringIO()
    rows = runs.to_frame().values.tolist()
    said = [json.dumps(details), *[""] * len(rows)]
    columns = ["policy", "seed", "time", "regret", "details"]
    csv.writer(text).writerows([columns, *([*row, piece] for row, piece in zip(rows, said, strict=False))])
    return text.getvalue()


def damaged() -> dict[str, str | bytes]:
    runs = by_hand()
    old = written_by_0_3(runs)
    lines = old.splitlines(keepends=True)
    return {
        "empty": "",
        "binary": b"\x80\x81\x82\n",
        "cut header": old[:10],
        "no rows": lines[0],
        "no columns": "".join(lines[1:]),
        "a row less": "".join(lines[:-1]),
        "swapped": "".join([*lines[:2], lines[3], lines[2], *lines[4:]]),
        "not a number": old.replace("12.0", "twelve"),
        "not JSON": old.replace("details\r\n", "details\r\n", 1).replace("{", "", 1),
        **{f"no {key}": written_by_0_3(runs, **{key: None}) for key in ("engine", "clusters", "arms", "problem")},
        "an unclosed quote": lines[0] + '"' + "".join(lines[1:]) + "x" * 200_000,
    }


@pytest.mark.parametrize("kind", list(damaged()))
def test_a_damaged_file_of_0_3_is_told(kind: str, tmp_path: Path) -> None:
    path, text = tmp_path / "runs.csv", damaged()[kind]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadFile, match=r"runs\.csv (is damaged|was not written)") as caught:
        Runs.load(path)
    assert isinstance(caught.value, BanditreeError)


def broken_headers() -> dict[str, Any]:
    def without(name: str) -> Any:
        return lambda header: header.pop(name)

    return {
        "another kind": lambda header: header.update(kind="sweep"),
        "a seed less": lambda header: header["seeds"].pop(),
        "a policy less": lambda header: header["policies"].pop(),
        "clusters of a seed less": lambda header: header["clusters"]["bad"].pop(),
        **{f"no {key}": without(key) for key in ("kind", "engine", "seconds", "arms", "made", "problem")},
    }


@pytest.mark.parametrize("kind", list(broken_headers()))
def test_a_damaged_file_is_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    by_hand().save(path)
    with np.load(path) as content:
        arrays = dict(content)
    header = json.loads(arrays["header"].tobytes())
    broken_headers()[kind](header)
    np.savez(path, **arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(BadFile, match=r"runs\.npz (is damaged|holds 'sweep')"):
        Runs.load(path)


def test_a_cut_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    by_hand().save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadFile, match=r"runs\.npz is damaged"):
        Runs.load(path)


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    by_hand().save(path)
    before = path.read_bytes()
    broken = Runs.gather(
        {"own": [Run("readable", np.zeros(1), np.zeros(4, np.int64), clusters={("no", "JSON"): object()})]},  # type: ignore[dict-item]
        seeds=[0],
        times=np.array([1]),
        problem=FIXED,
    )
    with pytest.raises(InvalidValue, match="not JSON serializable"):
        broken.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_any_kind_are_kept(tmp_path: Path) -> None:
    names = ["cr\rx", "a,b", '"', "line\nbreak", "#1 TS", "C# TSC", "é", " TS ", "1", "/"]
    runs = bt.simulate(dict.fromkeys(names, bt.TS), FIXED, horizon=3, seeds=2)
    runs.save(tmp_path / "runs.npz")
    loaded = Runs.load(tmp_path / "runs.npz")
    assert loaded.policies == tuple(names)
    assert all((loaded.regret[name] == runs.regret[name]).all() for name in names)
    runs.save(tmp_path / "runs.csv")
    frame = pd.read_csv(tmp_path / "runs.csv", dtype={"policy": str})
    assert list(dict.fromkeys(frame["policy"])) == names
    assert len(str(runs.table()).splitlines()) == 1 + len(names)


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


# ---------------------------------------------------------------- selecting, renaming and joining


PROBLEM = bt.problems.bernoulli(bt.Tree({"a": [0, 1], "b": [2, 3]}), [0.1, 0.2, 0.3, 0.9])


def runs(*names: str, problem: Any = PROBLEM, **options: Any) -> bt.Runs:
    settings: dict[str, Any] = {"horizon": 60, "seeds": 4, "rng": 2, "checkpoints": 6} | options
    return bt.simulate([bt.ALGORITHMS[name] for name in names], problem, **settings)


def same(one: bt.Runs, two: bt.Runs) -> bool:
    assert (one.policies, one.seeds, one.arms, one.problem) == (two.policies, two.seeds, two.arms, two.problem)
    arrays = all(
        np.array_equal(getattr(one, what)[name], getattr(two, what)[name], equal_nan=True)
        for what in ("regret", "evaluations", "plays")
        for name in one.policies
    )
    return arrays and one.engine == two.engine and one.clusters == two.clusters


def test_joined_policies_are_those_that_ran_together() -> None:
    assert same(runs("TS") | runs("TSC", "UCB1"), runs("TS", "TSC", "UCB1"))
    assert (runs("TS") | runs("TSC")).instance is not None


def test_joined_seeds_are_those_that_ran_together() -> None:
    both = runs("TS", "TSC", seeds=[0, 1]).join(runs("TSC", "TS", seeds=[2, 3]))
    assert same(both, runs("TS", "TSC"))
    assert both.seconds["TS"] > 0


def test_policies_built_in_two_ways_are_joined_without_saying_how() -> None:
    settings: dict[str, Any] = {"horizon": 20, "rng": 2}
    plain = bt.simulate({"TS": bt.TS, "TSC": bt.TSC}, PROBLEM, seeds=[0, 1], **settings)
    policies: dict[str, Any] = {"TS": bt.TS, "TSC": partial(bt.TSC, explore=0.1)}
    other = bt.simulate(policies, PROBLEM, seeds=[2, 3], **settings)
    assert plain.join(other).built == {"TS": ("TS", {})}


def test_replicates_are_joined_along_seeds() -> None:
    parts = [runs("TS", seeds=seeds, replicates=2) for seeds in ([0, 1], [2, 3])]
    whole = runs("TS", replicates=2)
    assert np.array_equal((parts[0] | parts[1]).replicates["TS"], whole.replicates["TS"])
    with pytest.raises(ValueError, match="replicates"):
        parts[0].join(runs("TS", seeds=[2, 3], replicates=3))
    with pytest.raises(ValueError, match="replicates"):
        parts[0].join(runs("TS", seeds=[2, 3]))


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"seeds": [3, 4]}, "seed 3 is in both"),
        ({"horizon": 50}, "different settings: horizon 60 and 50"),
        ({"checkpoints": 5}, "different times"),
        ({"problem": bt.problems.strong_dominance()}, "different settings: problem bernoulli"),
    ],
)
def test_what_does_not_fit_is_told(others: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        runs("TS").join(runs("TS", **others))


def test_problems_that_differ_at_the_end_of_their_names_are_told_apart() -> None:
    problems = [bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=2, distance=d) for d in (0.1, 0.25)]
    with pytest.raises(InvalidValue, match=r"distance=0\.1\D.*distance=0\.25"):
        runs("TS", problem=problems[0]) | runs("TSC", problem=problems[1])


class OfOnesOwn:
    """A problem without a text of its own."""

    def __init__(self, *means: float) -> None:
        self.means = means

    def instance(self, rng: Any) -> Any:
        return bt.problems.bernoulli(bt.Tree(2), self.means).instance(rng)


@pytest.mark.parametrize("of_means", [lambda *means: bt.problems.bernoulli(bt.Tree(2), means), OfOnesOwn])
def test_problems_that_differ_in_their_means_alone_are_told_apart(of_means: Any) -> None:
    """Also where one object stands at the address of another that is gone."""
    first = runs("TS", problem=of_means(0.1, 0.2))
    assert (first | runs("TSC", problem=of_means(0.1, 0.2))).policies == ("TS", "TSC")
    with pytest.raises(InvalidValue, match="different settings: problem"):
        first | runs("TSC", problem=of_means(0.1, 0.3))


def test_problems_that_differ_in_their_trees_alone_are_told_apart() -> None:
    trees = [bt.Tree.from_labels(labels) for labels in ([0, 0, 1, 1], [0, 1, 0, 1])]
    one, other = (runs("TS", problem=bt.problems.bernoulli(tree, [0.1] * 4)) for tree in trees)
    with pytest.raises(InvalidValue, match="different settings: problem"):
        one | other


@pytest.mark.parametrize(("option", "value"), [("rng", 3), ("delay", 5), ("batch", 2)])
def test_runs_made_in_another_way_are_not_paired(option: str, value: int) -> None:
    """They were joined, and called paired, although their seeds are other instances or other problems."""
    with pytest.raises(InvalidValue, match=rf"made with different settings: {option} \d and {value}"):
        runs("TS") | runs("TSC", **{option: value})


def test_neither_seeds_nor_policies_in_common() -> None:
    with pytest.raises(ValueError, match="neither their seeds nor their policies"):
        runs("TS").join(runs("TSC", seeds=[7]))
    with pytest.raises(ValueError, match="policy 'TS' is in both"):
        runs("TS").join(runs("TS", "TSC"))
    with pytest.raises(TypeError, match="must be runs"):
        runs("TS").join({"TS": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unsupported operand"):
        runs("TS") | 3


def test_times_that_are_even_on_a_log_axis() -> None:
    times = runs("TS", horizon=100_000, seeds=1, checkpoints="log").times
    assert (times[0], times[-1]) == (1, 100_000)
    assert len(times) <= 100
    late = np.diff(np.log(times[times > 200]))
    assert np.allclose(late, np.log(100_000) / 99, rtol=0.05)
    assert runs("TS", horizon=1, checkpoints="log").times.tolist() == [1]
    with pytest.raises(ValueError, match="checkpoints='linear'"):
        runs("TS", checkpoints="linear")


def test_a_table_as_a_frame() -> None:
    table = runs("TS", "TSC").table()
    frame = table.to_frame()
    assert len(frame) == 2
    assert {"policy", "mean", "interval_low", "interval_high"} <= set(frame.columns)
    assert frame.interval_low.tolist() == [row.interval[0] for row in table]
    policy = bt.TSC(bt.Tree({"a": ["x"], "b": ["y"]}), rng=0)
    assert policy.table().to_frame().path.tolist() == ["(all)", "a", "b", "a / x", "b / y"]


def test_a_table_in_latex() -> None:
    table = Table(["name", "share_%", "interval"], [("50% & more", 0.5, (0.1, 0.25)), ("{x}^2~\\", 3, (1.0, 2.0))])
    assert table.to_latex().splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & share\_\% & interval \\",
        r"\midrule",
        r"50\% \& more & 0.5 & 0.1 \dots{} 0.25 \\",
        r"\{x\}\textasciicircum{}2\textasciitilde{}\textbackslash{} & 3 & 1 \dots{} 2 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert Table(["a"], [(i,) for i in range(50)]).to_latex().count(r"\\") == 51


# ---------------------------------------------------------------- replicates


VARIED = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
REPLICATED = bt.problems.bernoulli(bt.Tree({"a": [0, 1], "b": [2, 3]}), [0.1, 0.2, 0.6, 0.5])


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
    runs = bt.simulate([bt.TS, bt.TSC], REPLICATED, horizon=20, seeds=2, replicates=2)
    assert (runs.plays, runs.arms) == ({}, ())
    assert runs.instance is not None


def test_a_replicate_that_fails_takes_its_policy_and_no_other() -> None:
    with pytest.raises(bt.errors.PolicyFailed, match="the second run") as failed:
        bt.simulate({"bad": Failing, "TS": bt.TS}, VARIED, horizon=10, seeds=2, replicates=2)
    assert failed.value.runs is not None
    assert failed.value.finished is not None
    assert failed.value.runs.policies == ("TS",)
    assert failed.value.finished["bad"].seeds == (1,)


def test_numbers_of_replicates_that_make_no_sense() -> None:
    for wrong in (0, [], [1, 1]):
        with pytest.raises(InvalidValue, match="replicate"):
            bt.simulate([bt.TS], REPLICATED, horizon=5, seeds=2, replicates=wrong)
    with pytest.raises(InvalidType, match="replicate"):
        bt.simulate([bt.TS], REPLICATED, horizon=5, seeds=2, replicates=1.5)  # type: ignore[arg-type]


def test_select_and_rename_keep_the_runs_as_they_are() -> None:
    runs = bt.simulate([bt.TS, bt.TSC, bt.UCT], REPLICATED, horizon=20, seeds=2)
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
    problem = bt.problems.bernoulli({"default": REPLICATED.instance(0).tree}, [0.1, 0.2, 0.6, 0.5])
    runs = bt.simulate(policies, problem, horizon=5, seeds=2)
    assert runs.built == {"deep": ("HTS", {"depth": 1}), "TSC": ("TSC", {})}  # a prior is neither a number nor a text
    runs.save(tmp_path / "runs.npz")
    assert bt.Runs.load(tmp_path / "runs.npz").built == runs.built
    assert runs.rename({"deep": "d"}).built["d"] == ("HTS", {"depth": 1})


def test_progress_may_be_a_function_of_the_share_that_is_done() -> None:
    seen: list[float] = []
    bt.simulate([bt.TS, Own], REPLICATED, horizon=200, seeds=4, replicates=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] >= 0
    assert seen[-1] == 1.0
    with pytest.raises(InvalidType, match="progress"):
        bt.simulate([bt.TS], REPLICATED, horizon=5, seeds=1, progress="yes")  # type: ignore[arg-type]
