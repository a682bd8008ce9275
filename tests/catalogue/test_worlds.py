"""From runs in worlds to a chance and an interval: by hand, in known distributions, and on catalogues we know."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.stats

from banditree.catalogue import Catalogue, advise, inspect
from banditree.catalogue.comparison import OverWorlds, share_of_luck
from banditree.policy.engines import engine
from banditree.problems import bernoulli
from banditree.simulation import simulate
from banditree.tree import Tree

# By hand


def test_without_luck_the_worlds_are_themselves() -> None:
    """Four worlds, runs that agree: a fifth world is below the k-th smallest with probability k / 5."""
    worlds = OverWorlds.of(np.repeat([[4.0], [-1.0], [2.0], [1.0]], 3, axis=1))
    assert worlds.luck == 0
    assert worlds.values.tolist() == [-1, 1, 2, 4]
    assert [worlds.below(x) for x in (-1, 1, 2, 4)] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert worlds.below(0) == pytest.approx(0.3)  # half way from the first to the second
    assert worlds.quantile(0.5) == 1.5
    assert [worlds.quantile(p) for p in (0.2, 0.7, 0.8)] == pytest.approx([-1, 3, 4])


def test_beyond_the_last_world_the_tail_is_students() -> None:
    """Median 1.5, last world below at -1: with 3 degrees of freedom 20% lie below -0.978 and 2.5% below -3.182."""
    worlds = OverWorlds(np.array([-1.0, 1.0, 2.0, 4.0]), 0.0)
    t = scipy.stats.t(3)
    assert worlds.quantile(0.025) == pytest.approx(1.5 - 2.5 * t.ppf(0.025) / t.ppf(0.2))
    assert worlds.quantile(0.975) == pytest.approx(1.5 + 2.5 * t.ppf(0.975) / t.ppf(0.8))
    assert worlds.below(-6) == pytest.approx(t.cdf(7.5 / 2.5 * t.ppf(0.2)))
    for p in (0.001, 0.025, 0.2, 0.37, 0.6, 0.9, 0.999):
        assert worlds.below(worlds.quantile(p)) == pytest.approx(p)


def test_from_39_worlds_on_the_interval_is_between_worlds() -> None:
    values = np.arange(39.0) ** 2
    worlds = OverWorlds(values, 0.0)
    assert (worlds.quantile(0.025), worlds.quantile(0.975)) == (0.0, 38.0**2)
    assert OverWorlds(values[:38], 0.0).quantile(0.025) < 0


def test_equal_worlds_and_ties() -> None:
    same = OverWorlds.of(np.full((5, 2), 3.0))
    assert (same.quantile(0.025), same.quantile(0.975)) == (3.0, 3.0)
    assert (same.below(0.0), same.below(3.0), same.below(4.0)) == (0.0, 0.5, 1.0)
    tied = OverWorlds(np.array([-2.0, 0.0, 0.0, 0.0, 5.0]), 0.0)
    assert tied.below(0.0) == 0.5  # 2, 3 and 4 of 6
    stuck = OverWorlds(np.array([0.0, 0.0, 0.0, 0.0, 5.0]), 0.0)
    assert stuck.below(-1.0) == 0.0


def test_luck_is_taken_out_of_world_means() -> None:
    """World means 0 and 10 over and over: variance 25 * 40/39, of which runs that differ by 2 make 2/2."""
    centres = np.tile([0.0, 10.0], 20)
    worlds = OverWorlds.of(centres[:, None] + [-1.0, 1.0])
    among = 25 * 40 / 39
    assert worlds.luck == pytest.approx(1 / among)
    scale = math.sqrt(1 - worlds.luck * 39 / 40)
    assert worlds.values[[0, -1]] == pytest.approx([5 - 5 * scale, 5 + 5 * scale])
    assert worlds.values.mean() == pytest.approx(5)


@pytest.mark.parametrize(("among", "noise", "worlds"), [(1.0, 1.0, 8), (0.3, 1.0, 20), (3.0, 1.0, 5), (50.0, 1.0, 100)])
def test_the_share_of_luck_is_the_mean_of_a_gamma_cut_off_at_1(among: float, noise: float, worlds: int) -> None:
    a = (worlds - 1) / 2
    known = scipy.stats.gamma(a, scale=noise / (a * among))
    expected = known.expect(lambda b: b, lb=0, ub=1, conditional=True, points=[known.mean()])
    assert share_of_luck(among, noise, worlds) == pytest.approx(expected, rel=1e-6)


def test_the_share_of_luck_at_its_ends() -> None:
    assert share_of_luck(5.0, 0.0, 10) == 0
    assert share_of_luck(0.0, 1.0, 10) == pytest.approx(4.5 / 5.5)  # density b^3.5: mean 4.5 / 5.5
    assert share_of_luck(1e9, 1.0, 10) == pytest.approx(1e-9)
    assert share_of_luck(1e-9, 1.0, 10) == pytest.approx(4.5 / 5.5)


# In known distributions


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Much saved in few worlds and a little lost in some: Gamma with shape 3, 5% below 0. Its deviation is 1.7."""
    return rng.gamma(3.0, 1.0, n) - LOST


