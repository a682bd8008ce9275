"""The paper's other instances, and the real one, do what the paper and our readings say."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from banditree.errors import InvalidType, InvalidValue
from banditree.problems import (
    Instance,
    Problem,
    Uniform,
    bumps,
    functions,
    linear,
    open_bandit,
    sine_kmeans,
    surface,
    unstructured,
)


def by_cluster(instance: Instance) -> dict[Any, list[Any]]:
    return dict(instance.tree.clusters)


# Smooth functions


def test_functions_at_points_computed_by_hand() -> None:
    assert functions.sine(0.0) == 0.5
    assert functions.sine(0.5) == pytest.approx((math.sin(6.5) * math.sin(13.5) + 1) / 2)
    assert functions.bumps(0.1) == pytest.approx((1 + math.exp(-0.8)) / 2)  # 0.8^2 / 0.8
    assert functions.bumps(0.9) == pytest.approx((math.exp(-12.8) + 1) / 2)  # 0.8^2 / 0.05
    assert functions.surface([0.2, 0.7]) == pytest.approx(0.5 + 0.2 * math.exp(-25) + 0.2)
    assert functions.surface([0.7, 0.2]) == pytest.approx(0.5 * math.exp(-25) + 0.2 + 0.2 * math.exp(-25))
    grid = np.linspace(0, 1, 1001)
    for values in (functions.sine(grid), functions.bumps(grid), functions.surface(np.stack([grid, grid], axis=1))):
        assert values.shape == (1001,)
        assert ((values >= 0) & (values <= 1)).all()


def test_sine_kmeans() -> None:
    instance = sine_kmeans(n_arms=100, n_clusters=10).instance(0)
    assert len(instance.tree.clusters) == 10
    assert instance.tree.depth == 1
    x = np.random.default_rng(0).random(100)  # the places are the first thing drawn
    np.testing.assert_array_equal(np.asarray(instance.means), functions.sine(x))
    ends = sorted((x[arms].min(), x[arms].max()) for arms in by_cluster(instance).values())
    assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_sine_kmeans_in_three_levels() -> None:
    tree = sine_kmeans(n_arms=300, n_clusters=4, depth=3).instance(0).tree
    assert tree.depth == 3
    assert len(tree.clusters) == 4
    below = [path[:2] for path in tree.paths()]
    assert len(set(below)) == 16


@pytest.mark.parametrize(("problem", "n_arms", "k"), [(surface(60, 6), 60, 6), (bumps(), 50, 5)])
def test_two_trees(problem: Problem, n_arms: int, k: int) -> None:
    instance = problem.instance(0)
    assert list(instance.trees) == ["kmeans", "ward"]
    assert len(instance.trees["kmeans"].clusters) == k
    assert instance.trees["kmeans"].depth == 1
    assert instance.trees["ward"].n_clusters == n_arms - 2
    assert set(np.diff(instance.trees["ward"].shape.start).tolist()) == {0, 2}


def test_surface_means() -> None:
    x = np.random.default_rng(4).random((60, 2))
    np.testing.assert_array_equal(np.asarray(surface(60, 6).instance(4).means), functions.surface(x))
    np.testing.assert_array_equal(
        np.asarray(bumps().instance(4).means), functions.bumps(np.random.default_rng(4).random(50))
    )


def test_smooth_problems_refuse() -> None:
    for make in (sine_kmeans, surface, bumps):
        with pytest.raises(InvalidValue, match="n_clusters=10 must be from 2 to 9"):
            make(10, 10)
        with pytest.raises(InvalidValue, match="n_clusters=1"):
            make(10, 1)
    with pytest.raises(InvalidValue, match="depth=0"):
        sine_kmeans(10, 3, depth=0)


# No structure, contexts, the real one


def test_unstructured() -> None:
    instance = unstructured().instance(0)
    assert [len(arms) for arms in by_cluster(instance).values()] == [5] * 10
    sizes = [len(arms) for arms in unstructured(11, 3).instance(0).tree.clusters.values()]
    assert sorted(sizes) == [3, 4, 4]
    means = np.concatenate([np.asarray(unstructured().instance(seed).means) for seed in range(40)])
    assert stats.kstest(means, "uniform").pvalue > 1e-4
    with pytest.raises(InvalidValue, match="n_clusters=12 must be from 2 to 11"):
        unstructured(11, 12)


def test_linear_spread_and_shares() -> None:
    """Within a cluster theta varies by spread^2, the centres by 1; arms are shared uniformly."""
    within: list[float] = []
    sizes = np.zeros(20)
    for seed in range(40):
        instance = linear(n_arms=400, n_clusters=20, spread=0.5).instance(seed)
        assert instance.theta is not None
        for cluster, arms in by_cluster(instance).items():
            sizes[int(cluster)] += len(arms)
            within += (instance.theta[arms].var(axis=0, ddof=1)).tolist()
    error = np.std(within) / math.sqrt(len(within))
    assert abs(np.mean(within) - 0.25) < 5 * error
    assert abs(np.mean(within) - 0.28) > 5 * error  # the test can tell
    assert stats.chisquare(sizes).pvalue > 1e-4


def test_linear_centres_are_standard_normal() -> None:
    centres = []
    for seed in range(30):
        instance = linear(n_arms=200, n_clusters=10, spread=0.0).instance(seed)
        assert instance.theta is not None
        centres += [instance.theta[arms[0]] for arms in by_cluster(instance).values()]
        assert all(np.ptp(instance.theta[arms], axis=0).max() == 0 for arms in by_cluster(instance).values())
    assert stats.kstest(np.concatenate(centres), "norm").pvalue > 1e-4


def test_linear_drops_empty_clusters_and_knows_its_parameters() -> None:
    problem = linear(n_arms=10, n_clusters=10, spread=0.1, dim=2, contexts="unit")
    assert min(len(problem.instance(seed).tree.clusters) for seed in range(5)) < 10
    instance = problem.instance(0)
    assert instance.dim == 2
    assert instance.rewards == Uniform()
    assert instance.contexts == "unit"


def test_linear_refuses() -> None:
    with pytest.raises(InvalidValue, match="spread=-1"):
        linear(10, 2, spread=-1)
    with pytest.raises(InvalidValue, match="dim=0"):
        linear(10, 2, spread=1, dim=0)
    with pytest.raises(InvalidValue, match="contexts='sphere' must be one of"):
        linear(10, 2, spread=1, contexts="sphere")
    with pytest.raises(InvalidValue, match="n_clusters=11"):
        linear(10, 11, spread=1)
    with pytest.raises(InvalidType, match="spread=None"):
        linear(10, 2, spread=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("campaign", "n_arms"), [("all", 80), ("men", 34), ("women", 46)])
def test_open_bandit(campaign: str, n_arms: int) -> None:
    instance = open_bandit(campaign).instance(0)
    assert sorted(map(int, instance.arms)) == list(range(n_arms))
    assert instance.tree.depth == 2
    assert instance.means is not None
    assert 0.0005 < instance.means.min() < instance.means.max() < 0.01


def test_open_bandit_by_hand() -> None:
    instance = open_bandit().instance(0)
    assert len(instance.tree.clusters) == 7
    assert instance.tree.n_clusters == 7 + 21
    assert instance.tree.path(1) == ("category-0", "sub-0", 1)
    assert instance.expected(1) == 8 / (8 + 3566)
    with pytest.raises(InvalidValue, match="campaign='kids' must be one of 'all', 'men', 'women'"):
        open_bandit("kids")
