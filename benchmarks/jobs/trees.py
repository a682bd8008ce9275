"""Trees of any size for the benchmarks."""

from __future__ import annotations

import banditree as bt


def fan_out(n_arms: int, branching: int) -> bt.Tree:
    """Arms 0, 1, ... in clusters of ``branching`` neighbours, those in clusters of ``branching``, up to the root."""
    sizes = []
    size = branching
    while size < n_arms:
        sizes.append(size)
        size *= branching
    sizes.reverse()
    return bt.Tree.from_paths([(*(arm // size for size in sizes), arm) for arm in range(n_arms)])


def clusters(n_arms: int, n_clusters: int) -> bt.Tree:
    """Arms 0, 1, ... in so many clusters of neighbours."""
    return bt.Tree.from_labels([arm * n_clusters // n_arms for arm in range(n_arms)])
