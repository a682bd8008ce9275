"""The appendix's problem without structure: clusters that say nothing about the means of their arms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from banditree.errors.checks import whole
from banditree.problems.instance import Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Bernoulli
from banditree.tree import Tree


def unstructured(n_arms: int = 50, n_clusters: int = 10) -> Problem:
    """Bernoulli arms with means U(0, 1), in clusters of equal size (give or take one arm) that ignore the means.

    >>> unstructured().instance(0).tree
    Tree(50 arms, 10 clusters, depth 1)
    """
    n_arms = whole("n_arms", n_arms, 2)
    n_clusters = whole("n_clusters", n_clusters, 2, n_arms, "every cluster needs one of the n_arms arms")
    return Problem("unstructured", _draw, {"n_arms": n_arms, "n_clusters": n_clusters})


def _draw(rng: Rng, n_arms: int, n_clusters: int) -> Instance:
    return Instance({"clusters": _tree(n_arms, n_clusters)}, Bernoulli(), means=rng.random(n_arms))


@lru_cache(maxsize=16)  # the same tree for every seed
def _tree(n_arms: int, n_clusters: int) -> Tree:
    return Tree.from_labels(np.arange(n_arms) * n_clusters // n_arms)
