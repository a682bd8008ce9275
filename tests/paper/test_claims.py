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

from banditree.paper.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    NOT_JUDGED,
    OPEN,
    PART,
    VERDICTS,
    Finding,
    Verdict,
    figure_1,
    instances,
    judge,
    judge_claim,
    write_claims,
)
from banditree.paper.claims.checks import (
    Check,
    Measured,
    Missing,
    bending,
    conclude,
    exponent,
    jackknife,
    mean,
    needed_errors,
    quarters,
)
from banditree.paper.claims.claim import Data
from banditree.paper.claims.instances import examined_instances
from banditree.paper.figures import DEFAULT, FIGURES
from banditree.paper.results import instance
from banditree.problems import bernoulli, strong_dominance
from banditree.simulation.runs import Runs
from banditree.tree import Tree
from tests.support.made_up_runs import MadeUp, depths, results, runs, sweep

D = [0.1, 0.2, 0.3, 0.4]
N = [25, 50, 100, 200, 400, 800]
K = [2, 5, 10, 20, 40]
SIZES = (16, 32, 64, 128, 256, 512)
LOUD = 300.0  # a spread that hides everything


def of_n(growth: Callable[[float], float], sd: float = 1.0) -> dict[str, Any]:
    return sweep("n_arms", N, {"TS": [growth(n) for n in N], "TSC": [50.0] * len(N)}, sd=sd)


def shrinking(ts: list[float], tsc: list[float]) -> dict[str, Any]:
    """The gap widens and the ratio falls."""
    return sweep("n_arms", N, {"TS": ts, "TSC": tsc})


def of_k(growth: Callable[[float], float], sd: float = 1.0) -> dict[str, Any]:
    return sweep("n_clusters", K, {"TS": [500.0] * len(K), "TSC": [growth(k) for k in K]}, sd=sd)


def of_a(ts: list[float], tsc: list[float], sd: float = 1.0) -> dict[str, Any]:
    return sweep("n_best", [2, 30, 60, 90], {"TS": ts, "TSC": tsc}, sd=sd)


def of_depth(flat: Callable[[int], float], full: Callable[[int], float], sd: float = 1.0) -> dict[str, Any]:
    return depths({n: [flat(n), (flat(n) + full(n)) / 2, full(n)] for n in SIZES}, sd=sd)


def five(tsc: float, other: float, tsmax: float, sd: float = 1.0) -> Any:
    return runs({"TSC": tsc, "UCBC": other, "TSMax": tsmax, "UCB1": other, "TS": other}, sd=sd)


def trees(tsc: float, two: float, three: float, uct: float, sd: float = 1.0) -> Any:
    return runs({"TSC": tsc, "HTS L=2": two, "HTS L=3": three, "UCT L=2": uct, "UCT L=3": uct}, sd=sd)


def linear(tsc: float, ucbc: float, ts: float = 200.0, sd: float = 1.0, key: str = "") -> Any:
    return runs({"LinTSC": tsc, "LinUCBC": ucbc, "LinTS": ts, "LinUCB": 200.0}, sd=sd, key=key)


def grown(hts: float, uct: float, tsc: float, sd: float = 0.5, **finals: float) -> Any:
    means = {"TSC": 100.0, "HTS": 100.0, "UCT": 100.0} | finals
    return runs(means, sd=sd, powers={"HTS": hts, "UCT": uct, "TSC": tsc})


def on_surface(*args: float, **options: float) -> MadeUp:
    return results(surface_regret=grown(*args, **options))


def on_bumps(*args: float, **options: float) -> MadeUp:
    return results(bumps_regret=grown(*args, **options))


def on_both(bad: float, good: float, sd: float = 0.5) -> MadeUp:
    """HTS where its tree is bad and where it is good, beside a TSC at 100."""
    options = {"hts": 0.5, "uct": 0.5, "tsc": 0.5, "sd": sd}
    return results(surface_regret=grown(**options, HTS=bad), bumps_regret=grown(**options, HTS=good))


def draws(**evaluations: float) -> Any:
    return runs({"TS": 9.0, "TSC": 9.0}, evaluations=evaluations)


def pair(ts: float, tsc: float, sd: float = 1.0) -> MadeUp:
    return results(unstructured_regret=runs({"TS": ts, "TSC": tsc}, sd=sd))


def falling(*tsc: float, sd: float = 1.0) -> MadeUp:
    return results(_1a=sweep("distance", D, {"TS": [500.0] * 4, "TSC": list(tsc)}, sd=sd))


