"""The contextual problem of figures 2d to 2f: coefficients of arms scattered around the centre of their cluster."""

from __future__ import annotations

from banditree.errors.checks import choice, real, whole
from banditree.problems.instance import CONTEXTS, Instance
from banditree.problems.problem import Problem
from banditree.problems.rewards import Uniform
from banditree.stream import Rng
from banditree.tree import Tree


def linear(n_arms: int, n_clusters: int, spread: float, dim: int = 5, contexts: str = "normal") -> Problem:
    """Rewards U(0, 2 theta.x), where theta of an arm is its cluster's centre plus ``spread`` times a normal vector.

    Centres (the paper's theta^c) are N(0, I); ``spread`` is the paper's epsilon. Arms are assigned to clusters at
    random; a cluster without arms is dropped. ``contexts`` is as in :class:`Instance`.

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
