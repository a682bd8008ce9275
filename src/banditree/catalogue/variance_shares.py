"""Split the variance of the arms' means over the levels of a tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from banditree.tree import Tree

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def clusters_at(tree: Tree) -> list[Places]:
    """Return the cluster of each arm at every level, from 0 (the root) to the depth of the tree: depth + 1 of (arms,).

    An arm with a shorter path keeps its last cluster at the levels below.
    """
    shape = tree.shape
    at = shape.parent[shape.node_of].astype(np.intp)  # (arms,) the finest cluster
    level = shape.level_of()
    found = [at]
    for depth in range(tree.depth - 1, -1, -1):
        at = np.where(level[at] > depth, shape.parent[at], at).astype(np.intp)
        found.append(at)
    return found[::-1]


def shares(clusters: list[Places], means: Floats) -> Floats:
    """Compute which share of the variance of the means lies between the clusters of each level: (draws, depth).

    The means are (draws, arms). Let m_C be the average over the arms of C, and C_l(a) the cluster of arm a at level l
    (C_0 is the root, the arm itself comes last). Then  mu_a - m_root = sum over l of
    (m_{C_l} - m_{C_{l-1}}) + (mu_a - m_{C_L}),  and the terms are orthogonal over the arms, so their squares add up to
    the variance. A level's share is what its clusters add to those of the level above. If all means are
    equal, every share is 0.
    """
    averages = [_averages(at, means) for at in clusters]
    total = ((means - averages[0]) ** 2).sum(axis=1)
    between = [((below - above) ** 2).sum(axis=1) for above, below in pairwise(averages)]
    parts: Floats = np.array(between).reshape(len(between), len(means)).T
    rounding = 1e-24 * means.shape[1] * (means**2).max(axis=1, initial=0.0)
    parts[total <= rounding] = 0.0  # all means are equal
    parts /= np.maximum(total, np.finfo(float).tiny)[:, None]
    return parts


def by_chance(clusters: list[Places]) -> Floats:
    """Compute the shares to expect if arms were assigned to clusters of these sizes at random: (depth,).

    A random split of n arms into k clusters explains (k - 1) / (n - 1) of their variance.
    """
    counts = np.array([len(np.unique(at)) for at in clusters])
    return np.diff(counts) / max(len(clusters[0]) - 1, 1)


def _averages(at: Places, means: Floats) -> Floats:
    """Compute the average of each arm's cluster: (draws, arms)."""
    _, group, size = np.unique(at, return_inverse=True, return_counts=True)
    return np.array([(np.bincount(group, row) / size)[group] for row in means])