def rising(*tsc: float, sd: float = 1.0) -> MadeUp:
    return results(_1b=sweep("width", D, {"TS": [500.0] * 4, "TSC": list(tsc)}, sd=sd))


CASES: list[tuple[str, str, Callable[[], MadeUp]]] = [
    ("d-falls", HOLDS, lambda: falling(400, 300, 200, 100)),
    ("d-falls", PART, lambda: falling(400, 300, 320, 100)),  # falls on the whole, rises once
    ("d-falls", FAILS, lambda: falling(100, 200, 300, 400)),
    ("d-falls", OPEN, lambda: falling(400, 300, 200, 100, sd=3 * LOUD)),
    ("w-rises", HOLDS, lambda: rising(100, 200, 300, 400)),
    ("w-rises", PART, lambda: rising(100, 200, 300, 280)),
    ("w-rises", PART, lambda: rising(100, 200, 199.3, 198.6)),  # down by steps too small to be seen one by one
    ("w-rises", FAILS, lambda: rising(400, 300, 200, 100)),
    ("w-rises", OPEN, lambda: rising(100, 200, 300, 400, sd=3 * LOUD)),
    ("ts-linear-in-n", HOLDS, lambda: results(_1c=of_n(lambda n: 100 + n))),
    ("ts-linear-in-n", FAILS, lambda: results(_1c=of_n(lambda n: 100 * np.log(n)))),
    ("ts-linear-in-n", FAILS, lambda: results(_1c=of_n(lambda n: 100 + n**2 / 500))),  # bent the other way
    ("ts-linear-in-n", FAILS, lambda: results(_1c=of_n(lambda n: 100 + n + 300 * np.cos(n)))),  # hardly a line
    ("ts-linear-in-n", FAILS, lambda: results(_1c=of_n(lambda n: 900 - 100 * np.log(n)))),
    ("ts-linear-in-n", OPEN, lambda: results(_1c=of_n(lambda n: 100 + n, sd=9 * LOUD))),
    ("tsc-linear-in-k", HOLDS, lambda: results(_1d=of_k(lambda k: 50 + 9 * k))),
    ("tsc-linear-in-k", FAILS, lambda: results(_1d=of_k(lambda k: 50 * np.log(k)))),
    ("tsc-linear-in-a", HOLDS, lambda: results(_1e=of_a([500.0] * 4, [20.0, 300.0, 600.0, 900.0]))),
    ("tsc-linear-in-a", FAILS, lambda: results(_1e=of_a([500.0] * 4, [20.0, 400.0, 480.0, 500.0]))),
    ("tsc-linear-in-a", OPEN, lambda: results(_1e=of_a([500.0] * 4, [20.0, 300.0, 600.0, 900.0], sd=9 * LOUD))),
    ("great-reduction", HOLDS, lambda: results(_1c=of_n(lambda n: 60 + n))),
    ("great-reduction", PART, lambda: results(_1c=of_n(lambda n: 50 + n / 100))),  # more and more, never much
    ("great-reduction", PART, lambda: results(_1c=shrinking([100, 120, 140, 160, 180, 200], [20, 30, 40, 50, 60, 75]))),
    ("great-reduction", FAILS, lambda: results(_1c=of_n(lambda n: 70 - n / 100))),
    ("great-reduction", OPEN, lambda: results(_1c=of_n(lambda n: 71 + n / 200, sd=12.0))),
    ("gain-vanishes", HOLDS, lambda: results(_1e=of_a([500.0] * 4, [100.0, 200.0, 400.0, 495.0]))),
    ("gain-vanishes", PART, lambda: results(_1e=of_a([500.0] * 4, [100.0, 150.0, 200.0, 250.0]))),  # half is left
    ("gain-vanishes", FAILS, lambda: results(_1e=of_a([500.0] * 4, [600.0, 500.0, 400.0, 300.0]))),
    ("gain-vanishes", OPEN, lambda: results(_1e=of_a([500.0] * 4, [450.0, 460.0, 470.0, 480.0], sd=100.0))),
    ("depth-helps-more", HOLDS, lambda: results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 40.0))),
    ("depth-helps-more", PART, lambda: results(_1f=of_depth(lambda n: 900.0 - n, lambda n: 40.0))),  # less and less
    ("depth-helps-more", FAILS, lambda: results(_1f=of_depth(lambda n: 40.0, lambda n: 50.0 + n))),
    ("depth-helps-more", OPEN, lambda: results(_1f=of_depth(lambda n: 400.0, lambda n: 390.0, sd=90.0))),
    ("log-n", HOLDS, lambda: results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 40 * np.log2(n)))),
    ("log-n", PART, lambda: results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 5 * np.log2(n) ** 2.5))),
    ("log-n", FAILS, lambda: results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 40.0 + n))),
    ("log-n", OPEN, lambda: results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 40 * np.log2(n), sd=6 * LOUD))),
    ("tsc-best-2a", HOLDS, lambda: results(_2a=five(100, 200, 150))),
    ("tsc-best-2a", PART, lambda: results(_2a=five(100, 200, 90))),
    ("tsc-best-2a", FAILS, lambda: results(_2a=five(300, 200, 90))),
    ("tsc-best-2a", OPEN, lambda: results(_2a=five(100, 200, 101, sd=10.0))),
    ("tsc-best-2b", HOLDS, lambda: results(_2b=five(100, 200, 150))),
    ("tsc-best-2b", FAILS, lambda: results(_2b=five(300, 200, 90))),
    ("big-gap-2b", HOLDS, lambda: results(_2a=five(100, 200, 110), _2b=five(100, 200, 160))),
    ("big-gap-2b", PART, lambda: results(_2a=five(100, 200, 110), _2b=five(100, 200, 140))),
    ("big-gap-2b", FAILS, lambda: results(_2a=five(100, 200, 140), _2b=five(100, 130, 120))),
    ("big-gap-2b", OPEN, lambda: results(_2a=five(100, 200, 110), _2b=five(100, 200, 151, sd=20.0))),
    ("hts-slightly-better", HOLDS, lambda: results(_2c=trees(100, 95, 92, 200))),
    ("hts-slightly-better", PART, lambda: results(_2c=trees(100, 95, 60, 200))),  # better, and not slightly
    ("hts-slightly-better", FAILS, lambda: results(_2c=trees(100, 110, 120, 200))),
    ("hts-slightly-better", OPEN, lambda: results(_2c=trees(100, 99, 98, 200, sd=20.0))),
    ("hts-tsc-beat-uct", HOLDS, lambda: results(_2c=trees(100, 95, 92, 200))),
    ("hts-tsc-beat-uct", PART, lambda: results(_2c=trees(100, 95, 220, 200))),
    ("hts-tsc-beat-uct", FAILS, lambda: results(_2c=trees(100, 95, 92, 50))),
    ("hts-tsc-beat-uct", OPEN, lambda: results(_2c=trees(100, 95, 199, 200, sd=10.0))),
    ("contexts-clear", HOLDS, lambda: results(_2d=linear(90, 99), _2e=linear(90, 99), _2f=linear(90, 99))),
    ("contexts-clear", PART, lambda: results(_2d=linear(90, 99), _2e=linear(195, 99), _2f=linear(90, 99))),
    ("contexts-clear", FAILS, lambda: results(_2d=linear(195, 9), _2e=linear(195, 9), _2f=linear(250, 9))),
    ("contexts-clear", OPEN, lambda: results(_2d=linear(90, 9), _2e=linear(90, 9), _2f=linear(181, 9, sd=30.0))),
    ("lintsc-slightly-better", HOLDS, lambda: results(_2e=linear(95, 100), _2f=linear(90, 100))),
    ("lintsc-slightly-better", PART, lambda: results(_2e=linear(95, 100), _2f=linear(110, 100))),
    ("lintsc-slightly-better", FAILS, lambda: results(_2e=linear(105, 100), _2f=linear(110, 100))),
    ("lintsc-slightly-better", OPEN, lambda: results(_2e=linear(95, 100), _2f=linear(99.5, 100))),
    ("lintsc-gains-with-size", HOLDS, lambda: results(_2d=linear(100, 100), _2e=linear(100, 120, key="e"))),
    ("lintsc-gains-with-size", FAILS, lambda: results(_2d=linear(100, 120), _2e=linear(100, 100, key="e"))),
    ("lintsc-gains-with-size", OPEN, lambda: results(_2d=linear(100, 100), _2e=linear(100, 100.2, key="e"))),
    ("surface-hts-linear", HOLDS, lambda: on_surface(1.0, 0.5, 0.5)),
    ("surface-hts-linear", FAILS, lambda: on_surface(0.5, 1.0, 0.5)),
    ("surface-hts-linear", OPEN, lambda: on_surface(1.0, 1.0, 0.5, sd=400.0)),
    ("surface-uct-linear", HOLDS, lambda: on_surface(0.5, 1.0, 0.5)),
    ("surface-uct-linear", FAILS, lambda: on_surface(1.0, 0.5, 0.5)),
    ("surface-uct-linear", OPEN, lambda: on_surface(1.0, 1.0, 0.5, sd=400.0)),
    ("surface-tsc-sublinear", HOLDS, lambda: on_surface(1.0, 1.0, 0.5)),
    ("surface-tsc-sublinear", FAILS, lambda: on_surface(1.0, 1.0, 1.0)),
    ("surface-tsc-sublinear", OPEN, lambda: on_surface(1.0, 1.0, 0.5, sd=400.0)),
    ("surface-full-tree-too-deep", HOLDS, lambda: on_surface(1.0, 1.0, 0.5, HTS=120.0)),
    ("surface-full-tree-too-deep", FAILS, lambda: on_surface(1.0, 1.0, 0.5, HTS=90.0)),
    ("surface-full-tree-too-deep", OPEN, lambda: on_surface(1.0, 1.0, 0.5, HTS=101.0, sd=20.0)),
    ("bumps-hts-sublinear", HOLDS, lambda: on_bumps(0.5, 1.0, 0.5)),
    ("bumps-hts-sublinear", FAILS, lambda: on_bumps(1.0, 1.0, 0.5)),
    ("bumps-hts-sublinear", OPEN, lambda: on_bumps(0.5, 1.0, 0.5, sd=400.0)),
    ("bumps-hts-better", HOLDS, lambda: on_bumps(0.5, 1.0, 0.5, HTS=80.0)),
    ("bumps-hts-better", FAILS, lambda: on_bumps(0.5, 1.0, 0.5, HTS=120.0)),
    ("bumps-hts-better", OPEN, lambda: on_bumps(0.5, 1.0, 0.5, HTS=99.0, sd=20.0)),
    ("quality-matters-for-hts", HOLDS, lambda: on_both(bad=120.0, good=80.0)),
    ("quality-matters-for-hts", FAILS, lambda: on_both(bad=80.0, good=120.0)),
    ("quality-matters-for-hts", OPEN, lambda: on_both(bad=101.0, good=100.0, sd=20.0)),
    ("unstructured-tsc-worse", HOLDS, lambda: pair(100, 120)),
    ("unstructured-tsc-worse", FAILS, lambda: pair(120, 100)),
    ("unstructured-tsc-worse", OPEN, lambda: pair(100, 101, sd=20.0)),
    ("cheaper-steps", HOLDS, lambda: results(_2a=draws(TS=100, TSC=20), _2b=draws(TS=1000, TSC=60))),
    ("cheaper-steps", PART, lambda: results(_2a=draws(TS=100, TSC=20), _2b=draws(TS=50, TSC=60))),
    ("cheaper-steps", FAILS, lambda: results(_2a=draws(TS=10, TSC=20))),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "verdict", "made"), CASES, ids=[f"{claim}: {v}" for claim, v, _ in CASES])
