"""Compute the bounds as curves over time, for plots."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from banditree.errors import InvalidValue
from banditree.theory.arithmetic import Floats
from banditree.theory.bounds import hts_upper, lai_robbins, lower, minimax_lower, tsc_minimax, tsc_upper
from banditree.theory.cluster_quality import quality
from banditree.theory.means import Means, of_tree
from banditree.tree import Tree


def curve(coefficient: float, times: ArrayLike, *, loglog: bool = False) -> Floats:
    """Return ``coefficient * log T`` at every time: (times,). ``loglog=True`` adds log log T, as in Theorems 1 and 2.

    Before T = e, where log log T is negative, it counts as 0.

    >>> curve(2.0, [1, 10, 100]).round(3).tolist()
    [0.0, 4.605, 9.21]
    """
    logs = np.log(_times(times))
    return coefficient * (logs + np.log(np.maximum(logs, 1.0)) if loglog else logs)


def bound_curves(tree: Tree, means: Means, times: ArrayLike, *, minimax: bool = False) -> dict[str, Floats]:
    """Return every bound that applies to this instance, by name, at every time: (times,) each.

    Lai and Robbins always applies; the bounds of Theorems 3 and 5 apply under strong dominance, and that of HTS under
    hierarchical strong dominance, if the tree has more than one level. ``minimax=True`` adds the square roots of
    Theorems 4 and 6, which are known only up to a constant (taken as 1).

    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]})
    >>> list(bound_curves(tree, [0.2, 0.3, 0.7, 0.8], [10, 100]))
    ['TSC upper (Theorem 3)', 'Lower (Theorem 5)', 'Lai and Robbins']
    """
    steps = _times(times)
    found = quality(tree, means)
    curves: dict[str, Floats] = {}
    if found.dominance:
        curves["TSC upper (Theorem 3)"] = curve(tsc_upper(tree, means), steps)
    if found.hierarchical and tree.depth > 1:
        curves["HTS upper (Theorem 7)"] = curve(hts_upper(tree, means), steps)
    if found.dominance:
        curves["Lower (Theorem 5)"] = curve(lower(tree, means), steps)
    curves["Lai and Robbins"] = curve(lai_robbins(of_tree(tree, means)), steps)
    if minimax and found.dominance:
        curves["TSC minimax (Theorem 4)"] = np.sqrt(tsc_minimax(tree, means) * steps * np.log(steps))
        curves["Minimax lower (Theorem 6)"] = np.sqrt(minimax_lower(tree, means) * steps)
    return curves


def _times(times: ArrayLike) -> Floats:
    steps: Floats = np.asarray(times, np.float64)
    wrong = ~((steps >= 1) & (steps < np.inf))
    if wrong.any():
        raise InvalidValue(f"time {steps[wrong].flat[0]} must be a number of steps, at least 1")
    return steps
