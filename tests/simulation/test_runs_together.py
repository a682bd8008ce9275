"""Joining runs, data frames, LaTeX, and times on a log axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.report.tables import Table

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
        ({"horizon": 50}, "different times"),
        ({"problem": bt.problems.strong_dominance()}, "different problems"),
    ],
)
def test_what_does_not_fit_is_told(others: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        runs("TS").join(runs("TS", **others))


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