def test_made_up_data_get_the_verdict_they_deserve(claim: str, verdict: str, made: Callable[[], MadeUp]) -> None:
    outcome = judge_claim(CLAIMS[claim], made())
    assert outcome.verdict == verdict, outcome.sentence
    assert outcome.margin is not None
    if verdict == HOLDS:
        assert outcome.margin > 0
    if verdict in (PART, FAILS):
        assert outcome.margin < 0
        assert "not true that" in outcome.sentence
    assert ("do not decide" in outcome.sentence) == (verdict == OPEN)
    assert outcome.sentence.endswith(".")


@pytest.mark.parametrize(("claim", "verdict", "made"), CASES, ids=[f"{claim}: {v}" for claim, v, _ in CASES])
def test_units_and_the_order_of_seeds_do_not_matter(claim: str, verdict: str, made: Callable[[], MadeUp]) -> None:
    order = np.random.default_rng(1).permutation(30)

    def mutated(each: Any) -> Any:
        return replace(
            each,
            regret={name: 7.0 * regret[order] for name, regret in each.regret.items()},
            evaluations={name: 7.0 * count[order] for name, count in each.evaluations.items()},
        )

    original = made()
    changed = MadeUp({key: {label: mutated(each) for label, each in s.items()} for key, s in original.figures.items()})
    before, after = (judge_claim(CLAIMS[claim], data).finding for data in (original, changed))
    assert before is not None
    assert after is not None
    for one, two in zip(before.checks, after.checks, strict=True):
        assert two.margin == pytest.approx(one.margin, rel=1e-6)


