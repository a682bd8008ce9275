"""The problems of figures 2a to 2c and the appendix: means are a smooth function of the position of an arm.

Arms are clustered by position. Nearby arms are alike, but no cluster dominates the others: the theorems do not apply.
"""

from __future__ import annotations

from banditree.errors.checks import whole
from banditree.problems import functions
from banditree.problems.instance import Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Bernoulli
from banditree.tree import clustering


def sine_kmeans(n_arms: int, n_clusters: int, depth: int = 1) -> Problem:
    """Positions x ~ U(0, 1), means (sin 13x sin 27x + 1) / 2, k-means clusters; the paper's N, K, and L = ``depth``.

    With a depth above 1 each cluster is split again into ``n_clusters``, unless it has no more arms than that.

    >>> sine_kmeans(n_arms=100, n_clusters=10).instance(0).tree
    Tree(100 arms, 10 clusters, depth 1)
    """
    parameters = _sizes(n_arms, n_clusters) | {"depth": whole("depth", depth, 1)}
    return Problem("sine_kmeans", _draw_sine, parameters, slow=True)


def surface(n_arms: int = 500, n_clusters: int = 20) -> Problem:
    """Positions x ~ U([0, 1]^2) on a surface of three ridges; trees "kmeans" (K clusters) and "ward" (the full tree).

    >>> surface(n_arms=40, n_clusters=5).instance(0).trees["kmeans"]
    Tree(40 arms, 5 clusters, depth 1)
    """
    return Problem("surface", _draw_surface, _sizes(n_arms, n_clusters), slow=True)


def bumps(n_arms: int = 50, n_clusters: int = 5) -> Problem:
    """Positions x ~ U(0, 1) under two smooth bumps; trees "kmeans" (K clusters) and "ward" (the full tree).

    >>> list(bumps().instance(0).trees)
    ['kmeans', 'ward']
    """
    return Problem("bumps", _draw_bumps, _sizes(n_arms, n_clusters), slow=True)


def _sizes(n_arms: int, n_clusters: int) -> dict[str, int]:
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


def _with_two_trees(rng: Rng, x: functions.Floats, n_clusters: int, means: functions.Floats) -> Instance:
    trees = {
        "kmeans": clustering.kmeans(x, branching=n_clusters, depth=1, rng=rng),
        "ward": clustering.agglomerative(x, linkage="ward"),
    }
    return Instance(trees, Bernoulli(), means=means)
