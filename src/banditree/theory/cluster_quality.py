"""Measure how well a clustering groups the means: width, distances and strong dominance.

The theorems sum over the sub-trees that branch off the path to the best arm; `find_branches` collects them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats, Places
from banditree.errors import InvalidValue
from banditree.theory.arithmetic import Means, add_exactly, divide, read_means
from banditree.tree import Tree
from banditree.tree.build import Name

Pair = tuple[Name, Name]


@dataclass(frozen=True, repr=False)
class Quality:
    """The quantities that the bounds depend on. A sub-optimal cluster is a top cluster without the best arm."""

    best_arm: Name  # a*; the first of equals
    best_cluster: Name  # C*: its top cluster, or the arm itself if it is directly below the root
    n_arms: int  # N
    n_best: int  # A*: number of arms in C*
    n_suboptimal: int  # K: number of sub-optimal clusters
    width: float  # w*: best minus worst mean in C*
    distance: dict[Name, float]  # d_C of each sub-optimal cluster: worst mean of C* minus best mean of C
    gap: dict[Name, float]  # Delta_C of each sub-optimal cluster: best mean of all minus best mean of C
    gammas: dict[Name, float]  # gamma_C = w* / d_C; infinite where d_C is not positive
    gamma: float  # their average; 0 if there is only one cluster
    dominance: bool  # strong dominance: every d_C is positive
    offenders: Pair | None  # where it fails: an arm of C*, and an arm outside C* that is as good or better
    hierarchical: bool  # strong dominance at every node on the path to the best arm
    hierarchical_offenders: Pair | None  # likewise, at the highest level that fails

    def __repr__(self) -> str:
        return (
            f"Quality(best arm {self.best_arm!r} in cluster {self.best_cluster!r}, A*={self.n_best:,} of "
            f"{self.n_arms:,} arms, K={self.n_suboptimal:,}, width {self.width:.4g}, gamma {self.gamma:.4g}, "
            f"strong dominance {_state(self.offenders)}, hierarchical {_state(self.hierarchical_offenders)})"
        )


def quality(tree: Tree, means: Means) -> Quality:
    """Compute width, distances and dominance of a clustering from the true (or estimated) means.

    Where dominance fails, the result has the pair of arms that breaks it; no error is raised. Arms directly below the
    root are clusters of one arm; if the best arm is one of them, those that are as good as it belong to its cluster. An
    equally good arm in any other cluster breaks dominance.

    Parameters
    ----------
    tree
        The clustering; its top clusters count.
    means
        ``{arm: mean}``, or an array in the order of ``tree.arms``; from 0 to 1.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    >>> q = quality(tree, {"s1": 0.25, "s2": 0.125, "h1": 0.75, "h2": 0.625, "h3": 0.5})
    >>> q.width, q.distance, q.gap, q.gamma
    (0.25, {'shoes': 0.25}, {'shoes': 0.5}, 1.0)
    >>> q.dominance, quality(tree, [0.5, 0.1, 0.9, 0.8, 0.4]).offenders
    (True, ('h3', 's1'))
    """
    return quality_of(find_branches(tree, read_means(tree, means)))


def quality_of(branches: Branches) -> Quality:
    """Compute the same from branches, whose means may be on any scale."""
    tree = branches.tree
    top = np.flatnonzero(branches.is_top)
    names = top_names(branches)
    gammas = branches.gammas.tolist()
    offender, deep_offender = branches.offender(top_only=True), branches.offender()
    best_arm = tree.arms[branches.star]
    return Quality(
        best_arm=best_arm,
        best_cluster=tree.path(best_arm)[0],
        n_arms=tree.n_arms,
        n_best=branches.n_best,
        n_suboptimal=len(top),
        width=branches.width,
        distance=dict(zip(names, branches.distance[top].tolist(), strict=True)),
        gap=dict(zip(names, branches.gap[top].tolist(), strict=True)),
        gammas=dict(zip(names, gammas, strict=True)),
        gamma=add_exactly(gammas) / len(top) if gammas else 0.0,
        dominance=offender is None,
        offenders=None if offender is None else branches.pair(offender),
        hierarchical=deep_offender is None,
        hierarchical_offenders=None if deep_offender is None else branches.pair(deep_offender),
    )


def top_names(branches: Branches) -> list[Name]:
    """Return the names of the sub-optimal top clusters, in the order of the tree."""
    names = [branches.tree.nodes.name(node) for node in branches.node[branches.is_top].tolist()]
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InvalidValue(f"{twice!r} is both a cluster and an arm directly below the root; rename one of the two")
    return names


def _state(offenders: Pair | None) -> str:
    return "holds" if offenders is None else f"fails ({offenders[1]!r} is as good as {offenders[0]!r} or better)"


# ---------------------------------------------------------------- the branches off the path to the best arm


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
    node: Places  # (branches,) top node of each
    level: Places  # (branches,) level of that node; 1 for the sub-optimal top clusters
    size: Places  # (branches,) number of arms
    best: Places  # (branches,) position of the best arm
    worst: Places  # (branches,) position of the worst arm
    floor: Places  # (branches,) position of the rival's worst arm

    @cached_property
    def gap(self) -> Floats:
        """Regret of the best arm of each, the paper's Delta: (branches,)."""
        return np.asarray(self.mu[self.star] - self.mu[self.best])

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
        return np.where(distance > 0, divide(self.width, np.where(distance > 0, distance, 1.0)), np.inf)

    def offender(self, *, top_only: bool = False) -> int | None:
        """Return a branch that breaks dominance, the worst one on the highest level that has any; None if none does."""
        is_offender = self.distance <= 0
        if top_only:
            is_offender &= self.is_top
        if not is_offender.any():
            return None
        is_offender &= self.level == self.level[is_offender.argmax()]
        return int(np.where(is_offender, self.distance, np.inf).argmin())

    def pair(self, branch: int) -> Pair:
        """Return the rival's worst arm and the branch's best arm."""
        return self.tree.arms[self.floor[branch]], self.tree.arms[self.best[branch]]

    def require_dominance(self) -> None:
        """Raise an error if a branch is not dominated by its rival."""
        branch = self.offender()
        if branch is None:
            return
        rival_arm, branch_arm = self.pair(branch)
        rival = self.tree.path(self.tree.arms[self.star])[: self.level[branch]]
        raise InvalidValue(
            "strong dominance fails, so the bound does not apply: "
            f"arm {branch_arm!r} (mean {self.mu[self.best[branch]]:.6g}) "
            f"of cluster {_join_names(self.tree.nodes.path(int(self.node[branch])))} is at least as good as "
            f"arm {rival_arm!r} (mean {self.mu[self.floor[branch]]:.6g}) of the optimal cluster {_join_names(rival)}; "
            "theory.quality shows all clusters, and theory.lai_robbins needs no dominance"
        )


