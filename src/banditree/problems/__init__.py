"""Problems to simulate: the paper's, a real one, and those of users. A new one is a function and a line in `registry`.

A problem is a distribution over instances: ``problem.instance(rng)`` draws one, a tree and the true means of its arms.
A problem of your own is any object with that method (:class:`AnyProblem`), and an instance is any object with ``tree``,
``trees``, ``reward``, ``context``, ``expected`` and ``best`` (:class:`AnyInstance`); :class:`Instance` has them all.

>>> import numpy as np
>>> from banditree import Tree
>>> from banditree.problems import Bernoulli, Instance
>>> class Seasons:
...     name = "seasons"
...
...     def instance(self, rng):
...         means = np.random.default_rng(rng).uniform(0.1, 0.4, size=4)
...         tree = Tree({"winter": ["scarf", "boots"], "summer": ["hat", "sandals"]})
...         return Instance({"season": tree}, Bernoulli(), means=means)
>>> instance = Seasons().instance(7)
>>> instance.reward("hat", np.random.default_rng(0)) in (0.0, 1.0)
True
>>> 0.1 <= instance.best() <= 0.4
True
"""

from __future__ import annotations

from collections.abc import Callable

from banditree.problems import functions
from banditree.problems.contextual import linear, mixed_effects
from banditree.problems.drifting import Drifting, DriftingInstance, drifting
from banditree.problems.fixed import bernoulli, bounded, gaussian, linear_from
from banditree.problems.instance import AnyInstance, AnyProblem, Instance, Problem
from banditree.problems.paper import bumps, hierarchical_dominance, sine_kmeans, strong_dominance, surface, unstructured
from banditree.problems.real import open_bandit
from banditree.problems.rewards import Bernoulli, Bounded, Clicks, Gaussian, Rewards, Uniform
from banditree.tree import Tree

registry: dict[str, Callable[..., Problem | Drifting]] = {
    function.__name__: function
    for function in (
        strong_dominance, hierarchical_dominance, sine_kmeans, surface, bumps, unstructured, linear, mixed_effects,
        bernoulli, bounded, gaussian, linear_from, open_bandit, drifting,
    )
}  # fmt: skip


def examples() -> dict[str, Problem | Drifting]:
    """Return a small problem of every registered kind, for tests and for trying things out.

    >>> examples()["unstructured"]
    unstructured(n_arms=12, n_clusters=3)
    """
    tree = Tree({"hats": ["h1", "h2", "h3"], "shoes": {"warm": ["s1"], "light": ["s2", "s3"]}})
    means = {"h1": 0.1, "h2": 0.3, "h3": 0.2, "s1": 0.8, "s2": 0.5, "s3": 0.6}
    theta = {arm: [mean, 1 - 2 * mean] for arm, mean in means.items()}
    return {
        "strong_dominance": strong_dominance(n_arms=20, n_clusters=4, n_best=4),
        "hierarchical_dominance": hierarchical_dominance(16),
        "sine_kmeans": sine_kmeans(n_arms=40, n_clusters=4, depth=2),
        "surface": surface(n_arms=30, n_clusters=4),
        "bumps": bumps(n_arms=20, n_clusters=3),
        "unstructured": unstructured(n_arms=12, n_clusters=3),
        "linear": linear(n_arms=20, n_clusters=4, spread=0.5, dim=3),
        "mixed_effects": mixed_effects(n_arms=12, n_clusters=(2, 4), dim=2, reward="clicks", rate=0.3),
        "bernoulli": bernoulli(tree, means),
        "bounded": bounded(tree, means, concentration=3.0),
        "gaussian": gaussian(tree, means, sd=0.5),
        "linear_from": linear_from(tree, theta, contexts="unit"),
        "open_bandit": open_bandit(),
        "drifting": drifting(unstructured(n_arms=12, n_clusters=3), every=7),
    }


__all__ = [
    "AnyInstance", "AnyProblem", "Bernoulli", "Bounded", "Clicks", "Drifting", "DriftingInstance", "Gaussian",
    "Instance", "Problem", "Rewards", "Uniform", "bernoulli", "bounded", "bumps", "drifting", "examples", "functions",
    "gaussian", "hierarchical_dominance", "linear", "linear_from", "mixed_effects", "open_bandit", "registry",
    "sine_kmeans", "strong_dominance", "surface", "unstructured",
]  # fmt: skip