LOST = float(scipy.stats.gamma(3.0).ppf(0.05))


@pytest.mark.parametrize(
    ("worlds", "runs", "luck"), [(100, 2, 0.5), (100, 4, 1.7), (40, 4, 1.0), (20, 2, 0.5), (8, 2, 0.5)]
)
def test_a_further_world_falls_as_often_inside_as_is_said(worlds: int, runs: int, luck: float) -> None:
    """Coverage of the 95% interval and the mean of the stated chance, over 400 data sets, in a skewed distribution.

    Exact without luck and with 39 worlds or more; the bound allows what luck and few worlds may cost besides.
    """
    rng, trials, covered, chances = np.random.default_rng(worlds + runs), 400, 0.0, []
    for _ in range(trials):
        result = OverWorlds.of(skewed(rng, worlds)[:, None] + rng.normal(0, luck, (worlds, runs)))
        fresh = skewed(rng, 500)
        covered += float(((fresh > result.quantile(0.025)) & (fresh < result.quantile(0.975))).mean()) / trials
        chances.append(1 - result.below(0.0))
    assert covered == pytest.approx(0.95, abs=0.025)
    assert 0.95 - (0.035 if worlds >= 20 else 0.07) < np.mean(chances) < 0.96  # few worlds claim less, never more


def test_a_symmetric_interval_calls_the_same_case_undecided() -> None:
    """The negative control: mean minus two deviations is far below 0 where 97% of the worlds are above."""
    values = skewed(np.random.default_rng(0), 200) + 0.2
    assert values.mean() - 1.96 * values.std() < -0.5
    worlds = OverWorlds.of(values[:, None] + np.zeros(2))
    assert 1 - worlds.below(0.0) == pytest.approx(scipy.stats.gamma(3.0).sf(LOST - 0.2), abs=0.035)
    assert worlds.quantile(0.025) > -0.2


def test_the_interval_of_worlds_that_are_all_alike_is_that_of_the_mean() -> None:
    """All luck, 100 worlds of 4 runs: the interval is far narrower than runs differ, and holds the truth."""
    rng, held, widths = np.random.default_rng(3), 0, []
    for _ in range(200):
        result = OverWorlds.of(1.0 + rng.normal(0, 1, (100, 4)))
        low, high = result.quantile(0.025), result.quantile(0.975)
        held += low < 1 < high
        widths.append(high - low)
    assert held / 200 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200)
    assert np.mean(widths) < 0.5 * 2 * 1.96 * 0.5  # half the width of the world means' own spread


# On catalogues we know


def drawn(rng: np.random.Generator) -> tuple[Catalogue, np.ndarray]:
    """A catalogue of the kind that the model of counts describes, and its true means."""
    tree = Tree({c: [f"{c}{i}" for i in range(6)] for c in "abcd"})
    means = np.concatenate([rng.beta(20 * m, 20 * (1 - m), 6) for m in rng.beta(2, 4, 4)])
    plays = rng.integers(20, 80, 24)
    return Catalogue(tree, plays, rng.binomial(plays, means)), means


@pytest.mark.skipif(engine() != "native", reason="ten minutes on the readable engine")
def test_chances_and_intervals_hold_on_catalogues_whose_truth_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 catalogues, the true saving from 100 runs each: intervals hold it, and chances are as frequent as said."""
    monkeypatch.setattr("banditree.catalogue.advice.inspect", partial(inspect, worlds=1))  # it has no part in them
    inside, right, claimed, n = 0, 0.0, 0.0, 60
    for seed in range(n):
        catalogue, means = drawn(np.random.default_rng([seed, 1]))
        advice = advise(catalogue, horizon=200, policies=["TSC"], seeds=20, rng=seed)
        truth = simulate(
            {item.label: item.factory for item in advice.candidates},
            bernoulli(catalogue.tree, means),
            horizon=200,
            seeds=100,
            rng=seed,
            checkpoints=1,
        )
        result, saved = advice.against_flat, -truth.compare("TSC", "TS").difference
        inside += result.interval[0] < saved < result.interval[1]
        claimed += max(result.chance, 1 - result.chance)
        right += (saved > 0) == (result.chance > 0.5)
    assert inside / n >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / n)
    assert right / n == pytest.approx(claimed / n, abs=3 * math.sqrt(0.25 / n))
