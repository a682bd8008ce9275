"""Trees out of features."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

from banditree.errors import InvalidType, InvalidValue, MissingExtra
from banditree.tree import Tree
from banditree.tree.clustering import LINKAGES, agglomerative, kmeans


def groups(tree: Tree) -> list[list[Any]]:
    return list(tree.clusters.values())


def inertia(x: NDArray[np.float64], tree: Tree) -> float:
    """Sum of squared distances to the centre of the own cluster; x (arms, features), arms 0, 1, ...

    Rounded, for the same clusters in another order must not count as different.
    """
    return round(float(sum(((x[arms] - x[arms].mean(axis=0)) ** 2).sum() for arms in groups(tree))), 9)


def test_kmeans_finds_groups_that_are_far_apart() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(6, size=200)
    corners = np.array([[0, 0], [0, 9], [9, 0], [9, 9], [20, 0], [0, 20]])
    tree = kmeans(corners[truth] + rng.normal(0, 0.3, (200, 2)), branching=6, depth=1, rng=1)
    assert sorted(groups(tree)) == sorted(np.flatnonzero(truth == k).tolist() for k in range(6))
    assert list(tree.clusters) == list(range(6))
    assert [arms[0] for arms in groups(tree)] == sorted(arms[0] for arms in groups(tree))  # numbered as they come


@pytest.mark.parametrize(("n", "features", "k"), [(40, 1, 5), (300, 3, 12), (700, 2, 9)])
def test_every_arm_is_with_the_nearest_centre(n: int, features: int, k: int) -> None:
    x = np.random.default_rng(n).random((n, features))
    tree = kmeans(x, branching=k, depth=1, rng=2)
    assert len(tree.clusters) == k
    centres = np.array([x[arms].mean(axis=0) for arms in groups(tree)])  # (k, features)
    distance = np.sqrt(((x[:, None] - centres) ** 2).sum(axis=2))  # (arms, k)
    own = np.empty(n, np.intp)
    for cluster, arms in enumerate(groups(tree)):
        own[arms] = cluster
    # scikit-learn stops when the centres have moved by less than sqrt(tol * variance) in all; both ends may have moved.
    slack = 2 * np.sqrt(1e-4 * x.var(axis=0).mean())
    assert (distance[np.arange(n), own] <= distance.min(axis=1) + slack).all()


def test_on_a_line_clusters_are_intervals() -> None:
    x = np.random.default_rng(5).random(400)
    tree = kmeans(x, branching=7, depth=2, rng=3)
    for cut in (tree.cut(1), tree):
        ranges: dict[tuple[Any, ...], tuple[float, float]] = {}
        for path, value in zip(cut.paths(), x, strict=True):
            low, high = ranges.get(path[:-1], (value, value))
            ranges[path[:-1]] = (min(low, value), max(high, value))
        ends = sorted(ranges.values())
        assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_clusters_are_split_until_they_are_small_or_deep_enough() -> None:
    x = np.random.default_rng(1).random(300)
    deep = kmeans(x, branching=4, depth=3, rng=0)
    assert deep.depth == 3
    assert kmeans(x, branching=4, depth=0, rng=0) == Tree(300)
    assert kmeans(x, branching=300, depth=2, rng=0) == Tree(300)
    whole = kmeans(x, branching=4, depth=50, rng=0)
    sizes: dict[Any, int] = {}
    for path in whole.paths():
        for level in range(len(path)):
            sizes[path[:level]] = sizes.get(path[:level], 0) + 1
    parents = {path[:level] for path in whole.paths() for level in range(len(path) - 1)}
    assert all((size > 4) == (node in parents) for node, size in sizes.items())


def test_starts_drawn_together_have_the_law_of_scikit_learn() -> None:
    """One start a fit, so that nothing hides the starts: the inertias of 200 fits, ours against scikit-learn's."""
    x = np.random.default_rng(8).random((60, 1))
    ours = [inertia(x, kmeans(x, branching=8, depth=1, rng=seed, n_init=1)) for seed in range(200)]

    def theirs(init: str) -> list[float]:
        with threadpool_limits(1):
            fits = [KMeans(8, init=init, n_init=1, random_state=seed).fit(x) for seed in range(200)]
        return [inertia(x, Tree.from_labels(fit.labels_)) for fit in fits]

    assert stats.ks_2samp(ours, theirs("k-means++")).pvalue > 1e-3
    assert stats.ks_2samp(ours, theirs("random")).pvalue < 1e-6  # the test can tell


def test_more_starts_find_better_clusters() -> None:
    x = np.random.default_rng(3).random((200, 2))
    one = [inertia(x, kmeans(x, branching=20, depth=1, rng=seed, n_init=1)) for seed in range(10)]
    ten = [inertia(x, kmeans(x, branching=20, depth=1, rng=seed)) for seed in range(10)]
    assert np.mean(ten) < np.mean(one)


