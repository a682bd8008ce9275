"""Inspecting: variance shares against simulated truth, dominance, clusters, and arms in the wrong place."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from banditree import theory
from banditree.catalogue import Catalogue, inspect
from banditree.catalogue.inspection import by_chance, clusters_at, shares
from banditree.catalogue.posterior import Posterior
from banditree.tree import Tree

Floats = NDArray[np.float64]


def grouped(n_top: int, n_sub: int, n_arms: int) -> Tree:
    """A regular tree of two levels."""
    return Tree.from_paths(
        [(f"t{i}", f"s{j}", f"{i}.{j}.{k}") for i in range(n_top) for j in range(n_sub) for k in range(n_arms)]
    )


def world(tree: Tree, sds: tuple[float, float, float], rng: np.random.Generator) -> Floats:
    """Means around 0.3 with a spread at each level: (arms,)."""
    at = clusters_at(tree)
    parts = [np.zeros(tree.shape.n_nodes) for _ in sds[:2]]
    for part, sd in zip(parts, sds[:2], strict=True):
        part[:] = rng.normal(0, sd, len(part))
    return np.clip(0.3 + parts[0][at[1]] + parts[1][at[2]] + rng.normal(0, sds[2], tree.n_arms), 0.01, 0.99)


def counted(tree: Tree, means: Floats, plays: tuple[int, int], rng: np.random.Generator) -> Catalogue:
    n = rng.integers(*plays, tree.n_arms)
    return Catalogue(tree, n, rng.binomial(n, means))


def moments(catalogue: Catalogue) -> Floats:
    """The shares by moments, another way: (depth,).

    For a cluster C of n_C arms below a cluster P, with unbiased rates y_a of variances v_a, the sum over C in P of
    n_C (y_C - y_P)^2 exceeds that of the means by sum over C of V_C / n_C, less V_P / n_P, V being sums of v_a; and
    y (1 - y) / (n - 1) is an unbiased estimate of v.
    """
    assert catalogue.plays is not None
    y, at = catalogue.rates, clusters_at(catalogue.tree)
    v = y * (1 - y) / (catalogue.plays - 1)
    at = [*at, np.arange(len(y))]
    inspection = []
    for above, below in pairwise(at):
        sums = []
        for cluster in (above, below):
            _, group, size = np.unique(cluster, return_inverse=True, return_counts=True)
            average = (np.bincount(group, y) / size)[group]
            sums.append((average, float((np.bincount(group, v) / size).sum())))
        raw = float(((sums[1][0] - sums[0][0]) ** 2).sum())
        inspection.append(raw - (sums[1][1] - sums[0][1]))
    return np.array(inspection)[:-1] / sum(inspection)


def test_shares_by_hand() -> None:
    tree = Tree({"a": {"b": ["1", "2"], "c": ["3"]}, "d": ["4"]})
    at = clusters_at(tree)
    means = np.array([[0.1, 0.3, 0.5, 0.9]])
    average = 0.45
    a, b = 0.3, 0.2
    total = sum((m - average) ** 2 for m in means[0])
    level1 = 3 * (a - average) ** 2 + (0.9 - average) ** 2
    level2 = 2 * (b - a) ** 2 + (0.5 - a) ** 2
    assert shares(at, means)[0] == pytest.approx([level1 / total, level2 / total])
    assert by_chance(at) == pytest.approx([1 / 3, 1 / 3])
    assert shares(at, np.full((1, 4), 0.3)).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("sds", [(0.08, 0.02, 0.03), (0.0, 0.0, 0.06), (0.01, 0.08, 0.02)])
def test_the_share_of_variance_is_that_of_the_truth(sds: tuple[float, float, float]) -> None:
    """In 12 worlds with few plays: estimates are right on average, and intervals hold the truth 95% of the time."""
    tree = grouped(8, 4, 6)
    at = clusters_at(tree)
    errors, naive, inside, differences = [], [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        means = world(tree, sds, rng)
        catalogue = counted(tree, means, (30, 120), rng)
        truth = shares(at, means[None])[0]
        inspection = inspect(catalogue, worlds=150, rng=seed)
        estimate = np.array(inspection.levels["share"])
        errors.append(estimate - truth)
        naive.append(shares(at, catalogue.rates[None])[0] - truth)
        differences.append(estimate - moments(catalogue))
        inside += [low <= t <= high for (low, high), t in zip(inspection.levels["interval"], truth, strict=True)]
    error = np.mean(errors, axis=0)
    limit = 3.5 * np.std(errors, axis=0, ddof=1) / np.sqrt(12) + 0.03
    assert (np.abs(error) < limit).all()
    assert np.abs(np.mean(differences, axis=0)).max() < 0.08  # another estimator agrees
    assert np.mean(inside) > 0.83  # 24 intervals of 95%: fewer than 20 inside has a chance of 0.4%
    if sds[0] == 0.08:  # noise taken for truth would miss
        assert np.abs(np.mean(naive, axis=0)).max() > 2 * np.abs(error).max()


def test_draws_have_the_spread_of_the_truth() -> None:
    """Observed rates spread more than the truth, draws from flat posteriors still more; ours as the truth does."""
    tree = grouped(6, 2, 10)
    rng = np.random.default_rng(3)
    means = world(tree, (0.03, 0.0, 0.02), rng)
    catalogue = counted(tree, means, (40, 60), rng)
    assert catalogue.plays is not None
    assert catalogue.successes is not None
    ours = catalogue.draws(100, rng).std(axis=1).mean()
    flat = rng.beta(1 + catalogue.successes, 1 + catalogue.plays - catalogue.successes, (100, tree.n_arms)).std(axis=1)
    assert abs(ours - means.std()) < 0.3 * means.std()
    assert flat.mean() > 2 * means.std()


def test_draws_are_right_where_counts_are_large_and_sane_where_there_are_none() -> None:
    tree = Tree({"x": ["a", "b", "c"], "y": ["d", "e"]})
    rng = np.random.default_rng(0)
    sure = Catalogue(tree, [1e6] * 5, [1e5, 2e5, 3e5, 4e5, 5e5]).draws(50, rng)
    assert np.abs(sure.mean(axis=0) - [0.1, 0.2, 0.3, 0.4, 0.5]).max() < 0.001
    unseen = Catalogue(tree, [1000, 1000, 0, 1000, 1000], [100, 110, 0, 500, 510]).draws(200, rng)
    assert abs(np.median(unseen[:, 2]) - 0.105) < 0.1  # like its siblings
    assert unseen[:, 2].std() > 3 * unseen[:, 0].std()
    one = Posterior(tree, np.array([3.0, 0, 0, 0, 0]), np.zeros(5)).draws(50, rng)
    assert ((one >= 0) & (one <= 1)).all()
    assert "3 plays" in repr(Posterior(tree, np.array([3.0, 0, 0, 0, 0]), np.zeros(5)))


def test_draws_from_the_native_stream_are_the_same_kind() -> None:
    problem = Catalogue(Tree({"x": ["a", "b"], "y": ["c"]}), [90, 80, 70], [9, 8, 30]).world()
    means = np.array([problem.instance(seed).means for seed in range(200)])
    assert abs(means[:, 2].mean() - 0.42) < 0.03
    assert (problem.instance(5).means == means[5]).all()


def test_known_means_are_exact() -> None:
    tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    means = [0.25, 0.125, 0.75, 0.625, 0.5]
    inspection = inspect(Catalogue(tree, means=means))
    q = theory.quality(tree, means)
    assert inspection.quality == q
    assert (inspection.width.value, inspection.distance.value, inspection.gamma.value) == (
        q.width,
        q.distance["shoes"],
        q.gamma,
    )
    assert (inspection.worlds, inspection.dominance) == (1, 1.0)
    assert inspection.clusters["path"] == [("hats",), ("shoes",)]
    assert inspection.clusters[0].best == 1.0
    assert "holds" in str(inspection)


def test_dominance_is_as_likely_as_the_counts_allow() -> None:
    tree = Tree({"x": ["a", "b", "c"], "y": ["d", "e", "f"]})
    means = np.array([0.6, 0.55, 0.5, 0.3, 0.35, 0.4])
    many = inspect(Catalogue(tree, np.full(6, 20_000), 20_000 * means))
    few = inspect(Catalogue(tree, np.full(6, 20), 20 * means))
    assert many.dominance > 0.95
    assert 0.02 < few.dominance < 0.9
    assert few.distance.interval[0] < 0 < many.distance.interval[0]
    low, high = many.width.interval
    assert low < 0.1 < high


def test_a_flat_catalogue_and_one_of_a_single_cluster() -> None:
    flat = inspect(Catalogue(Tree(["a", "b", "c"]), [50, 60, 70], [5, 20, 40]))
    assert len(flat.levels) == len(flat.clusters) == 0
    assert flat.within.value == 1.0
    one = inspect(Catalogue(Tree({"x": ["a", "b"]}), [50, 60], [5, 20]))
    assert one.distance.value == np.inf
    assert one.to_dict()["distance"]["value"] is None


def test_the_best_arms_are_listed() -> None:
    tree = Tree({"x": ["a", "b"], "y": ["c", "d"]})
    top = inspect(Catalogue(tree, [900, 800, 700, 10], [90, 80, 300, 4])).top
    assert top["arm"][0] == "c"
    assert top["mean"] == sorted(top["mean"], reverse=True)
    assert sum(top["best"]) == pytest.approx(1.0)
    assert (top[0].path, top[0].plays, top[0].rate) == (("y",), 700, 300 / 700)


def test_a_hundred_thousand_items_in_five_columns() -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    sizes = (10, 100, 1000, 5000, 20_000)
    tree = Tree.from_paths(list(zip(*([i % size for i in range(n)] for size in sizes), range(n), strict=True)))
    plays = rng.integers(0, 500, n)
    catalogue = Catalogue(tree, plays, rng.binomial(plays, rng.beta(3, 100, n)))
    started = time.process_time()
    inspection = inspect(catalogue)
    assert time.process_time() - started < 20  # 3.5 seconds of a machine of its own
    assert len(inspection.levels) == 5
    assert inspection.levels[0].share < 0.01