def find_branches(tree: Tree, mu: Floats) -> Branches:
    """Collect the branches off the path to the best arm, in O(arms log arms)."""
    shape = tree.shape
    star = int(mu.argmax())
    leaf = int(shape.node_of[star])
    path = np.array(shape.path_up(leaf)[::-1])
    branch_of_arm = _branch_of_node(tree, path)[shape.node_of]  # (arms,)

    order = np.lexsort((mu, branch_of_arm))  # by branch, the worst arm first
    node, first, size = np.unique(branch_of_arm[order], return_index=True, return_counts=True)
    worst, best = order[first], order[first + size - 1]
    level = np.searchsorted(shape.levels, node, side="right") - 1

    is_best = (node == leaf) | (mu[best] == mu[star]) & (shape.content[node] >= 0) & (level == len(path) - 1)
    keep = np.flatnonzero(~is_best)
    node, level, size, best, worst = node[keep], level[keep], size[keep], best[keep], worst[keep]

    # The rival of a branch consists of the branches of all deeper levels and the best arm, which comes last.
    lowest = _lowest_from(mu, np.append(worst, star))
    floor = lowest[np.searchsorted(level, level, side="right")]
    top_floor = int(lowest[np.searchsorted(level, 1, side="right")])
    return Branches(tree, mu, star, top_floor, node, level, size, best, worst, floor)


def _branch_of_node(tree: Tree, path: Places) -> Places:
    """Return for each node the child of a path node that it is, or is below: (nodes,)."""
    shape = tree.shape
    on_path = np.zeros(shape.n_nodes, bool)
    on_path[path] = True
    branch = np.arange(shape.n_nodes)
    for low, high in zip(shape.levels[2:-1].tolist(), shape.levels[3:].tolist(), strict=True):
        parent = shape.parent[low:high]
        branch[low:high] = np.where(on_path[parent], branch[low:high], branch[parent])
    return branch


def _lowest_from(mu: Floats, positions: Places) -> Places:
    """Return for each entry the position with the lowest mean from there to the end: (positions,)."""
    back = mu[positions][::-1]
    is_new = back <= np.minimum.accumulate(back)
    entry = np.maximum.accumulate(np.where(is_new, np.arange(len(back)), 0))
    return positions[::-1][entry][::-1]


def _join_names(path: tuple[Name, ...]) -> str:
    return " / ".join(map(repr, path))
