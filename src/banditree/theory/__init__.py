"""Compute cluster quality and the paper's bounds, Theorems 1 to 7, for Bernoulli arms with known means.

``means`` is ``{arm: mean}`` or an array in the order of ``tree.arms``. Coefficients multiply the natural log of T; the
factor (1 + epsilon) and the terms o(log T) of the theorems are left out. The arms of a *top cluster* are the arms
below one child of the root; an arm directly below the root is a cluster of one arm, named by its id, so that on a flat
tree every bound is that of a flat bandit.

>>> from banditree import theory
>>> from banditree.tree import Tree
>>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
>>> means = [0.25, 0.125, 0.875, 0.875, 0.75]
>>> theory.quality(tree, means).distance
{'shoes': 0.5}
>>> round(theory.lower(tree, means), 2), round(theory.tsc_upper(tree, means), 2)
(2.6, 3.31)
"""

from banditree.theory.bounds import (
    arm_plays,
    bound_curves,
    cluster_plays,
    curve,
    hts_upper,
    lai_robbins,
    lower,
    minimax_lower,
    tsc_minimax,
    tsc_upper,
)
from banditree.theory.cluster_quality import Quality, quality

__all__ = [
    "Quality", "arm_plays", "bound_curves", "cluster_plays", "curve", "hts_upper", "lai_robbins", "lower",
    "minimax_lower", "quality", "tsc_minimax", "tsc_upper",
]  # fmt: skip
