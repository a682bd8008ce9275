"""The claims of the paper: how numbers decide them, on runs and instances that are made up."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditree.paper import claim_table
from banditree.paper import results as results_of
from banditree.paper.claim_table import (
    CLAIMS,
    FAILS,
    HOLDS,
    OPEN,
    STATISTICS,
    Claim,
    by_jackknife,
    examined_instances,
    judge,
    needed_errors,
    write_claims,
)
from banditree.paper.figures import FIGURES
from banditree.problems import bernoulli
from banditree.theory import cluster_plays
from banditree.tree import Tree
from tests.support.made_up_runs import MadeUp, results, runs, sweep

N = [25, 50, 100, 200, 400, 800]


def of_n(growth: Callable[[float], float], sd: float = 1.0) -> MadeUp:
    return results(_1c=sweep("n_arms", N, {"TS": [growth(n) for n in N]}, sd=sd))


def pair(a: float, b: float, sd: float = 1.0, **options: Any) -> MadeUp:
    return results(_2a=runs({"A": a, "B": b}, sd=sd, **options))


def ratios(here: float, there: float, sd: float = 1.0) -> MadeUp:
    return results(
        _2a=runs({"A": here, "B": 100.0}, sd=sd), _2b=runs({"A": there, "B": 100.0}, sd=sd, seeds=20, key="b")
    )


def grown(power: float, sd: float = 0.5) -> MadeUp:
    return results(_2a=runs({"A": 100.0}, sd=sd, powers={"A": power}))


def row(
    a: str, relation: str, b: str, statistic: str = "regret at T", margin: float = 1.0, figure: str = "2a"
) -> Claim:
    return Claim(figure, a, relation, b, "a sentence", statistic, margin)


LESS, BIG, SLIGHT = row("A", "<", "B"), row("B", ">", "A", margin=1.5), row("A", ">", "B", margin=0.85)
WIDER = row("A / B", ">", "A / B in 2b")
LINE = row("TS on N", "<", "TS on log N", "variance that a line leaves", figure="1c")
SQUARE = row("TS on N", "<", "TS on N²", "variance that a line leaves", figure="1c")
GAINED = "A from T/2 to T", "A from T/4 to T/2", "regret gained", 2**0.9
LINEAR, BENT = (row(GAINED[0], relation, *GAINED[1:]) for relation in ("><"))

CASES: list[tuple[Claim, str, MadeUp]] = [
    (LESS, HOLDS, pair(90, 100)),
    (LESS, FAILS, pair(100, 90)),
    (LESS, OPEN, pair(99, 100, sd=20)),
    (LESS, OPEN, pair(100, 100)),
    (BIG, HOLDS, pair(100, 160)),
    (BIG, FAILS, pair(100, 140)),
    (SLIGHT, HOLDS, pair(90, 100)),
    (SLIGHT, FAILS, pair(80, 100)),
    (WIDER, HOLDS, ratios(160, 120)),
    (WIDER, FAILS, ratios(120, 160)),
    (WIDER, OPEN, ratios(121, 120, sd=20)),
    (LINE, HOLDS, of_n(lambda n: 100 + n)),
    (LINE, FAILS, of_n(lambda n: 100 * math.log(n))),
    (LINE, OPEN, of_n(lambda n: 100 + n, sd=3000)),
    (SQUARE, HOLDS, of_n(lambda n: 100 + n)),
    (SQUARE, FAILS, of_n(lambda n: 100 + n**2 / 500)),
    (LINEAR, HOLDS, grown(1.0)),
    (LINEAR, FAILS, grown(0.5)),
    (BENT, HOLDS, grown(0.5)),
    (BENT, FAILS, grown(1.0)),
    (BENT, OPEN, grown(0.5, sd=400)),
    (row("A", ">", "B", "belief draws per step"), HOLDS, pair(9, 9, evaluations={"A": 100, "B": 20})),
    (row("A", ">", "B", "belief draws per step"), FAILS, pair(9, 9, evaluations={"A": 10, "B": 20})),
]


@pytest.mark.parametrize(("claim", "verdict", "made"), CASES, ids=[f"{claim}: {v}" for claim, v, _ in CASES])
def test_made_up_data_get_the_verdict_they_deserve(claim: Claim, verdict: str, made: MadeUp) -> None:
    outcome = claim.judge(made)
    assert outcome.verdict == verdict, outcome
    assert (outcome.errors > 0) == (verdict == HOLDS) or verdict == OPEN


ONE_FIGURE = [(claim, made) for claim, _, made in CASES if len(claim.figures) == 1]  # others may differ in seeds


@pytest.mark.parametrize(("claim", "made"), ONE_FIGURE, ids=[f"{claim}" for claim, _ in ONE_FIGURE])
def test_units_and_the_order_of_seeds_do_not_matter(claim: Claim, made: MadeUp) -> None:
    def mutated(each: Any) -> Any:
        order = np.random.default_rng(1).permutation(len(each.seeds))
        return replace(
            each,
            regret={name: 7.0 * regret[order] for name, regret in each.regret.items()},
            evaluations={name: 7.0 * count[order] for name, count in each.evaluations.items()},
        )

    changed = MadeUp({name: {label: mutated(each) for label, each in s.items()} for name, s in made.figures.items()})
    assert claim.judge(changed).errors == pytest.approx(claim.judge(made).errors, rel=1e-6)


def test_pairing_by_seed_sees_what_differences_between_instances_would_hide() -> None:
    hidden = runs({"A": 100.0, "B": 103.0}, shared=100.0)
    assert LESS.judge(results(_2a=hidden)).verdict == HOLDS
    apart = replace(hidden, regret={**hidden.regret, "B": hidden.regret["B"][::-1]})
    assert LESS.judge(results(_2a=apart)).verdict == OPEN


def test_growth_does_not_see_what_was_lost_at_the_start() -> None:
    made = grown(1.0)
    (of_figure,) = made.runs("2a").values()
    later = replace(of_figure, regret={"A": of_figure.regret["A"] + 1e4})
    assert LINEAR.judge(results(_2a=later)).errors == pytest.approx(LINEAR.judge(made).errors, rel=1e-6)


def test_one_seed_decides_nothing() -> None:
    assert needed_errors(1) == np.inf
    one = runs({"A": 90.0, "B": 100.0})
    alone = replace(one, seeds=(0,), regret={name: regret[:1] for name, regret in one.regret.items()})
    assert LESS.judge(results(_2a=alone)).verdict == OPEN
    assert WIDER.judge(results(_2a=alone, _2b=alone)).verdict == OPEN


@pytest.mark.parametrize(("seeds", "quantile"), [(3, 19.206), (5, 6.620), (25, 3.344), (101, 3.077)])
def test_what_is_needed_is_student_s_quantile(seeds: int, quantile: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert needed_errors(seeds) == pytest.approx(stats.t.ppf((1 + 0.9973) / 2, seeds - 1), rel=1e-3)
    assert needed_errors(seeds) == pytest.approx(quantile, abs=0.02)


def test_without_a_difference_a_claim_is_decided_as_rarely_as_it_says() -> None:
    samples = np.random.default_rng(0).standard_normal((20_000, 8))
    errors = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(8))
    bound = 4 * np.sqrt(0.0027 / len(samples))
    assert abs((np.abs(errors) > needed_errors(8)).mean() - 0.0027) < bound
    assert abs((np.abs(errors) > 3).mean() - 0.0027) > bound  # three standard errors would not do for eight seeds


def test_the_jackknife_agrees_with_the_spread_of_a_ratio() -> None:
    def ratio(means: Any) -> float:
        return float(means[0] / means[1])

    drawn = 10 + np.random.default_rng(3).standard_normal((4000, 40, 2))
    spread = np.std([ratio(sample.mean(axis=0)) for sample in drawn])
    by_seed = [by_jackknife(ratio, sample) for sample in drawn[:200]]
    assert np.mean([numbers.std(ddof=1) / np.sqrt(40) for numbers in by_seed]) == pytest.approx(spread, rel=0.06)
    assert [numbers.mean() for numbers in by_seed] == pytest.approx([ratio(s.mean(axis=0)) for s in drawn[:200]])


def test_the_greatest_depth_counts_where_settings_differ_in_depth() -> None:
    labels = [f"n_arms={n} depth={depth}" for n in N for depth in (0, 1)]
    made = {label: runs({"HTS": 1000.0}) for label in labels}
    made |= {f"n_arms={n} depth=1": runs({"HTS": 100 * math.log(n)}, key=f"{n}") for n in N}
    claim = row("HTS on log N", "<", "HTS on N", "variance that a line leaves", figure="1f")
    assert claim.judge(results(_1f=made)).verdict == HOLDS


# ---------------------------------------------------------------- the bound, and claims about instances


def played(plays: float) -> MadeUp:
    """Figure 1a at its sharpest setting, each sub-optimal cluster played this often."""
    return results(_1a={"distance=0.4": runs({"TSC": 9.0}, horizon=3000, clusters={0: 3000, 1: plays, 2: plays})})


def test_plays_are_compared_with_the_bound_of_the_instance() -> None:
    claim = next(claim for claim in CLAIMS if claim.b == "the bound at distance=0.4")
    instance = results_of.instance("1a", "distance=0.4", 0)
    assert instance.means is not None
    allowed = max(cluster_plays(instance.tree, instance.means).values()) * (math.log(3000) + math.log(math.log(3000)))
    assert claim.judge(played(0.9 * allowed)).verdict == HOLDS
    assert claim.judge(played(1.1 * allowed)).verdict == FAILS
    assert claim.judge(played(allowed)).b == pytest.approx(allowed)


def test_dominance_of_instances_is_counted() -> None:
    made = results(_1a=runs({"TS": 1.0}, seeds=7), _2a=runs({"TS": 1.0}, seeds=7), _1f=runs({"HTS": 1.0}, seeds=2))
    dominant, violated, hierarchical = (
        next(c for c in CLAIMS if c.figure == figure and c.statistic == "share of instances with dominance")
        for figure in ("1a", "2a", "1f")
    )
    assert dominant.judge(made).verdict == violated.judge(made).verdict == hierarchical.judge(made).verdict == HOLDS
    assert (dominant.judge(made).seeds, violated.judge(made).seeds) == (40, 7)
    assert replace(dominant, figure="2a").judge(made).verdict == FAILS
    assert replace(violated, figure="1a").judge(made).verdict == FAILS


def test_how_many_instances_are_examined() -> None:
    assert len(examined_instances("2a", 100)) == 25
    assert len(examined_instances("2a", 3)) == 3
    assert len(examined_instances("1f", 50)) == 5 * 8  # depths share their instances


def test_spread_by_hand_and_diameters_by_the_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    similar = next(claim for claim in CLAIMS if claim.statistic == "spread of expected rewards")
    made = results(_2a=runs({"TS": 1.0}, seeds=5), _2e=runs({"LinTS": 1.0}, seeds=5), _2f=runs({"LinTS": 1.0}, seeds=5))
    wide = next(claim for claim in CLAIMS if claim.statistic == "diameter of a cluster").judge(made)
    assert wide.verdict == HOLDS
    assert wide.a / wide.b == pytest.approx(5.0, rel=0.1)  # ε = 0.5 and ε = 0.1
    for means, verdict in (((0.1, 0.2, 0.8, 0.9), HOLDS), ((0.1, 0.9, 0.1, 0.9), FAILS)):
        drawn = bernoulli(Tree.from_labels([0, 0, 1, 1]), np.array(means)).instance(0)
        monkeypatch.setattr(claim_table, "examined_instances", lambda figure, seeds, drawn=drawn: [drawn] * seeds)
        outcome = similar.judge(made)
        assert outcome.verdict == verdict
        assert outcome.b == pytest.approx(np.std(means))


# ---------------------------------------------------------------- the table


def test_every_row_names_what_is_there() -> None:
    assert len({(claim.figure, str(claim), claim.statistic) for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.statistic in STATISTICS
        assert claim.relation in "<>"
        for figure, side in claim.sides:
            settings = {setting.label: setting for setting in FIGURES[figure].settings()}
            for part in side.split(" / ") if claim.statistic == "regret at T" else ():
                name, _, label = part.partition(" at ")
                assert name in settings[label].policies, claim


def test_only_what_was_run_is_judged(tmp_path: Path) -> None:
    made = results(
        unstructured_regret=runs({"TS": 100.0, "TSC": 120.0}, evaluations={"TS": 50.0, "TSC": 15.0}),
        _2e=runs({"LinTS": 200.0, "LinTSC": 95.0, "LinUCBC": 100.0}, evaluations={"LinTS": 900.0, "LinTSC": 60.0}),
    )
    verdicts = judge(made)
    assert {figure for verdict in verdicts for figure in verdict.claim.figures} == {"unstructured-regret", "2e"}
    write_claims(verdicts, tmp_path)
    rows = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert len(rows) == len(verdicts) == 6
    worse = next(row for row in rows if row["a"] == "TSC")
    assert (worse["figure"], worse["relation"], worse["b"], worse["verdict"]) == (
        "unstructured-regret",
        ">",
        "TS",
        HOLDS,
    )
    assert (worse["number_a"], worse["number_b"]) == pytest.approx((120, 100))
    cheaper = next(row for row in rows if row["statistic"] == "belief draws per step")
    assert cheaper["standard_errors"] is None  # infinite: exact
    lines = (tmp_path / "claims.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + len(rows)
    assert all(line.count("|") == 10 for line in lines)
