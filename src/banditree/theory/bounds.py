"""The bounds of Theorems 1 to 7, with natural logarithms, as numbers and as curves over time.

Each docstring has the paper's formula.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from banditree.base.arrays import Floats
from banditree.errors import InvalidValue
from banditree.errors.checks import choice, real
from banditree.theory.arithmetic import Means, add_exactly, divide, kl, read_flat_means, read_means
from banditree.theory.cluster_quality import Branches, find_branches, quality, top_names
from banditree.tree import Tree
from banditree.tree.build import Name


def arm_plays(means: Means) -> dict[Name, float]:
    """Theorem 1 (Kaufmann): the plays of each sub-optimal arm by TS are at most this times log T + log log T.

    .. math:: 1 / D(\\mu_a, \\mu^*)

    Keys are the arms of a mapping, or positions. Arms as good as the best are not sub-optimal.

    >>> {arm: round(plays, 2) for arm, plays in arm_plays({"a": 0.5, "b": 0.4}).items()}
    {'b': 49.66}
    """
    arms, mu = read_flat_means(means)
    below = np.flatnonzero(mu < mu.max())
    plays = divide(1.0, kl(mu[below], mu.max()))
    return {arms[i]: value for i, value in zip(below.tolist(), plays.tolist(), strict=True)}


def cluster_plays(tree: Tree, means: Means) -> dict[Name, float]:
    """Theorem 2, the lemma: the plays of each sub-optimal cluster by TSC are at most this times log T + log log T.

    .. math:: 1 / D(\\overline\\mu_C, \\underline\\mu_{C^*})
    """
    branches = _dominated_branches(tree, means, 1)
    best, floor = branches.mu[branches.best[branches.is_top]], branches.mu[branches.floor[branches.is_top]]
    return dict(zip(top_names(branches), divide(1.0, kl(best, floor)).tolist(), strict=True))


def tsc_upper(tree: Tree, means: Means, *, form: Literal["kl", "pinsker"] = "kl") -> float:
    """Theorem 3: the regret of TSC is at most this times log T.

    .. math:: \\sum_{C \\ne C^*} \\frac{\\Delta_C}{D(\\overline\\mu_C, \\underline\\mu_{C^*})}
              + \\sum_{a \\in C^*} \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}

    Arms as good as the best one add nothing. On a flat tree, where each arm is a cluster, this is :func:`lai_robbins`.

    Parameters
    ----------
    tree, means
        As for :func:`quality`.
    form
        "kl", as above, or "pinsker" for the weaker form after Pinsker's inequality,
        :math:`\\frac12 (\\sum (1 + \\gamma_C) / d_C + \\sum 1 / \\Delta_a)`.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]})
    >>> tsc_upper(tree, [0.25, 0.125, 0.75, 0.5], form="pinsker")  # (0.5 / 0.25**2 + 1 / 0.25) / 2
    6.0
    """
    choice("form", form, ("kl", "pinsker"))
    return hts_upper(tree, means, form=form, depth=1)


def tsc_minimax(tree: Tree, means: Means, *, horizon: float | None = None) -> float:
    """Theorem 4: for any means, the regret of TSC is of the order of the square root of this times T log T.

    .. math:: A^* + K (1 + \\gamma)

    With a horizon T, :math:`\\sqrt{(A^* + K (1 + \\gamma)) T \\log T}`, which holds up to an unknown constant.
    """
    branches = _dominated_branches(tree, means, 1)
    constant = branches.n_best + add_exactly(1 + branches.gammas)
    return constant if horizon is None else sqrt(constant * real("horizon", horizon, 1) * log(horizon))


def lower(tree: Tree, means: Means) -> float:
    """Theorem 5: a policy that is good on all instances with strong dominance has at least this regret times log T.

    .. math:: \\sum_{a \\in C^*} \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}
              + \\sum_{C \\ne C^*} \\frac{\\Delta_C}{D(\\underline\\mu_C, \\mu^*)}
    """
    branches = _dominated_branches(tree, means, 1)
    return add_exactly(divide(branches.gap, kl(branches.mu[branches.worst], branches.mu[branches.star])))


def minimax_lower(tree: Tree, means: Means, *, horizon: float | None = None) -> float:
    """Theorem 6: the worst-case regret of any policy is at least of the order of the square root of this times T.

    .. math:: A^* + K

    With a horizon T, :math:`\\sqrt{(A^* + K) T}`, which holds up to an unknown constant.
    """
    branches = _dominated_branches(tree, means, 1)
    constant = float(branches.n_best + branches.is_top.sum())
    return constant if horizon is None else sqrt(constant * real("horizon", horizon, 1))


def hts_upper(
    tree: Tree, means: Means, *, form: Literal["kl", "pinsker", "printed"] = "kl", depth: int | None = None
) -> float:
    """Theorem 7: the regret of HTS on the top ``depth`` levels of clusters (default: all) is at most this times log T.

    At every node on the path to the best arm, each child j without it is compared with the child that contains it; at
    the last such node, arms (and clusters, in an uneven tree) are compared with the best arm itself.

    .. math:: \\sum_{i} \\sum_{j} \\frac{\\Delta_i^j}{D(\\max_{a \\in T_i^j} \\mu_a, \\min_{a \\in T_i^*} \\mu_a)}

    This is Theorem 3 level by level: it is :func:`lai_robbins` at depth 0 and :func:`tsc_upper` at depth 1.

    Parameters
    ----------
    tree, means
        As for :func:`quality`; all levels of clusters count.
    form
        "kl", as above; "printed" for the paper's :math:`\\sum \\Delta / d^2 + \\sum 1 / \\Delta_a`; "pinsker" for half
        of that, which is what Pinsker's inequality gives.
    depth
        How many levels of clusters HTS uses. Default: all.
    """
    choice("form", form, ("kl", "pinsker", "printed"))
    branches = _dominated_branches(tree, means, depth)
    if form == "kl":
        return add_exactly(divide(branches.gap, kl(branches.mu[branches.best], branches.mu[branches.floor])))
    printed = add_exactly(divide(divide(branches.gap, branches.distance), branches.distance))
    return printed if form == "printed" else printed / 2


def lai_robbins(means: Means) -> float:
    """Lai and Robbins: no uniformly good policy of a flat bandit has less regret than this times log T; TS reaches it.

    .. math:: \\sum_a \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}

    >>> round(lai_robbins([0.5, 0.4]), 3)
    4.966
    """
    _, mu = read_flat_means(means)
    below = mu[mu < mu.max()]
    return add_exactly(divide(mu.max() - below, kl(below, mu.max())))


def _dominated_branches(tree: Tree, means: Means, depth: int | None) -> Branches:
    """Return the branches of the tree, cut at a depth; raise an error where dominance fails."""
    mu = read_means(tree, means)
    branches = find_branches(tree if depth is None else tree.cut(depth), mu)
    branches.require_dominance()
    return branches


# ---------------------------------------------------------------- curves over time


def curve(coefficient: float, times: ArrayLike, *, loglog: bool = False) -> Floats:
    """Return ``coefficient * log T`` at every time: (times,). ``loglog=True`` adds log log T, as in Theorems 1 and 2.

    Before T = e, where log log T is negative, it counts as 0.

    >>> curve(2.0, [1, 10, 100]).round(3).tolist()
    [0.0, 4.605, 9.21]
    """
    logs = np.log(_read_times(times))
    return coefficient * (logs + np.log(np.maximum(logs, 1.0)) if loglog else logs)


def bound_curves(tree: Tree, means: Means, times: ArrayLike, *, minimax: bool = False) -> dict[str, Floats]:
    """Return every bound that applies to this instance, by name, at every time: (times,) each.

    Lai and Robbins always applies; the bounds of Theorems 3 and 5 apply under strong dominance, and that of HTS under
    hierarchical strong dominance, if the tree has more than one level.

    Parameters
    ----------
    tree, means
        As for :func:`quality`.
    times
        Numbers of steps, at least 1.
    minimax
        Add the square roots of Theorems 4 and 6, which are known only up to a constant (taken as 1).

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]})
    >>> list(bound_curves(tree, [0.2, 0.3, 0.7, 0.8], [10, 100]))
    ['TSC upper (Theorem 3)', 'Lower (Theorem 5)', 'Lai and Robbins']
    """
    steps = _read_times(times)
    clustering = quality(tree, means)
    curves: dict[str, Floats] = {}
    if clustering.dominance:
        curves["TSC upper (Theorem 3)"] = curve(tsc_upper(tree, means), steps)
    if clustering.hierarchical and tree.depth > 1:
        curves["HTS upper (Theorem 7)"] = curve(hts_upper(tree, means), steps)
    if clustering.dominance:
        curves["Lower (Theorem 5)"] = curve(lower(tree, means), steps)
    curves["Lai and Robbins"] = curve(lai_robbins(read_means(tree, means)), steps)
    if minimax and clustering.dominance:
        curves["TSC minimax (Theorem 4)"] = np.sqrt(tsc_minimax(tree, means) * steps * np.log(steps))
        curves["Minimax lower (Theorem 6)"] = np.sqrt(minimax_lower(tree, means) * steps)
    return curves


def _read_times(times: ArrayLike) -> Floats:
    steps: Floats = np.asarray(times, np.float64)
    is_wrong = ~((steps >= 1) & (steps < np.inf))
    if is_wrong.any():
        raise InvalidValue(f"time {steps[is_wrong].flat[0]} must be a number of steps, at least 1")
    return steps