def test_the_same_rng_gives_the_same_tree() -> None:
    x = np.random.default_rng(0).random((150, 2))
    assert kmeans(x, branching=5, rng=4) == kmeans(x, branching=5, rng=4)
    assert kmeans(x, branching=5, rng=4) != kmeans(x, branching=5, rng=5)
    sequence = np.random.SeedSequence(9)
    assert kmeans(x, branching=5, rng=sequence) == kmeans(x, branching=5, rng=np.random.SeedSequence(9))
    stream = np.random.default_rng(4)
    assert kmeans(x, branching=5, rng=stream) != kmeans(x, branching=5, rng=stream)


def test_arms_keep_their_names_and_order() -> None:
    names = [f"item-{i}" for i in range(30)]
    x = np.random.default_rng(0).random(30)
    assert kmeans(x, branching=3, arms=names).arms == tuple(names)
    assert agglomerative(x, arms=iter(names)).arms == tuple(names)
    assert kmeans(x, branching=3, arms=np.arange(30) + 5).arms == tuple(range(5, 35))


@settings(max_examples=40, deadline=None)
@given(
    points=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    scale=st.sampled_from([1.0, 1e-200, 1e-320, 1e200, 1e308 / 5]),
    branching=st.integers(2, 6),
)
def test_points_alike_make_fewer_clusters_and_no_noise(points: list[int], scale: float, branching: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = kmeans(np.array(points) * scale, branching=branching, depth=2, rng=0)
    assert tree.arms == tuple(range(len(points)))
    if len(points) <= branching or len(set(points)) == 1:
        assert tree == Tree(len(points))
    else:
        assert len(tree.clusters) == min(branching, len(set(points)))
        if len(set(points)) <= branching:
            assert all(len({points[arm] for arm in arms}) == 1 for arms in groups(tree))


def test_points_that_rounding_cannot_tell_apart() -> None:
    x = np.concatenate([np.arange(20) * 1e-170, np.arange(20) * 1e-170 + 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = kmeans(x, branching=15, depth=1, rng=0)
    assert tree.n_arms == 40
    assert all((np.array(arms) < 20).all() or (np.array(arms) >= 20).all() for arms in groups(tree))


def test_threads_are_as_before() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    kmeans(np.random.default_rng(0).random(50), branching=4, rng=0)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_agglomerative_is_a_full_binary_tree() -> None:
    x = np.random.default_rng(0).random((60, 2))
    for linkage in LINKAGES:
        tree = agglomerative(x, linkage=linkage)
        assert tree.n_arms == 60
        assert tree.n_clusters == 58
        children = np.diff(tree.shape.start)
        assert set(children.tolist()) == {0, 2}


def test_agglomerative_merges_the_nearest_first() -> None:
    tree = agglomerative([0.0, 10.0, 0.1, 10.3, 5.5])
    assert {frozenset(arms) for arms in groups(tree)} in (
        {frozenset({0, 2, 4}), frozenset({1, 3})},
        {frozenset({0, 2}), frozenset({1, 3, 4})},
    )
    assert tree.path(0)[:-1] == tree.path(2)[:-1]


def test_one_arm_or_two() -> None:
    assert kmeans([3.0]) == agglomerative([3.0]) == Tree(1)
    assert kmeans([3.0, 4.0]) == agglomerative([3.0, 4.0]) == Tree(2)
    assert agglomerative([1.0, 1.0, 1.0]).n_arms == 3


@pytest.mark.parametrize("cluster", [kmeans, agglomerative])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, float("nan"), 2.0], r"X\[1, 0\] is nan"),
        ([[1.0, 2.0], [3.0, float("inf")]], r"X\[1, 1\] is inf"),
        ([], "shape"),
        (np.zeros((3, 0)), "shape"),
        (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
        (5.0, "shape"),
        (["a", "b"], "numbers"),
        ([[1.0, 2.0], [3.0]], "rows of equal length"),
        (None, "finite|shape|numbers"),
    ],
)
def test_bad_features(cluster: Any, x: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        cluster(x)


def test_bad_parameters() -> None:
    x = [1.0, 2.0, 3.0]
    with pytest.raises(InvalidValue, match="2 arms for 3 rows"):
        kmeans(x, arms=["a", "b"])
    with pytest.raises(InvalidValue, match="'a' appears more than once"):
        agglomerative(x, arms=["a", "b", "a"])
    with pytest.raises(InvalidValue, match="branching=1"):
        kmeans(x, branching=1)
    with pytest.raises(InvalidType, match=r"branching=2\.5"):
        kmeans(x, branching=2.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="depth=-1"):
        kmeans(x, depth=-1)
    with pytest.raises(InvalidValue, match="n_init=0"):
        kmeans(x, n_init=0)
    with pytest.raises(InvalidValue, match="linkage='nearest' must be one of 'ward'"):
        agglomerative(x, linkage="nearest")


@pytest.mark.parametrize("absent", ["sklearn", "threadpoolctl"])
def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[cluster\]'") as caught:
        kmeans([1.0, 2.0, 3.0], branching=2)
    assert isinstance(caught.value, ImportError)


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.cluster", None)
    with pytest.raises(MissingExtra, match=r"agglomerative needs SciPy.*'\.\[cluster\]'"):
        agglomerative([1.0, 2.0, 3.0])