def test_every_claim_with_runs_is_tested_with_every_verdict_it_can_get() -> None:
    tested = {claim: {verdict for name, verdict, _ in CASES if name == claim} for claim in CLAIMS}
    elsewhere = {"lemma-cluster-plays", "cheaper-steps"} | {name for name in CLAIMS if name.startswith("instances-")}
    for claim, verdicts in tested.items():
        assert claim in elsewhere or {HOLDS} < verdicts, claim
    assert {verdict for _, verdict, _ in CASES} == set(VERDICTS)


# ---------------------------------------------------------------- the lemma


def played(horizon: int, plays: float) -> Any:
    """Figure 1a at its sharpest setting, each sub-optimal cluster played this often."""
    verdict = runs({"TS": 9.0, "TSC": 9.0}, horizon=horizon, clusters={0: horizon, 1: plays, 2: plays})
    return results(_1a={"distance=0.4": verdict})


def bound(horizon: int) -> float:
    problem = next(s.problem for s in FIGURES["1a"].settings() if s.label == "distance=0.4")
    return figure_1.bound_coefficient(problem) * figure_1.log_terms(horizon)


@pytest.mark.parametrize(("share", "verdict"), [(0.5, HOLDS), (1.5, PART), (1.0, OPEN)])
def test_the_lemma_by_the_level_of_plays(share: float, verdict: str) -> None:
    outcome = judge_claim(CLAIMS["lemma-cluster-plays"], played(300, share * bound(300)))
    assert outcome.verdict == verdict, outcome.sentence


