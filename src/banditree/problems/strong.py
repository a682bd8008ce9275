"""The problem of figures 1a to 1e, strong dominance: every arm of the best cluster beats every other arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue
from banditree.errors.checks import choice, real, whole
from banditree.problems.instance import Floats, Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Bernoulli
from banditree.tree import Tree

TOP = 0.6  # mean of the best arm
SPAN = 0.1  # width of a sub-optimal cluster


def strong_dominance(
    n_arms: int = 100,
    n_clusters: int = 10,
    n_best: int = 10,
    width: float = 0.1,
    distance: float = 0.1,
    count: str = "all",
) -> Problem:
    """Bernoulli arms in clusters, one of which strongly dominates the others; the paper's N, K, A*, w*, d.

    Cluster 0 has ``n_best`` arms: the best has mean 0.6, the worst 0.6 - width, the others are uniform in between. The
    other arms are assigned to the other clusters uniformly at random; a cluster without arms is dropped. The best arm
    of such a cluster has mean 0.6 - width - distance, the worst 0.1 less, the others are uniform in between; a single
    arm counts as the best. ``n_clusters`` counts all clusters, or with ``count="suboptimal"`` all but the best one.

    >>> instance = strong_dominance(n_arms=20, n_clusters=3, n_best=5).instance(0)
    >>> instance.best(), len(instance.tree.clusters[0])
    (0.6, 5)
    """
    n_arms = whole("n_arms", n_arms, 2)
    count = choice("count", count, ("all", "suboptimal"))
    n_clusters = whole("n_clusters", n_clusters, 2 if count == "all" else 1, n_arms, "there are n_arms arms to share")
    n_best = whole("n_best", n_best, 1, n_arms, "the number of arms in the best cluster")
    width, distance = real("width", width, 0.0), real("distance", distance, 0.0)
    if TOP - SPAN - width - distance < -1e-9:
        raise InvalidValue(
            f"width={width} and distance={distance} add up to more than {TOP - SPAN}: the worst arm would have a "
            f"mean below 0, {TOP - SPAN} - width - distance"
        )
    sizes = {"n_arms": n_arms, "n_clusters": n_clusters, "n_best": n_best}
    return Problem("strong_dominance", _draw, sizes | {"width": width, "distance": distance, "count": count})


def _draw(rng: Rng, n_arms: int, n_clusters: int, n_best: int, width: float, distance: float, count: str) -> Instance:
    last = n_clusters - 1 if count == "all" else n_clusters
    clusters = np.zeros(n_arms, np.intp)  # (arms,) 0 is the best cluster
    clusters[n_best:] = 1 + rng.integers(last, size=n_arms - n_best)
    high = np.where(clusters == 0, TOP, max(TOP - width - distance, 0.0))  # (arms,)
    low = np.where(clusters == 0, TOP - width, max(TOP - SPAN - width - distance, 0.0))  # (arms,)
    means = np.clip(low + (high - low) * rng.random(n_arms), low, high)
    _pin_edges(means, clusters, low, high)
    return Instance({"clusters": Tree.from_labels(clusters)}, Bernoulli(), means=means)


def _pin_edges(means: Floats, clusters: NDArray[np.intp], low: Floats, high: Floats) -> None:
    """Make the first arm of each cluster its best and the second, if there is one, its worst: (arms,) all."""
    order = np.argsort(clusters, kind="stable")
    first = np.flatnonzero(np.diff(clusters[order], prepend=-1))  # the start of each cluster in that order
    sizes = np.diff(first, append=len(order))
    best, worst = order[first], order[first[sizes > 1] + 1]
    means[best], means[worst] = high[best], low[worst]
