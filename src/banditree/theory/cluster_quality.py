"""Measure how well a clustering groups the means: width, distances and strong dominance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from banditree.errors import InvalidValue
from banditree.theory.arithmetic import total
from banditree.theory.branches import Branches, branches
from banditree.theory.means import Means, of_tree
from banditree.tree import Tree

Arm = str | int
Pair = tuple[Arm, Arm]


@dataclass(frozen=True, repr=False)
class Quality:
    """The quantities that the bounds depend on. A sub-optimal cluster is a top cluster without the best arm."""

    best_arm: Arm  # a*; the first of equals
    best_cluster: Arm  # C*: its top cluster, or the arm itself if it is directly below the root
    n_arms: int  # N
    n_best: int  # A*: number of arms in C*
    n_suboptimal: int  # K: number of sub-optimal clusters
    width: float  # w*: best minus worst mean in C*
    distance: dict[Arm, float]  # d_C of each sub-optimal cluster: worst mean of C* minus best mean of C
    gap: dict[Arm, float]  # Delta_C of each sub-optimal cluster: best mean of all minus best mean of C
    gammas: dict[Arm, float]  # gamma_C = w* / d_C; infinite where d_C is not positive
    gamma: float  # their average; 0 if there is only one cluster
    dominance: bool  # strong dominance: every d_C is positive
    offenders: Pair | None  # where it fails: an arm of C*, and an arm outside C* that is as good or better
    hierarchical: bool  # strong dominance at every node on the path to the best arm
    hierarchical_offenders: Pair | None  # likewise, at the highest level that fails

    def __repr__(self) -> str:
        return (
            f"Quality(best arm {self.best_arm!r} in cluster {self.best_cluster!r}, A*={self.n_best:,} of "
            f"{self.n_arms:,} arms, K={self.n_suboptimal:,}, width {self.width:.4g}, gamma {self.gamma:.4g}, "
            f"strong dominance {_verdict(self.offenders)}, hierarchical {_verdict(self.hierarchical_offenders)})"
        )


def quality(tree: Tree, means: Means) -> Quality:
    """Compute width, distances and dominance of a clustering from the true (or estimated) means.

    Where dominance fails, the result has the pair of arms that breaks it; no error is raised. Arms directly below the
    root are clusters of one arm; if the best arm is one of them, those that are as good as it belong to its cluster. An
    equally good arm in any other cluster breaks dominance.

    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    >>> q = quality(tree, {"s1": 0.25, "s2": 0.125, "h1": 0.75, "h2": 0.625, "h3": 0.5})
    >>> q.width, q.distance, q.gap, q.gamma
    (0.25, {'shoes': 0.25}, {'shoes': 0.5}, 1.0)
    >>> q.dominance, quality(tree, [0.5, 0.1, 0.9, 0.8, 0.4]).offenders
    (True, ('h3', 's1'))
    """
    return quality_of(branches(tree, of_tree(tree, means)))


def quality_of(found: Branches) -> Quality:
    """Compute the same from branches, whose means may be on any scale."""
    tree = found.tree
    top = np.flatnonzero(found.is_top)
    names = top_names(found)
    gammas = found.gammas.tolist()
    offender, deep_offender = found.offender(top_only=True), found.offender()
    best_arm = tree.arms[found.star]
    return Quality(
        best_arm=best_arm,
        best_cluster=tree.path(best_arm)[0],
        n_arms=tree.n_arms,
        n_best=found.n_best,
        n_suboptimal=len(top),
        width=found.width,
        distance=dict(zip(names, found.distance[top].tolist(), strict=True)),
        gap=dict(zip(names, found.gap[top].tolist(), strict=True)),
        gammas=dict(zip(names, gammas, strict=True)),
        gamma=total(gammas) / len(top) if gammas else 0.0,
        dominance=offender is None,
        offenders=None if offender is None else found.pair(offender),
        hierarchical=deep_offender is None,
        hierarchical_offenders=None if deep_offender is None else found.pair(deep_offender),
    )


def top_names(found: Branches) -> list[Arm]:
    """Return the names of the sub-optimal top clusters, in the order of the tree."""
    names = [found.tree.name(node) for node in found.node[found.is_top].tolist()]
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InvalidValue(f"{twice!r} is both a cluster and an arm directly below the root; rename one of the two")
    return names


def _verdict(offenders: Pair | None) -> str:
    return "holds" if offenders is None else f"fails ({offenders[1]!r} is as good as {offenders[0]!r} or better)"