def test_the_lemma_fails_where_plays_grow_faster_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    true = figure_1.bound_coefficient
    monkeypatch.setattr(figure_1, "bound_coefficient", lambda problem: true(problem) / 20)
    verdict = judge_claim(CLAIMS["lemma-cluster-plays"], played(300, 0.5 * bound(300) * 20))
    assert verdict.verdict == FAILS, verdict.sentence


def test_the_coefficient_is_that_of_the_divergence_by_hand() -> None:
    # d = 0.4, w* = 0.1: D(0.1, 0.5) = 0.1 log 0.2 + 0.9 log 1.8
    problem = next(s.problem for s in FIGURES["1a"].settings() if s.label == "distance=0.4")
    assert figure_1.log_terms(math.exp(math.e)) == pytest.approx(math.e + 1)
    assert figure_1.bound_coefficient(problem) == pytest.approx(1 / (0.1 * np.log(0.2) + 0.9 * np.log(1.8)))


# ---------------------------------------------------------------- what is missing, what varies


def test_without_data_nothing_is_judged() -> None:
    outcome = judge(MadeUp())
    assert [verdict.id for verdict in outcome] == list(CLAIMS)
    assert {verdict.verdict for verdict in outcome} == {NOT_JUDGED}
    assert all("no runs of" in verdict.sentence and verdict.margin is None for verdict in outcome)


def test_with_some_figures_the_others_say_what_is_missing() -> None:
    outcome = {verdict.id: verdict for verdict in judge(pair(100, 120))}
    assert outcome["unstructured-tsc-worse"].verdict == HOLDS
    assert outcome["big-gap-2b"].missing == "2b"
    assert outcome["cheaper-steps"].verdict != NOT_JUDGED


def test_a_policy_or_settings_that_were_not_run_are_missing() -> None:
    assert (
        judge_claim(CLAIMS["bumps-hts-better"], results(bumps_regret=runs({"TSC": 1.0}))).missing
        == "HTS in bumps-regret"
    )
    few = results(_1a=sweep("distance", D[:2], {"TSC": [9.0, 8.0]}), _1f=depths({16: [3.0, 2.0]}))
    assert judge_claim(CLAIMS["d-falls"], few).missing == "three settings of 1a"
    assert judge_claim(CLAIMS["log-n"], few).missing == "three settings of 1f"


