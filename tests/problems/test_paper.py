"""The paper's problems: means, widths, distances and trees of their instances, held against the paper's words."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from banditree.errors import InvalidType, InvalidValue
from banditree.problems import (
    Instance,
    Problem,
    Uniform,
    bumps,
    functions,
    hierarchical_dominance,
    linear,
    open_bandit,
    sine_kmeans,
    strong_dominance,
    surface,
    unstructured,
)


def cluster_means(instance: Instance) -> dict[object, list[float]]:
    return {name: sorted(map(instance.expected, arms)) for name, arms in instance.tree.clusters.items()}


# Strong dominance


@settings(max_examples=60, deadline=None)
@given(
    n_arms=st.integers(2, 200),
    n_clusters=st.integers(2, 30),
    n_best=st.integers(1, 60),
    width=st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.3, 0.4]),
    distance=st.sampled_from([0.0, 0.05, 0.1]),
    count=st.sampled_from(["all", "suboptimal"]),
    seed=st.integers(0, 2**32),
)
def test_strong_dominance_keeps_its_promises(
    n_arms: int, n_clusters: int, n_best: int, width: float, distance: float, count: str, seed: int
) -> None:
    n_clusters, n_best = min(n_clusters, n_arms), min(n_best, n_arms)
    instance = strong_dominance(n_arms, n_clusters, n_best, width, distance, count).instance(seed)
    clusters = cluster_means(instance)
    assert instance.tree.n_arms == n_arms
    assert instance.tree.depth == 1
    best = clusters.pop(0)
    assert len(clusters) <= n_clusters - (count == "all")
    assert len(best) == n_best
    assert best[-1] == 0.6 == instance.best()
    assert best[0] == (0.6 if n_best == 1 else 0.6 - width)
    top, bottom = 0.6 - width - distance, max(0.5 - width - distance, 0.0)
    for means in clusters.values():
        assert means[-1] == top
        assert means[0] == (top if len(means) == 1 else bottom)
        if n_best > 1:
            assert best[0] - means[-1] == pytest.approx(distance, abs=1e-12)


def test_strong_dominance_shares_arms_uniformly() -> None:
    """Chi-square of 90 arms in 9 clusters over 100 instances; a control in which one cluster gets twice the share."""
    sizes = np.zeros(10)
    for seed in range(100):
        for cluster, arms in strong_dominance().instance(seed).tree.clusters.items():
            sizes[int(cluster)] += len(arms)
    assert sizes[0] == 1000
    assert stats.chisquare(sizes[1:]).pvalue > 1e-4
    control = np.random.default_rng(0).multinomial(9000, [0.2] + [0.1] * 8)
    assert stats.chisquare(control).pvalue < 1e-4


def test_strong_dominance_drops_empty_clusters() -> None:
    trees = [strong_dominance(n_arms=12, n_clusters=10, n_best=2).instance(seed).tree for seed in range(20)]
    assert all(arms for tree in trees for arms in tree.clusters.values())
    assert min(len(tree.clusters) for tree in trees) < 10


def test_strong_dominance_draws_the_inner_arms_uniformly() -> None:
    inner: list[float] = []
    outer: list[float] = []
    for seed in range(60):
        clusters = cluster_means(strong_dominance().instance(seed))
        inner += clusters.pop(0)[1:-1]
        outer += [mean for means in clusters.values() for mean in means[1:-1]]
    assert stats.kstest(inner, stats.uniform(0.5, 0.1).cdf).pvalue > 1e-4
    assert stats.kstest(outer, stats.uniform(0.3, 0.1).cdf).pvalue > 1e-4
    assert stats.kstest(outer, stats.uniform(0.3, 0.12).cdf).pvalue < 1e-4  # the test can tell


def test_strong_dominance_counts_as_told() -> None:
    assert len(strong_dominance(n_arms=2000, n_clusters=5).instance(0).tree.clusters) == 5
    assert len(strong_dominance(n_arms=2000, n_clusters=5, count="suboptimal").instance(0).tree.clusters) == 6
    assert len(strong_dominance(n_arms=5, n_clusters=3, n_best=5).instance(0).tree.clusters) == 1


@pytest.mark.parametrize(("width", "distance"), [(0.4, 0.1), (0.1, 0.4), (0.0, 0.5), (0.5, 0.0), (0.35, 0.15)])
def test_strong_dominance_reaches_the_edge_of_its_grid(width: float, distance: float) -> None:
    means = strong_dominance(width=width, distance=distance).instance(0).means
    assert means is not None
    assert means.min() >= 0
    assert means.min() == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_arms": 5}, "n_clusters=10 must be from 2 to 5"),
        ({"n_best": 101}, "n_best=101 must be from 1 to 100"),
        ({"n_best": 0}, "n_best=0"),
        ({"n_clusters": 1}, "n_clusters=1 must be from 2"),
        ({"n_clusters": 0, "count": "suboptimal"}, "n_clusters=0 must be from 1"),
        ({"n_arms": 1}, "n_arms=1 must be at least 2"),
        ({"width": 0.45, "distance": 0.1}, "below 0"),
        ({"width": -0.1}, "width=-0.1 must be at least 0"),
        ({"distance": math.nan}, "distance=nan"),
        ({"count": "both"}, "count='both' must be one of 'all', 'suboptimal'"),
    ],
)
def test_strong_dominance_refuses(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        strong_dominance(**parameters)  # type: ignore[arg-type]


# Hierarchical dominance


@pytest.mark.parametrize("n_arms", [2, 3, 4, 5, 7, 16, 30, 100, 128])
def test_hierarchical_dominance_is_balanced_and_dominated(n_arms: int) -> None:
    instance = hierarchical_dominance(n_arms).instance(0)
    tree, means = instance.tree, instance.means
    assert means is not None
    assert ((means >= 0.1) & (means <= 0.8)).all()
    assert tree.depth == math.ceil(math.log2(n_arms)) - 1
    spans: dict[tuple[str | int, ...], list[float]] = {}
    for path, mean in zip(tree.paths(), means.tolist(), strict=True):
        for level in range(1, len(path)):
            spans.setdefault(path[:level], []).append(mean)
    for path, inside in spans.items():
        assert len(inside) >= 2
        assert abs(len(inside) - n_arms / 2 ** len(path)) < 1
        for sister, others in spans.items():
            if sister != path and sister[:-1] == path[:-1]:
                assert max(inside) < min(others) or max(others) < min(inside)


def test_hierarchical_dominance_of_a_power_of_two_is_the_full_binary_tree() -> None:
    tree = hierarchical_dominance(64).instance(0).tree
    assert tree.depth == 5
    assert tree.n_clusters == 2 + 4 + 8 + 16 + 32
    assert set(np.diff(tree.shape.start).tolist()) == {0, 2}


@pytest.mark.parametrize("depth", range(6))
def test_the_top_levels_are_a_cut_of_the_full_tree(depth: int) -> None:
    full = hierarchical_dominance(64).instance(3)
    top = hierarchical_dominance(64, "top", depth).instance(3)
    assert top.tree == full.tree.cut(depth)
    np.testing.assert_array_equal(np.asarray(top.means), np.asarray(full.means))
    assert top.tree.depth == depth


@pytest.mark.parametrize(
    ("levels", "depth", "sizes"),
    [
        ("top", 1, {2: 32}),
        ("bottom", 1, {32: 2}),
        ("bottom", 2, {16: 4}),
        ("bottom", 0, {}),
        ("even", 1, {8: 8}),  # sqrt N clusters
        ("even", 2, {4: 16}),  # levels 2 and 4 of 6
        ("even", 5, {2: 32}),
    ],
)
def test_which_levels_stay(levels: str, depth: int, sizes: dict[int, int]) -> None:
    tree = hierarchical_dominance(64, levels=levels, depth=depth).instance(0).tree
    assert tree.depth == depth
    clusters = tree.clusters
    assert {len(clusters): len(next(iter(clusters.values())))} == sizes if sizes else clusters == {}


@settings(max_examples=60, deadline=None)
@given(n_arms=st.integers(2, 70), data=st.data())
def test_evenly_spaced_levels_are_all_different(n_arms: int, data: st.DataObject) -> None:
    full = hierarchical_dominance(n_arms).instance(0).tree
    depth = data.draw(st.integers(0, full.depth))
    for levels in ("even", "bottom", "top"):
        tree = hierarchical_dominance(n_arms, levels, depth).instance(0).tree
        assert tree.depth == depth
        assert tree.arms == full.arms


def test_hierarchical_means_are_uniform() -> None:
    means = hierarchical_dominance(2048).instance(0).means
    assert stats.kstest(means, stats.uniform(0.1, 0.7).cdf).pvalue > 1e-4
    assert stats.kstest(means, stats.uniform(0.1, 0.8).cdf).pvalue < 1e-4


def test_hierarchical_dominance_refuses() -> None:
    with pytest.raises(InvalidValue, match=r"depth=6 .* 5"):
        hierarchical_dominance(64, depth=6)
    with pytest.raises(InvalidType, match="levels='even' needs depth"):
        hierarchical_dominance(64, levels="even")
    with pytest.raises(InvalidValue, match="levels='middle'"):
        hierarchical_dominance(64, levels="middle")
    with pytest.raises(InvalidValue, match="n_arms=1"):
        hierarchical_dominance(1)
    with pytest.raises(InvalidType, match="n_arms=True"):
        hierarchical_dominance(True)


# ---------------------------------------------------------------- smooth functions of a position


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
