"""The bounds of Theorems 1 to 7, with natural logarithms; each docstring has the paper's formula."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, Literal

import numpy as np

from banditree.errors.checks import choice, real
from banditree.theory.arithmetic import kl, over, total
from banditree.theory.branches import Branches, branches
from banditree.theory.cluster_quality import Arm, top_names
from banditree.theory.means import Means, flat, of_tree
from banditree.tree import Tree


def arm_plays(means: Means) -> dict[Any, float]:
    """Theorem 1 (Kaufmann): the plays of each sub-optimal arm by TS are at most this times log T + log log T.

    .. math:: 1 / D(\\mu_a, \\mu^*)

    Keys are the arms of a mapping, or positions. Arms as good as the best are not sub-optimal.

    >>> {arm: round(plays, 2) for arm, plays in arm_plays({"a": 0.5, "b": 0.4}).items()}
    {'b': 49.66}
    """
    arms, mu = flat(means)
    below = np.flatnonzero(mu < mu.max())
    plays = over(1.0, kl(mu[below], mu.max()))
    return {arms[i]: value for i, value in zip(below.tolist(), plays.tolist(), strict=True)}


def cluster_plays(tree: Tree, means: Means) -> dict[Arm, float]:
    """Theorem 2, the lemma: the plays of each sub-optimal cluster by TSC are at most this times log T + log log T.

    .. math:: 1 / D(\\overline\\mu_C, \\underline\\mu_{C^*})
    """
    found = _dominated(tree, means, 1)
    best, floor = found.mu[found.best[found.is_top]], found.mu[found.floor[found.is_top]]
    return dict(zip(top_names(found), over(1.0, kl(best, floor)).tolist(), strict=True))


def tsc_upper(tree: Tree, means: Means, *, form: Literal["kl", "pinsker"] = "kl") -> float:
    """Theorem 3: the regret of TSC is at most this times log T.

    .. math:: \\sum_{C \\ne C^*} \\frac{\\Delta_C}{D(\\overline\\mu_C, \\underline\\mu_{C^*})}
              + \\sum_{a \\in C^*} \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}

    ``form="pinsker"`` is the weaker form after Pinsker's inequality,
    :math:`\\frac12 (\\sum (1 + \\gamma_C) / d_C + \\sum 1 / \\Delta_a)`. Arms as good as the best one add nothing. On
    a flat tree, where each arm is a cluster, this is :func:`lai_robbins`.

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
    found = _dominated(tree, means, 1)
    under = found.n_best + total(1 + found.gammas)
    return under if horizon is None else sqrt(under * real("horizon", horizon, 1) * log(horizon))


def lower(tree: Tree, means: Means) -> float:
    """Theorem 5: a policy that is good on all instances with strong dominance has at least this regret times log T.

    .. math:: \\sum_{a \\in C^*} \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}
              + \\sum_{C \\ne C^*} \\frac{\\Delta_C}{D(\\underline\\mu_C, \\mu^*)}
    """
    found = _dominated(tree, means, 1)
    return total(over(found.gap, kl(found.mu[found.worst], found.mu[found.star])))


def minimax_lower(tree: Tree, means: Means, *, horizon: float | None = None) -> float:
    """Theorem 6: the worst-case regret of any policy is at least of the order of the square root of this times T.

    .. math:: A^* + K

    With a horizon T, :math:`\\sqrt{(A^* + K) T}`, which holds up to an unknown constant.
    """
    found = _dominated(tree, means, 1)
    under = float(found.n_best + found.is_top.sum())
    return under if horizon is None else sqrt(under * real("horizon", horizon, 1))


def hts_upper(
    tree: Tree, means: Means, *, form: Literal["kl", "pinsker", "printed"] = "kl", depth: int | None = None
) -> float:
    """Theorem 7: the regret of HTS on the top ``depth`` levels of clusters (default: all) is at most this times log T.

    At every node on the path to the best arm, each child j without it is compared with the child that contains it; at
    the last such node, arms (and clusters, in an uneven tree) are compared with the best arm itself.

    .. math:: \\sum_{i} \\sum_{j} \\frac{\\Delta_i^j}{D(\\max_{a \\in T_i^j} \\mu_a, \\min_{a \\in T_i^*} \\mu_a)}

    This is Theorem 3 level by level: it is :func:`lai_robbins` at depth 0 and :func:`tsc_upper` at depth 1.
    ``form="printed"`` is the paper's :math:`\\sum \\Delta / d^2 + \\sum 1 / \\Delta_a`; ``form="pinsker"`` is half of
    that, which is what Pinsker's inequality gives.
    """
    choice("form", form, ("kl", "pinsker", "printed"))
    found = _dominated(tree, means, depth)
    if form == "kl":
        return total(over(found.gap, kl(found.mu[found.best], found.mu[found.floor])))
    printed = total(over(over(found.gap, found.distance), found.distance))
    return printed if form == "printed" else printed / 2


def lai_robbins(means: Means) -> float:
    """Lai and Robbins: no uniformly good policy of a flat bandit has less regret than this times log T; TS reaches it.

    .. math:: \\sum_a \\frac{\\Delta_a}{D(\\mu_a, \\mu^*)}

    >>> round(lai_robbins([0.5, 0.4]), 3)
    4.966
    """
    _, mu = flat(means)
    below = mu[mu < mu.max()]
    return total(over(mu.max() - below, kl(below, mu.max())))


def _dominated(tree: Tree, means: Means, depth: int | None) -> Branches:
    mu = of_tree(tree, means)
    found = branches(tree if depth is None else tree.cut(depth), mu)
    found.require_dominance()
    return found