def test_half_the_horizon_is_judged_where_it_was_written_down() -> None:
    crossing = runs({"TS": 100.0, "TSC": 120.0}, powers={"TS": 0.1, "TSC": 1.0})  # TSC is ahead at T/2
    verdict = judge_claim(CLAIMS["unstructured-tsc-worse"], results(unstructured_regret=crossing))
    assert (verdict.verdict, verdict.half) == (HOLDS, FAILS)
    assert Data(results(_2a=crossing), ("2a",), half=True).horizon == 200  # of 400
    cut = {name: regret[:, -1:] for name, regret in crossing.regret.items()}
    at_end = replace(crossing, times=crossing.times[-1:], regret=cut)
    assert judge_claim(CLAIMS["unstructured-tsc-worse"], results(unstructured_regret=at_end)).half is None


def test_the_reading_decides_only_between_decided_verdicts() -> None:
    def with_variant(full: Callable[[int], float], sd: float) -> Verdict:
        made = results(_1f=of_depth(lambda n: 50.0 + n, lambda n: 40.0))
        made.figures["1f", "even"] = of_depth(lambda n: 400.0, full, sd=sd)
        return judge_claim(CLAIMS["depth-helps-more"], made)

    other = with_variant(lambda n: 410.0 + n, 1.0)
    assert (other.verdict, other.variants["even"].verdict, other.reading_decides) == (HOLDS, FAILS, True)
    assert "with the reading 'even' it does not hold" in other.sentence
    unclear = with_variant(lambda n: 390.0, 90.0)
    assert (unclear.variants["even"].verdict, unclear.reading_decides) == (OPEN, False)
    assert "reading" not in unclear.sentence


def test_an_open_verdict_says_what_another_reading_decides() -> None:
    made = results(_2e=linear(95, 100), _2f=linear(99.5, 100))
    made.figures |= {(name, "unit"): {"": linear(110, 100)} for name in ("2e", "2f")}
    made.figures |= {(name, "uniform"): {"": linear(99.5, 100)} for name in ("2e", "2f")}
    verdict = judge_claim(CLAIMS["lintsc-slightly-better"], made)
    assert (verdict.verdict, verdict.reading_decides, verdict.otherwise) == (OPEN, False, {"unit": FAILS})
    assert verdict.sentence.endswith(" With the reading 'unit' it does not hold.")
    assert verdict.to_dict()["other_readings"] == {"unit": FAILS}


def test_claims_json_has_everything_and_no_number_that_json_lacks(tmp_path: Path) -> None:
    made = pair(100, 120)
    made.figures |= results(_2a=draws(TS=100, TSC=20)).figures
    path = write_claims(judge(made), tmp_path)
    verdict = {item["id"]: item for item in json.loads(path.read_text(encoding="utf-8"))}
    assert list(verdict) == list(CLAIMS)
    worse = verdict["unstructured-tsc-worse"]
    assert worse["verdict"] == HOLDS
    assert worse["checks"][0]["margin"] == pytest.approx(worse["margin"])
    assert worse["numbers"] == pytest.approx({"TS": 100, "TSC": 120})
    assert verdict["cheaper-steps"]["checks"][0]["count"]
    assert worse["checks"][0]["core"]
    assert verdict["big-gap-2b"]["missing"]
    assert all(item["quote"] and item["statistic"] and item["sentence"] for item in verdict.values())


def test_every_figure_of_a_claim_is_in_the_table_of_figures() -> None:
    assert {name for claim in CLAIMS.values() for name in claim.figures} <= set(FIGURES)


# ---------------------------------------------------------------- how numbers decide


def worse(made: Runs) -> Verdict:
    """The verdict on "TSC is worse than TS"."""
    return judge_claim(CLAIMS["unstructured-tsc-worse"], results(unstructured_regret=made))


def test_pairing_by_seed_sees_what_differs_between_instances_would_hide() -> None:
    hidden = runs({"TS": 100.0, "TSC": 103.0}, shared=100.0)
    assert worse(hidden).verdict == HOLDS
    apart = replace(hidden, regret={**hidden.regret, "TSC": hidden.regret["TSC"][::-1]})
    assert worse(apart).verdict == OPEN


