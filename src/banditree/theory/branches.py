"""Find the sub-trees that branch off the path to the best arm: the comparisons that all the theorems sum over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue
from banditree.theory.arithmetic import Floats, over
from banditree.tree import Tree

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Branches:
    """The sub-trees that branch off the path from the root to the best arm, breadth-first.

    Each is compared with its rival, the child of the same node that contains the best arm. For siblings of the best
    arm that is the best arm itself, so the arms of the optimal cluster are not a special case. Siblings that are as
    good as the best arm are not branches: playing them costs nothing.
    """

    tree: Tree
    mu: Floats  # (arms,) in the order of tree.arms
    star: int  # position of the best arm a*, the first of equals
    top_floor: int  # position of the worst arm of the optimal top cluster
    node: Ints  # (branches,) top node of each
    level: Ints  # (branches,) level of that node; 1 for the sub-optimal top clusters
    size: Ints  # (branches,) number of arms
    best: Ints  # (branches,) position of the best arm
    worst: Ints  # (branches,) position of the worst arm
    floor: Ints  # (branches,) position of the rival's worst arm

    @cached_property
    def gap(self) -> Floats:
        """Regret of the best arm of each, the paper's Delta: (branches,)."""
        gap: Floats = self.mu[self.star] - self.mu[self.best]
        return gap

    @cached_property
    def distance(self) -> Floats:
        """Rival's worst mean minus the best mean of each, the paper's d; positive under dominance: (branches,)."""
        return self.mu[self.floor] - self.mu[self.best]

    @cached_property
    def is_top(self) -> NDArray[np.bool_]:
        """Whether each is a top cluster: (branches,)."""
        return np.equal(self.level, 1)

    @cached_property
    def width(self) -> float:
        """Width of the optimal top cluster, the paper's w*."""
        return float(self.mu[self.star] - self.mu[self.top_floor])

    @property
    def n_best(self) -> int:
        """Number of arms in the optimal top cluster, the paper's A*."""
        return self.tree.n_arms - int(self.size[self.is_top].sum())

    @property
    def gammas(self) -> Floats:
        """gamma_C = w* / d_C of the sub-optimal top clusters; infinite where dominance fails: (top branches,)."""
        distance = self.distance[self.is_top]
        return np.where(distance > 0, over(self.width, np.where(distance > 0, distance, 1.0)), np.inf)

    def offender(self, *, top_only: bool = False) -> int | None:
        """Return a branch that breaks dominance, the worst one on the highest level that has any; None if none does."""
        fails = self.distance <= 0
        if top_only:
            fails &= self.is_top
        if not fails.any():
            return None
        fails &= self.level == self.level[fails.argmax()]
        return int(np.where(fails, self.distance, np.inf).argmin())

    def pair(self, branch: int) -> tuple[str | int, str | int]:
        """Return the rival's worst arm and the branch's best arm."""
        return self.tree.arms[self.floor[branch]], self.tree.arms[self.best[branch]]

    def require_dominance(self) -> None:
        """Raise an error if a branch is not dominated by its rival."""
        branch = self.offender()
        if branch is None:
            return
        ours, theirs = self.pair(branch)
        rival = self.tree.path(self.tree.arms[self.star])[: self.level[branch]]
        raise InvalidValue(
            "strong dominance fails, so the bound does not apply: "
            f"arm {theirs!r} (mean {self.mu[self.best[branch]]:.6g}) "
            f"of cluster {_show(self.tree.path_of_node(int(self.node[branch])))} is at least as good as "
            f"arm {ours!r} (mean {self.mu[self.floor[branch]]:.6g}) of the optimal cluster {_show(rival)}; "
            "theory.quality shows all clusters, and theory.lai_robbins needs no dominance"
        )


def branches(tree: Tree, mu: Floats) -> Branches:
    """Collect the branches off the path to the best arm, in O(arms log arms)."""
    shape = tree.shape
    star = int(mu.argmax())
    leaf = int(shape.node_of[star])
    path = np.array(shape.path_up(leaf)[::-1])
    of_arm = _branch_of_node(tree, path)[shape.node_of]  # (arms,)

    order = np.lexsort((mu, of_arm))  # by branch, the worst arm first
    node, first, size = np.unique(of_arm[order], return_index=True, return_counts=True)
    worst, best = order[first], order[first + size - 1]
    level = np.searchsorted(shape.levels, node, side="right") - 1

    beside = (node == leaf) | (mu[best] == mu[star]) & (shape.content[node] >= 0) & (level == len(path) - 1)
    keep = np.flatnonzero(~beside)
    node, level, size, best, worst = node[keep], level[keep], size[keep], best[keep], worst[keep]

    # The rival of a branch consists of the branches of all deeper levels and the best arm, which comes last here.
    lowest = _lowest_from(mu, np.append(worst, star))
    floor = lowest[np.searchsorted(level, level, side="right")]
    top_floor = int(lowest[np.searchsorted(level, 1, side="right")])
    return Branches(tree, mu, star, top_floor, node, level, size, best, worst, floor)


def _branch_of_node(tree: Tree, path: Ints) -> Ints:
    """Return for each node the child of a path node that it is, or is below: (nodes,)."""
    shape = tree.shape
    on_path = np.zeros(shape.n_nodes, bool)
    on_path[path] = True
    branch = np.arange(shape.n_nodes)
    for low, high in zip(shape.levels[2:-1].tolist(), shape.levels[3:].tolist(), strict=True):
        parent = shape.parent[low:high]
        branch[low:high] = np.where(on_path[parent], branch[low:high], branch[parent])
    return branch


def _lowest_from(mu: Floats, positions: Ints) -> Ints:
    """Return for each entry the position with the lowest mean from there to the end: (positions,)."""
    back = mu[positions][::-1]
    is_new = back <= np.minimum.accumulate(back)
    entry = np.maximum.accumulate(np.where(is_new, np.arange(len(back)), 0))
    return positions[::-1][entry][::-1]


def _show(path: tuple[str | int, ...]) -> str:
    return " / ".join(map(repr, path))
