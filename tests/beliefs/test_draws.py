"""Draws that share a number, with one stray at most: their probabilities by brute force, and by counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import banditree as bt
from banditree.base.arrays import Floats
from banditree.beliefs.adaptive import AdaptiveRows
from banditree.beliefs.adaptive_kinds import AROUND_STEP
from banditree.beliefs.draws import (
    CHANCES,
    INDEPENDENT,
    NUMBERS,
    Coupling,
    Draws,
    coupled_wins,
    coupling,
    drawn,
    normal_below,
    pick,
)


def some_draws(seed: int, n: int) -> Draws:
    rng = np.random.default_rng(seed)
    sds = np.exp(rng.normal(-0.5, 1.0, (2, n)))
    return Draws(rng.normal(size=n), sds[0], rng.normal(0.3, 1.0, n), sds[1], np.exp(rng.normal(-2, 2, n)))


def brute_force(arms: Draws, coupled: Coupling) -> Floats:
    """Sum the density of the winner over a fine grid, for every value of the shared number."""
    ends = np.concatenate([arms.mean, arms.stray_mean]), np.concatenate([arms.sd, arms.stray_sd])
    x = np.linspace((ends[0] - 12 * ends[1]).min(), (ends[0] + 12 * ends[1]).max(), 200_001)
    further, odds = stats.norm(arms.stray_mean[:, None], arms.stray_sd[:, None]), arms.odds[:, None]
    some = 1 + (odds * further.cdf(x)).sum(axis=0)
    wins = np.zeros(len(arms.mean))
    for z, chance in zip(coupled.numbers, coupled.chances, strict=True):
        each = stats.norm((arms.mean + coupled.shared * z * arms.sd)[:, None], (coupled.own * arms.sd)[:, None])
        below = np.maximum(each.cdf(x), 1e-300)
        density = below.prod(axis=0) * (each.pdf(x) / below * some + odds * further.pdf(x))
        wins += chance * density.sum(axis=1) * (x[1] - x[0])
    return np.asarray(wins / (1 + arms.odds.sum()))


@pytest.mark.parametrize("coupled", [coupling(5, 4.0), coupling(1000, 4.0), INDEPENDENT], ids=["5", "1000", "plain"])
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_those_of_brute_force(seed: int, coupled: Coupling) -> None:
    arms = some_draws(seed, 5)
    if not coupled.odds:
        arms = arms._replace(odds=np.zeros(5))
    expected = brute_force(arms, coupled)
    assert expected.sum() == pytest.approx(1, abs=1e-5)
    assert np.abs(coupled_wins(arms, np.ones(5), coupled) - expected).max() < 1e-6


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_classes_are_their_members(seed: int, n: int) -> None:
    arms, size = some_draws(seed, n), np.random.default_rng(seed).integers(1, 4, n)
    coupled = coupling(int(size.sum()), 4.0)
    together = coupled_wins(arms, size.astype(float), coupled)
    apart = coupled_wins(Draws(*(np.repeat(part, size) for part in arms)), np.ones(size.sum()), coupled)
    assert (together > 0).all()
    assert size @ together == pytest.approx(1)
    assert np.abs(np.repeat(together, size) - apart).max() < 1e-7


def test_draws_follow_the_probabilities() -> None:
    """The control: not those of independent draws, nor those without a stray."""
    arms, rng = some_draws(4, 6), np.random.default_rng(1)
    coupled = coupling(6, 4.0)
    n = 40_000
    counts = np.bincount([drawn(arms, coupled, rng).argmax() for _ in range(n)], minlength=6)

    def fits(chances: Floats) -> bool:
        return bool(stats.chisquare(counts, n * chances / chances.sum()).pvalue > 1e-6)

    assert fits(coupled_wins(arms, np.ones(6), coupled))
    assert not fits(coupled_wins(arms, np.ones(6), INDEPENDENT))
    assert not fits(coupled_wins(arms._replace(odds=np.zeros(6)), np.ones(6), coupled))


def test_the_shared_number_has_the_moments_of_a_normal_one() -> None:
    assert CHANCES.sum() == pytest.approx(1)
    for power, moment in ((1, 0), (2, 1), (4, 3), (6, 15), (10, 945), (18, 34_459_425)):
        assert (CHANCES * NUMBERS**power).sum() == pytest.approx(moment, abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 10**6])
def test_the_highest_draw_is_at_most_a_standard_deviation_too_high(n: int) -> None:
    """The highest of n independent draws is at most sqrt(2 ln n) standard deviations above their mean, on average."""
    shared, own, odds, *_ = coupling(n, 4.0)
    assert shared**2 + own**2 == pytest.approx(1)
    assert own * np.sqrt(2 * np.log(n)) < 1
    assert odds * n == pytest.approx(4)


def test_picks_by_weight() -> None:
    weights = np.array([1.0, 0.0, 3.0])
    assert [pick(weights, u) for u in (0.0, 0.2499, 0.2501, 0.999999, 1.0)] == [0, 0, 2, 2, 2]


def test_normals_to_eleven_digits() -> None:
    z = np.linspace(-8.9, 8.9, 1001)
    below, density = normal_below(z)
    assert below == pytest.approx(stats.norm.cdf(z), rel=1e-9)
    assert density == pytest.approx(stats.norm.pdf(z), rel=1e-10)


def test_no_arm_is_passed_over_that_could_win() -> None:
    """The native engine keeps a bound on the draws of many arms while their cluster's mean stays within a step.

    It is computed at the upper end of the step, for a variance of the cluster up to a 32nd larger, with 3% of the
    standard deviation on top. So no mean or standard deviation within the step may be beyond it.
    """
    rows: Any = bt.ATS(bt.Tree(5), rng=1)._state.rows
    assert isinstance(rows, AdaptiveRows)
    rng = np.random.default_rng(1)
    n = 200_000
    odds = rng.uniform(-9, 9, n)
    k, plays, spread = (low * (high / low) ** rng.random(n) for low, high in ((1, 3e5), (0.5, 1e5), (1e-7, 0.5)))
    total = np.minimum(rng.binomial(plays.astype(int) + 1, 1 / (1 + np.exp(-odds - rng.normal(size=n)))), plays)

    def draws(odds: Floats, spread: Floats) -> tuple[Floats, Floats]:
        share = k / (k + plays)
        mean, variance = share / (1 + np.exp(-odds)) + total / (k + plays), 1 / (k + plays + 1) + share**2 * spread
        mean_of_draw, sd_of_draw = rows.drawn(mean, variance)
        return mean_of_draw, sd_of_draw

    at, wide = draws(odds + AROUND_STEP / 2, spread)
    for below in (0.0, AROUND_STEP / 2, AROUND_STEP):
        for fewer in (1.0, 1 / 1.04):
            mean, sd = draws(odds + AROUND_STEP / 2 - below, fewer * spread)
            assert (mean <= at + 0.03 * wide).all()
            assert (sd <= 1.01 * wide).all()
            assert (sd >= 0.96 * wide).all()