@pytest.mark.parametrize(("seeds", "quantile"), [(3, 19.206), (5, 6.620), (25, 3.344), (101, 3.077)])
def test_what_is_needed_is_student_s_quantile(seeds: int, quantile: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert needed_errors(seeds) == pytest.approx(stats.t.ppf((1 + 0.9973) / 2, seeds - 1), rel=1e-3)
    assert needed_errors(seeds) == pytest.approx(quantile, abs=0.02)


def test_the_extreme_of_many_numbers_needs_more() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert needed_errors(50, n_compared=36) == pytest.approx(stats.t.ppf(1 - 0.0027 / 72, 49), rel=1e-3)
    assert Check("it is", Measured(3.5, 1.0, 1000)).result == "yes"
    assert Check("it is", Measured(3.5, 1.0, 1000, n_compared=36)).result == "open"


def test_one_seed_decides_nothing() -> None:
    assert needed_errors(1) == np.inf
    for proof in (True, False):
        assert Check("it is", mean(np.array([5.0])), proof=proof).result == "open"
    alone = Finding((Check("it is", mean(np.array([5.0]))),), "It is 5", {}, seeds=1)
    assert alone.verdict == OPEN
    assert "one seed cannot" in alone.sentence
    assert jackknife(lambda means: float(means[0]), np.array([[5.0]])).value == 5.0
    assert np.isnan(jackknife(lambda means: float(means[0]), np.array([[5.0]])).se)


def test_without_a_difference_a_check_decides_as_rarely_as_it_says() -> None:
    samples = np.random.default_rng(0).standard_normal((20_000, 8))
    decided = np.mean([Check("it is", mean(sample)).result != "open" for sample in samples])
    error = np.sqrt(0.0027 / len(samples))
    assert abs(decided - 0.0027) < 4 * error
    at_three = np.abs(samples.mean(axis=1)) / (samples.std(axis=1, ddof=1) / np.sqrt(8)) > 3
    assert abs(at_three.mean() - 0.0027) > 4 * error  # three standard errors would not do for eight seeds


def test_the_jackknife_agrees_with_the_spread_of_a_ratio() -> None:
    rng = np.random.default_rng(3)

    def ratio(means: Any) -> float:
        return float(means[0] / means[1])

    drawn = 10 + rng.standard_normal((4000, 40, 2))
    spread = np.std([ratio(sample.mean(axis=0)) for sample in drawn])
    verdict = np.mean([jackknife(ratio, sample).se for sample in drawn[:200]])
    assert verdict == pytest.approx(spread, rel=0.06)


def test_exact_numbers_decide_by_their_side() -> None:
    assert Check("more", Measured(1.0, 0.0, 5)).result == "yes"
    assert Check("more", Measured(-1.0, 0.0, 5)).result == "no"
    assert Check("less", Measured(-1.0, 0.0, 5), above=False).margin == np.inf


def test_conclusions() -> None:
    yes, no, unclear = (Check("it is", Measured(z, 1.0, 1000)) for z in (9.0, -9.0, 0.0))
    guard = Check("no more than that", Measured(0.0, 1.0, 1000), proof=False)
    broken = Check("no more than that", Measured(-9.0, 1.0, 1000), proof=False)
    aside = Check("nearer to a line", Measured(9.0, 1.0, 1000), core=False)
    assert conclude([yes, guard]) == conclude([yes, aside]) == HOLDS
    assert conclude([no, aside]) == FAILS
    assert conclude([yes, no]) == conclude([yes, broken]) == conclude([yes, no, unclear]) == PART
    assert conclude([no]) == conclude([no, unclear]) == conclude([no, guard]) == FAILS
    assert conclude([unclear]) == conclude([yes, unclear]) == conclude([unclear, guard]) == OPEN


def test_growth_does_not_see_what_was_lost_at_the_start() -> None:
    times = np.arange(1, 101) * 100
    line = np.outer(np.ones(5), times / 10.0)
    assert exponent(times, line + 1e4) == pytest.approx(1.0)
    assert exponent(times, 1e4 + np.sqrt(line)) == pytest.approx(0.5)
    for power in (0.3, 0.9):
        assert bending(times, 1e4 + line**power, power).value == pytest.approx(0.0, abs=1e-6)
    assert bending(times, line + 1e4, 0.9).value > 0 > bending(times, line**0.8 + 1e4, 0.9).value
    assert exponent(times, np.zeros((5, 100))) == -np.inf
    with pytest.raises(Missing, match="T/4"):
        quarters(times[-2:], line[:, -2:])


def test_how_many_seeds_would_tell() -> None:
    close = worse(runs({"TS": 100.0, "TSC": 101.0}, sd=5.0))
    assert "would)" in close.sentence
    check = close.finding.checks[0] if close.finding else None
    assert check is not None
    assert check.seeds_to_decide == pytest.approx(30 * (3 / check.margin) ** 2, rel=0.01)
    assert "no feasible number of seeds" in worse(runs({"TS": 100.0, "TSC": 100.0})).sentence


# ---------------------------------------------------------------- claims about instances


def test_dominance_of_instances_is_counted() -> None:
    made = results(_1a=runs({"TS": 1.0}, seeds=7), _2a=runs({"TS": 1.0}, seeds=7))

    def count(*figures: str, expected: str = "all") -> Finding:
        return instances._count_dominance(Data(made, figures), expected=expected)

    assert count("1a").verdict == HOLDS
    assert count("1a", "2a").verdict == PART
    assert count("2a").verdict == FAILS
    assert count("2a", expected="none").verdict == HOLDS
    assert count("1a", expected="none").verdict == FAILS
    numbers = count("1a", "2a").numbers
    assert (numbers["instances of 1a"], numbers["instances of 1a where it holds"]) == (40, 40)
    assert (numbers["instances of 2a"], numbers["instances of 2a where it holds"]) == (7, 0)
    assert "none of the 7" in count("2a").facts


def test_how_many_instances_are_examined_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int]] = []
    monkeypatch.setattr(instances, "instance", lambda figure, label, seed, variant: drawn.append((figure, seed)))

    def seeds(figure: str, n: int, variant: str = DEFAULT) -> list[int]:
        drawn.clear()
        made = MadeUp({(figure, variant): {"": runs({"TS": 1.0}, seeds=n)}})
        list(examined_instances(Data(made, (figure,), variant), figure))
        return [seed for _, seed in drawn]

    assert seeds("2a", 100) == list(range(100))  # all that the run met
    assert seeds("2b", 100) == list(range(25))
    assert seeds("2b", 3) == [0, 1, 2]
    assert seeds("1a", 50) == list(range(5)) * 8
    assert len(seeds("1f", 50)) == 5 * 8  # depths share their instances
    assert len(seeds("1a", 50, "suboptimal")) == 5 * 8
    with pytest.raises(Missing, match="other instances in 2a"):
        seeds("2a", 100, "posterior")


