"""Contextual problems: that of figures 2d to 2f, and mixed effects: levels and slopes differ by cluster and arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import choice, positive, real, whole
from banditree.problems.instance import CONTEXTS, Instance, Problem
from banditree.problems.rewards import Clicks, Gaussian, Uniform
from banditree.stream import Rng
from banditree.tree import Tree


def linear(n_arms: int, n_clusters: int, spread: float, dim: int = 5, contexts: str = "normal") -> Problem:
    """Rewards U(0, 2 theta.x), where theta of an arm is its cluster's centre plus ``spread`` times a normal vector.

    Centres (the paper's theta^c) are N(0, I). Arms are assigned to clusters at random; a cluster without arms is
    dropped.

    Parameters
    ----------
    n_arms, n_clusters
        How many arms and clusters.
    spread
        The paper's epsilon.
    dim
        Length of the contexts.
    contexts
        How they are drawn, as in :class:`Instance`.

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


def mixed_effects(
    n_arms: int = 100,
    n_clusters: int | Sequence[int] = 10,
    dim: int = 5,
    cluster_sd: Sequence[float | Sequence[float]] = (1.0, 0.3),
    arm_sd: Sequence[float] = (0.5, 0.1),
    noise: float = 1.0,
    reward: str = "normal",
    rate: float = 0.05,
    constant: bool = False,
) -> Problem:
    """Rewards with a level and slopes per arm, which differ from those of its cluster, and clusters from each other.

    Contexts are N(0, I). The level and the slopes of the root are 0; every cluster adds normal numbers to those of its
    parent, and every arm to those of its cluster. Arms are in order, and spread evenly over the clusters.

    Parameters
    ----------
    n_arms
        Number of arms.
    n_clusters
        Number of clusters; for a deeper tree one number per level, coarse to fine, such as ``(4, 20)``.
    dim
        Length of the contexts.
    cluster_sd
        Standard deviations (level, slopes) of clusters around their parent; for a deeper tree also a list of such
        pairs, one per level.
    arm_sd
        Standard deviations (level, slopes) of arms around their cluster.
    noise
        Standard deviation of rewards around their mean.
    reward
        "normal", or "clicks": rewards 0 and 1 with log odds of level + slopes.x around those of ``rate``.
    rate
        Share of clicks at the root, where rewards are clicks.
    constant
        Whether contexts start with a 1, for policies without a level of their own; they then have dim + 1 numbers.

    >>> instance = mixed_effects(n_arms=20, n_clusters=4, dim=3).instance(0)
    >>> instance.dim, instance.theta.shape, instance.tree
    (3, (20, 4), Tree(20 arms, 4 clusters, depth 1))
    """
    n_arms = whole("n_arms", n_arms, 2)
    clusters = [n_clusters] if isinstance(n_clusters, int | np.integer) else list(n_clusters)
    for at, number in enumerate(clusters):
        least = 1 if at == 0 else clusters[at - 1]
        clusters[at] = whole(
            "n_clusters", number, least, n_arms, "no more than arms, and no fewer than the level above"
        )
    several = list(cluster_sd) if np.ndim(cluster_sd) == 2 or not len(clusters) else [cluster_sd] * len(clusters)
    if len(several) != len(clusters):
        raise InvalidValue(f"cluster_sd has {len(several)} pairs; there are {len(clusters)} levels of clusters")
    if not isinstance(constant, bool):
        raise InvalidType(f"constant={constant!r} must be True or False")
    parameters = {
        "n_arms": n_arms,
        "n_clusters": clusters[0] if len(clusters) == 1 else tuple(clusters),
        "dim": whole("dim", dim, 1),
        "cluster_sd": [_pair("cluster_sd", pair) for pair in several]
        if len(clusters) != 1
        else _pair("cluster_sd", several[0]),
        "arm_sd": _pair("arm_sd", arm_sd),
        "noise": positive("noise", noise),
        "reward": choice("reward", reward, ("normal", "clicks")),
        "rate": real("rate", rate, 1e-9, 1 - 1e-9, "the share of clicks"),
        "constant": constant,
    }
    return Problem("mixed_effects", _draw_mixed, parameters)


def _pair(what: str, given: Any) -> tuple[float, float]:
    if np.shape(given) != (2,):
        raise InvalidType(f"{what}={given!r} must be a pair: standard deviations of levels and of slopes")
    level, slopes = (real(what, sd, 0.0, 1e6) for sd in given)
    return level, slopes


def _draw_mixed(
    rng: Rng,
    n_arms: int,
    n_clusters: int | tuple[int, ...],
    dim: int,
    cluster_sd: Any,
    arm_sd: tuple[float, float],
    noise: float,
    reward: str,
    rate: float,
    constant: bool,
) -> Instance:
    sizes = [n_clusters] if isinstance(n_clusters, int) else list(n_clusters)
    sds = [cluster_sd] if isinstance(n_clusters, int) else list(cluster_sd)
    theta = np.zeros((1, 1 + dim))  # (nodes of a level, 1 + dim), from the root to the arms
    theta[0, 0] = math.log(rate / (1 - rate)) if reward == "clicks" else 0.0
    for size, sd in zip([*sizes, n_arms], [*sds, arm_sd], strict=True):
        parents = np.arange(size) * len(theta) // size
        theta = theta[parents] + np.array([sd[0], *[sd[1]] * dim]) * rng.standard_normal((size, 1 + dim))
    paths = [(*(arm * size // n_arms for size in sizes), arm) for arm in range(n_arms)]
    tree = Tree.from_paths(paths)
    rewards = Clicks() if reward == "clicks" else Gaussian(noise)
    contexts = "constant" if constant else "hidden"
    return Instance({"clusters": tree}, rewards, theta=theta, contexts=contexts)
