"""The problem of figure 1f, with hierarchical strong dominance: sorted arms in a balanced binary tree."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from banditree.errors import InvalidType
from banditree.errors.checks import choice, whole
from banditree.problems.instance import Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Bernoulli
from banditree.tree import Tree


def hierarchical_dominance(n_arms: int, levels: str = "top", depth: int | None = None) -> Problem:
    """Bernoulli arms with sorted means, U(0.1, 0.8), below a balanced binary tree (the paper's N, and L = ``depth``).

    The full tree, the default, halves the arms level by level down to pairs; policies may cut it. With a ``depth``,
    that many of its levels are kept: the ``"top"`` ones, the ``"bottom"`` ones, or ``"even"``-ly spaced ones. Where
    ``n_arms`` is not a power of two, sibling clusters differ by one arm, and an arm left alone has no cluster.

    >>> print(hierarchical_dominance(8).instance(0).tree)
    Tree(8 arms, 6 clusters, depth 2)
    ├── 0 (4 arms)
    │   ├── 0 (2 arms)
    │   │   ├── 0
    │   │   └── 1
    │   └── 1 (2 arms)
    │       ├── 2
    │       └── 3
    └── 1 (4 arms)
        ├── 2 (2 arms)
        │   ├── 4
        │   └── 5
        └── 3 (2 arms)
            ├── 6
            └── 7
    """
    n_arms = whole("n_arms", n_arms, 2)
    levels = choice("levels", levels, ("top", "bottom", "even"))
    if depth is None and levels != "top":
        raise InvalidType(f"levels={levels!r} needs depth, the number of levels to keep")
    full = _full_depth(n_arms)
    if depth is not None:
        depth = whole("depth", depth, 0, full, f"the full tree of {n_arms} arms has {full} levels of clusters")
    return Problem("hierarchical_dominance", _draw, {"n_arms": n_arms, "levels": levels, "depth": depth})


def _draw(rng: Rng, n_arms: int, levels: str, depth: int | None) -> Instance:
    means = np.sort(0.1 + 0.7 * rng.random(n_arms))
    return Instance({"binary": _tree(n_arms, levels, depth)}, Bernoulli(), means=means)


@lru_cache(maxsize=16)  # the same tree for every seed
def _tree(n_arms: int, levels: str, depth: int | None) -> Tree:
    kept = _kept(levels, _full_depth(n_arms), depth)
    return Tree.from_paths([(*_clusters(arm, n_arms, kept), arm) for arm in range(n_arms)])


def _full_depth(n_arms: int) -> int:
    """Return the number of levels of clusters in the full tree: log2 N - 1, rounded up."""
    return (n_arms - 1).bit_length() - 1


def _kept(levels: str, full: int, depth: int | None) -> range | list[int]:
    """Return the levels of the full tree that are kept; 1 is that of the top clusters."""
    if depth is None:
        return range(1, full + 1)
    if levels == "top":
        return range(1, depth + 1)
    if levels == "bottom":
        return range(full - depth + 1, full + 1)
    # The i-th of L levels at i / (L + 1) of the way down to the arms, rounded half up: never the same level twice.
    return [(2 * i * (full + 1) + depth + 1) // (2 * depth + 2) for i in range(1, depth + 1)]


def _clusters(arm: int, n_arms: int, kept: range | list[int]) -> list[int]:
    """Return the arm's cluster on each level: level j has 2^j clusters, whose sizes differ by at most one."""
    found = [(arm << level) // n_arms for level in kept]
    alone = [
        (arm == 0 or ((arm - 1) << level) // n_arms < cluster)
        and (arm == n_arms - 1 or ((arm + 1) << level) // n_arms > cluster)
        for level, cluster in zip(kept, found, strict=True)
    ]
    return [cluster for cluster, by_itself in zip(found, alone, strict=True) if not by_itself]