def test_a_variant_that_changes_a_policy_alone_is_not_judged_on_instances() -> None:
    made = results(_2a=runs({"TS": 1.0}, seeds=2), _2b=runs({"TS": 1.0}, seeds=2))
    made.figures |= {(name, "global"): runs for (name, _), runs in made.figures.items()}
    verdict = judge_claim(CLAIMS["instances-violate-dominance"], made)
    assert (verdict.verdict, verdict.variants) == (HOLDS, {})


def test_widths_and_distances_are_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(**{f"_{name}": runs({"TS": 1.0}, seeds=2) for name in instances.SWEEPS})
    assert judge_claim(CLAIMS["instances-width-and-distance"], there).verdict == HOLDS
    other = strong_dominance(width=0.11).instance(0)
    monkeypatch.setattr(instances, "instance", lambda *_: other)
    assert judge_claim(CLAIMS["instances-width-and-distance"], there).verdict == FAILS


def test_similar_rewards_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(_2a=runs({"TS": 1.0}), _2b=runs({"TS": 1.0}))
    tree = Tree.from_labels([0, 0, 1, 1])

    def judged(*means: float) -> Verdict:
        drawn = bernoulli(tree, np.array(means)).instance(0)
        monkeypatch.setattr(instances, "instance", lambda *_: drawn)
        return judge_claim(CLAIMS["instances-similar-rewards"], there)

    assert judged(0.1, 0.2, 0.8, 0.9).verdict == HOLDS
    apart = judged(0.1, 0.9, 0.1, 0.9)
    assert apart.verdict == FAILS
    assert apart.finding is not None
    assert apart.finding.numbers["spread within clusters in 2a"] == pytest.approx(1.0)  # clusters say nothing


def test_diameters_by_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(_2e=runs({"LinTS": 1.0}, seeds=5), _2f=runs({"LinTS": 1.0}, seeds=5))
    verdict = judge_claim(CLAIMS["instances-diameter"], there)
    assert verdict.verdict == HOLDS
    assert verdict.finding is not None
    wide, narrow = verdict.finding.numbers.values()
    assert wide / narrow == pytest.approx(5.0, rel=0.1)  # ε = 0.5 and ε = 0.1
    monkeypatch.setattr(instances, "instance", lambda figure, label, seed, _: instance("2d", "", seed))
    assert judge_claim(CLAIMS["instances-diameter"], there).verdict == OPEN


def test_hierarchical_dominance_of_instances() -> None:
    there = results(_1f=runs({"HTS": 1.0}))
    assert judge_claim(CLAIMS["instances-hierarchical-dominance"], there).verdict == HOLDS
