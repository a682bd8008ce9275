"""Contextual arms around the centres of their clusters (figures 2d to 2f)."""

from __future__ import annotations

from banditree.errors.checks import choice, real, whole
from banditree.problems.instance import CONTEXTS, Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Uniform
from banditree.tree import Tree


def linear(n_arms: int, n_clusters: int, spread: float, dim: int = 5, contexts: str = "normal") -> Problem:
    """Rewards U(0, 2 theta.x), theta of an arm being the centre of its cluster and ``spread`` times a normal vector.

    Centres are N(0, I) (the paper's theta^c), ``spread`` is its epsilon. Arms fall into the clusters uniformly; a
    cluster that gets none is dropped. ``contexts``: "normal", N(0, I); "uniform", U[0, 1]^dim; "unit", of length 1.

    >>> instance = linear(n_arms=20, n_clusters=3, spread=0.5).instance(0)
    >>> instance.theta.shape
    (20, 5)
    """
    n_arms = whole("n_arms", n_arms, 2)
    parameters = {
        "n_arms": n_arms,
        "n_clusters": whole("n_clusters", n_clusters, 2, n_arms, "there are n_arms arms to share"),
        "spread": real("spread", spread, 0.0),
        "dim": whole("dim", dim, 1),
        "contexts": choice("contexts", contexts, CONTEXTS),
    }
    return Problem("linear", _draw, parameters)


def _draw(rng: Rng, n_arms: int, n_clusters: int, spread: float, dim: int, contexts: str) -> Instance:
    clusters = rng.integers(n_clusters, size=n_arms)  # (arms,)
    centres = rng.standard_normal((n_clusters, dim))
    theta = centres[clusters] + spread * rng.standard_normal((n_arms, dim))  # (arms, dim)
    return Instance({"clusters": Tree.from_labels(clusters)}, Uniform(), theta=theta, contexts=contexts)
