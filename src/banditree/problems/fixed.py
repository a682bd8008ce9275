"""Problems with a given tree and given means: the same instance for every seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from banditree.errors import InvalidType, InvalidValue
from banditree.problems.instance import Instance, Problem
from banditree.problems.rewards import Bernoulli, Bounded, Gaussian, Rewards, Uniform
from banditree.stream import Rng
from banditree.tree import Tree
from banditree.tree.lookup import by_arm

Trees = Tree | Mapping[str, Tree]


def bernoulli(tree: Trees, means: object) -> Problem:
    """Rewards of 0 or 1. ``means`` is {arm: mean}, or an array in the order of ``tree.arms``.

    Several trees over the same arms are given as {name: tree}; the order of the arms is that of the first.

    >>> bernoulli(Tree({"hats": ["h1", "h2"], "shoes": ["s1"]}), {"h1": 0.1, "h2": 0.2, "s1": 0.3})
    bernoulli(trees={'tree': Tree(3 arms, 2 clusters, depth 1)}, rewards=Bernoulli(), means=array(3,), digest=8f416366)
    """
    return _fixed("bernoulli", tree, Bernoulli(), "means", means)


def bounded(tree: Trees, means: object, concentration: float) -> Problem:
    """Rewards in [0, 1], Beta(mean c, (1 - mean) c): the higher the concentration c, the closer to the mean.

    >>> bounded(Tree(2), [0.1, 0.5], concentration=4.0).instance(0).rewards
    Bounded(concentration=4.0)
    """
    return _fixed("bounded", tree, Bounded(concentration), "means", means)


def gaussian(tree: Trees, means: object, sd: float = 1.0) -> Problem:
    """Rewards N(mean, sd^2).

    >>> gaussian(Tree(2), [-1.5, 2.5]).instance(0).best()
    2.5
    """
    return _fixed("gaussian", tree, Gaussian(sd), "means", means)


def linear_from(tree: Trees, theta: object, contexts: str = "normal") -> Problem:
    """Rewards U(0, 2 theta.x) for contexts x. ``theta`` is {arm: coefficients}, or has one row per arm.

    >>> linear_from(Tree(["a", "b"]), {"a": [1.0, 0.0], "b": [0.0, 1.0]}).instance(0).expected("b", [3.0, 4.0])
    4.0
    """
    return _fixed("linear_from", tree, Uniform(), "theta", theta, contexts)


def _fixed(name: str, tree: Trees, rewards: Rewards, what: str, values: object, contexts: str | None = None) -> Problem:
    trees = dict(tree) if isinstance(tree, Mapping) else {"tree": tree}
    for given in trees.values():
        if not isinstance(given, Tree):
            raise InvalidType(f"tree is {given!r}; give a bt.Tree, or a mapping from names to trees")
    if not trees:
        raise InvalidValue("tree is an empty mapping; give at least one tree")
    truth = by_arm(next(iter(trees.values())), what, values)
    parameters = {"trees": trees, "rewards": rewards, what: truth}
    if contexts is not None:
        parameters["contexts"] = contexts
    problem = Problem(name, _draw_given, parameters, fixed=True)
    problem.instance(0)  # so that bad values are reported now, not when the first run starts
    return problem


def _draw_given(rng: Rng, **fields: Any) -> Instance:
    return Instance(**fields)
