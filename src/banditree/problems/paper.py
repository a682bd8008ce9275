"""The paper's problems without contexts: dominated clusters, smooth functions of a position, and no structure."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import choice, real, whole
from banditree.problems import functions
from banditree.problems.instance import Instance, Problem
from banditree.problems.rewards import Bernoulli
from banditree.stream import Rng
from banditree.tree import Tree, clustering

BEST_MEAN = 0.6  # of strong dominance
OTHER_WIDTH = 0.1  # of a sub-optimal cluster of strong dominance

# ---------------------------------------------------------------- figures 1a to 1e: strong dominance


def strong_dominance(
    n_arms: int = 100,
    n_clusters: int = 10,
    n_best: int = 10,
    width: float = 0.1,
    distance: float = 0.1,
    count: str = "all",
) -> Problem:
    """Bernoulli arms in clusters, one of which strongly dominates the others: figures 1a to 1e.

    Cluster 0 has the best arm, with mean 0.6, and a worst one with mean 0.6 - width; its other arms are uniform in
    between. All other arms are assigned to the other clusters uniformly at random; a cluster without arms is dropped.
    The best arm of such a cluster has mean 0.6 - width - distance, the worst 0.1 less, the others are uniform in
    between; a single arm counts as the best.

    Parameters
    ----------
    n_arms
        The paper's N.
    n_clusters
        The paper's K, the number of clusters; see ``count``.
    n_best
        The paper's A*, the number of arms in the best cluster.
    width
        The paper's w*, the best minus the worst mean in the best cluster.
    distance
        The paper's d, the worst mean of the best cluster minus the best mean of the others.
    count
        What ``n_clusters`` counts: "all" clusters, or the "suboptimal" ones.

    Examples
    --------
    >>> instance = strong_dominance(n_arms=20, n_clusters=3, n_best=5).instance(0)
    >>> instance.best(), len(instance.tree.clusters[0])
    (0.6, 5)
    """
    n_arms = whole("n_arms", n_arms, 2)
    count = choice("count", count, ("all", "suboptimal"))
    n_clusters = whole("n_clusters", n_clusters, 2 if count == "all" else 1, n_arms, "there are n_arms arms to share")
    n_best = whole("n_best", n_best, 1, n_arms, "the number of arms in the best cluster")
    width, distance = real("width", width, 0.0), real("distance", distance, 0.0)
    room = BEST_MEAN - OTHER_WIDTH
    if room - width - distance < -1e-9:
        raise InvalidValue(
            f"width={width} and distance={distance} add up to more than {room}: the worst arm would have a "
            f"mean below 0, {room} - width - distance"
        )
    sizes = {"n_arms": n_arms, "n_clusters": n_clusters, "n_best": n_best}
    return Problem("strong_dominance", _draw_strong, sizes | {"width": width, "distance": distance, "count": count})


def _draw_strong(
    rng: Rng, n_arms: int, n_clusters: int, n_best: int, width: float, distance: float, count: str
) -> Instance:
    n_others = n_clusters - 1 if count == "all" else n_clusters
    clusters = np.zeros(n_arms, np.intp)  # (arms,) 0 is the best cluster
    clusters[n_best:] = 1 + rng.integers(n_others, size=n_arms - n_best)
    high = np.where(clusters == 0, BEST_MEAN, max(BEST_MEAN - width - distance, 0.0))  # (arms,)
    low = np.where(clusters == 0, BEST_MEAN - width, max(BEST_MEAN - OTHER_WIDTH - width - distance, 0.0))  # (arms,)
    means = np.clip(low + (high - low) * rng.random(n_arms), low, high)
    _pin_edges(means, clusters, low, high)
    return Instance({"clusters": Tree.from_labels(clusters)}, Bernoulli(), means=means)


def _pin_edges(means: Floats, clusters: Places, low: Floats, high: Floats) -> None:
    """Make the first arm of each cluster its best and the second, if there is one, its worst: (arms,) all."""
    order = np.argsort(clusters, kind="stable")
    first = np.flatnonzero(np.diff(clusters[order], prepend=-1))  # the start of each cluster in that order
    sizes = np.diff(first, append=len(order))
    best, worst = order[first], order[first[sizes > 1] + 1]
    means[best], means[worst] = high[best], low[worst]


# ---------------------------------------------------------------- figure 1f: hierarchical dominance


def hierarchical_dominance(n_arms: int, levels: str = "top", depth: int | None = None) -> Problem:
    """Bernoulli arms with sorted means, U(0.1, 0.8), below a balanced binary tree: figure 1f.

    The full tree, the default, halves the arms level by level down to pairs; policies may cut it. Where ``n_arms`` is
    not a power of two, sibling clusters differ by one arm, and an arm left alone has no cluster.

    Parameters
    ----------
    n_arms
        The paper's N.
    levels
        Which levels of the full tree a ``depth`` keeps: the "top" ones, the "bottom" ones, or "even"-ly spaced ones.
    depth
        The paper's L, how many levels are kept. Default: all.

    Examples
    --------
    >>> print(hierarchical_dominance(8).instance(0).tree)
    Tree(8 arms, 6 clusters, depth 2)
    ├── 0 (4 arms)
    │   ├── 0 (2 arms)
    │   │   ├── 0
    │   │   └── 1
    │   └── 1 (2 arms)
    │       ├── 2
    │       └── 3
    └── 1 (4 arms)
        ├── 2 (2 arms)
        │   ├── 4
        │   └── 5
        └── 3 (2 arms)
            ├── 6
            └── 7
    """
    n_arms = whole("n_arms", n_arms, 2)
    levels = choice("levels", levels, ("top", "bottom", "even"))
    if depth is None and levels != "top":
        raise InvalidType(f"levels={levels!r} needs depth, the number of levels to keep")
    full_depth = _full_depth(n_arms)
    if depth is not None:
        why = f"the full tree of {n_arms} arms has {full_depth} levels of clusters"
        depth = whole("depth", depth, 0, full_depth, why)
    return Problem("hierarchical_dominance", _draw_hierarchical, {"n_arms": n_arms, "levels": levels, "depth": depth})


def _draw_hierarchical(rng: Rng, n_arms: int, levels: str, depth: int | None) -> Instance:
    means = np.sort(0.1 + 0.7 * rng.random(n_arms))
    return Instance({"binary": _binary_tree(n_arms, levels, depth)}, Bernoulli(), means=means)


@lru_cache(maxsize=16)  # the same tree for every seed
def _binary_tree(n_arms: int, levels: str, depth: int | None) -> Tree:
    kept_levels = _kept_levels(levels, _full_depth(n_arms), depth)
    return Tree.from_paths([(*_clusters_of(arm, n_arms, kept_levels), arm) for arm in range(n_arms)])


def _full_depth(n_arms: int) -> int:
    """Return the number of levels of clusters in the full tree: log2 N - 1, rounded up."""
    return (n_arms - 1).bit_length() - 1


def _kept_levels(levels: str, full_depth: int, depth: int | None) -> range | list[int]:
    """Return the levels of the full tree that are kept; 1 is that of the top clusters."""
    if depth is None:
        return range(1, full_depth + 1)
    if levels == "top":
        return range(1, depth + 1)
    if levels == "bottom":
        return range(full_depth - depth + 1, full_depth + 1)
    # The i-th of L levels at i / (L + 1) of the way down to the arms, rounded half up: never the same level twice.
    return [(2 * i * (full_depth + 1) + depth + 1) // (2 * depth + 2) for i in range(1, depth + 1)]


def _clusters_of(arm: int, n_arms: int, kept_levels: range | list[int]) -> list[int]:
    """Return the arm's cluster on each level: level j has 2^j clusters, whose sizes differ by at most one."""
    clusters = [(arm << level) // n_arms for level in kept_levels]
    is_alone = [
        (arm == 0 or ((arm - 1) << level) // n_arms < cluster)
        and (arm == n_arms - 1 or ((arm + 1) << level) // n_arms > cluster)
        for level, cluster in zip(kept_levels, clusters, strict=True)
    ]
    return [cluster for cluster, alone in zip(clusters, is_alone, strict=True) if not alone]


# ---------------------------------------------------------------- figures 2a to 2c and the appendix: smooth functions


def sine_kmeans(n_arms: int, n_clusters: int, depth: int = 1) -> Problem:
    """Positions x ~ U(0, 1), means (sin 13x sin 27x + 1) / 2, k-means clusters: figures 2a to 2c.

    Nearby arms are similar, but no cluster dominates the others: the theorems do not apply.

    Parameters
    ----------
    n_arms
        The paper's N.
    n_clusters
        The paper's K, the number of clusters.
    depth
        The paper's L. With a depth above 1 each cluster is split again into ``n_clusters``, unless it has no more arms
        than that.

    Examples
    --------
    >>> sine_kmeans(n_arms=100, n_clusters=10).instance(0).tree
    Tree(100 arms, 10 clusters, depth 1)
    """
    parameters = _check_sizes(n_arms, n_clusters) | {"depth": whole("depth", depth, 1)}
    return Problem("sine_kmeans", _draw_sine, parameters, slow=True)


def surface(n_arms: int = 500, n_clusters: int = 20) -> Problem:
    """Positions x ~ U([0, 1]^2) on a surface of three ridges; trees "kmeans" (K clusters) and "ward" (the full tree).

    >>> surface(n_arms=40, n_clusters=5).instance(0).trees["kmeans"]
    Tree(40 arms, 5 clusters, depth 1)
    """
    return Problem("surface", _draw_surface, _check_sizes(n_arms, n_clusters), slow=True)


def bumps(n_arms: int = 50, n_clusters: int = 5) -> Problem:
    """Positions x ~ U(0, 1) under two smooth bumps; trees "kmeans" (K clusters) and "ward" (the full tree).

    >>> list(bumps().instance(0).trees)
    ['kmeans', 'ward']
    """
    return Problem("bumps", _draw_bumps, _check_sizes(n_arms, n_clusters), slow=True)


def _check_sizes(n_arms: int, n_clusters: int) -> dict[str, int]:
    n_arms = whole("n_arms", n_arms, 3)
    n_clusters = whole("n_clusters", n_clusters, 2, n_arms - 1, "fewer than n_arms, or there is nothing to cluster")
    return {"n_arms": n_arms, "n_clusters": n_clusters}


def _draw_sine(rng: Rng, n_arms: int, n_clusters: int, depth: int) -> Instance:
    x = rng.random(n_arms)  # (arms,)
    tree = clustering.kmeans(x, branching=n_clusters, depth=depth, rng=rng)
    return Instance({"kmeans": tree}, Bernoulli(), means=functions.sine(x))


def _draw_surface(rng: Rng, n_arms: int, n_clusters: int) -> Instance:
    x = rng.random((n_arms, 2))  # (arms, 2)
    return _with_two_trees(rng, x, n_clusters, functions.surface(x))


def _draw_bumps(rng: Rng, n_arms: int, n_clusters: int) -> Instance:
    x = rng.random(n_arms)  # (arms,)
    return _with_two_trees(rng, x, n_clusters, functions.bumps(x))


def _with_two_trees(rng: Rng, x: Floats, n_clusters: int, means: Floats) -> Instance:
    trees = {
        "kmeans": clustering.kmeans(x, branching=n_clusters, depth=1, rng=rng),
        "ward": clustering.agglomerative(x, linkage="ward"),
    }
    return Instance(trees, Bernoulli(), means=means)


# ---------------------------------------------------------------- the appendix: no structure


def unstructured(n_arms: int = 50, n_clusters: int = 10) -> Problem:
    """Bernoulli arms with means U(0, 1), in clusters of equal size (give or take one arm) that ignore the means.

    >>> unstructured().instance(0).tree
    Tree(50 arms, 10 clusters, depth 1)
    """
    n_arms = whole("n_arms", n_arms, 2)
    n_clusters = whole("n_clusters", n_clusters, 2, n_arms, "every cluster needs one of the n_arms arms")
    return Problem("unstructured", _draw_unstructured, {"n_arms": n_arms, "n_clusters": n_clusters})


def _draw_unstructured(rng: Rng, n_arms: int, n_clusters: int) -> Instance:
    return Instance({"clusters": _even_tree(n_arms, n_clusters)}, Bernoulli(), means=rng.random(n_arms))


@lru_cache(maxsize=16)  # the same tree for every seed
def _even_tree(n_arms: int, n_clusters: int) -> Tree:
    return Tree.from_labels(np.arange(n_arms) * n_clusters // n_arms)
