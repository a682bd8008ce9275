"""The statistics behind the verdicts: confidence, the jackknife, shapes, and how checks make a conclusion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from banditree.paper.claims import CLAIMS, FAILS, HOLDS, OPEN, PART, Verdict, judge_claim
from banditree.paper.claims.checks import (
    Check,
    Finding,
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
from banditree.simulation.runs import Runs
from tests.support.made_up import results, runs


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
    alone = Finding((Check("it is", mean(np.array([5.0]))),), "It is 5", {}, seeds=1, horizon=10)
    assert alone.sentence == "It is 5; these seeds do not decide whether it is (one seed cannot)."
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
    found = np.mean([jackknife(ratio, sample).se for sample in drawn[:200]])
    assert found == pytest.approx(spread, rel=0.06)


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
