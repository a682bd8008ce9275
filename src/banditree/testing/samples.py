"""Test whether two samples of choices have the same distribution, or one sample has given probabilities.

If an arm was chosen n times in all, its counts in the two samples differ by more than t sqrt(n) with probability at
most 2 exp(-t^2 / 2) (Hoeffding); at t = 5.5 that is 5e-7, so that a policy that keeps the laws passes with practically
every seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np

from banditree.tree import Tree

DEVIATIONS = 5.5  # standard deviations that are not chance


def alike(one: Counter[Hashable], two: Counter[Hashable], tree: Tree | None = None) -> bool:
    """Say whether two samples of equal size may come from the same distribution.

    They are compared arm by arm, by top clusters of ``tree``, and in total over all arms, because many small
    differences add up, and an arm chosen 30 times or less cannot differ significantly by itself.

    >>> alike(Counter({"a": 30, "b": 5}), Counter({"a": 25, "b": 10}))
    True
    >>> alike(Counter({arm: 30 for arm in range(20)}), Counter({arm: 30 for arm in range(20, 40)}))
    False
    """
    arms = sorted({*one, *two}, key=repr)
    counts = np.array([[one[arm], two[arm]] for arm in arms], float).reshape(-1, 2)
    clusters = tree.clusters.values() if tree is not None else ()
    grouped = np.array([[sum(each[arm] for arm in cluster) for each in (one, two)] for cluster in clusters], float)
    return all(_close(each) for each in (counts, grouped.reshape(-1, 2)))


def fits(seen: Counter[Hashable], chance: Mapping[Hashable, float], tree: Tree) -> bool:
    """Say whether a sample of independent choices may come from these probabilities, by arm and by top cluster.

    Among n choices the number of those with probability p differs from n p by more than d with probability at most
    2 exp(-d^2 / (2 n p (1 - p) + 2 d / 3)) (Bernstein); d is such that the exponent is -t^2 / 2, with t as above.

    >>> tree = Tree(["a", "b"])
    >>> fits(Counter(a=40, b=60), {"a": 0.5, "b": 0.5}, tree), fits(Counter(a=10, b=90), {"a": 0.5, "b": 0.5}, tree)
    (True, False)
    """
    n, square = seen.total(), DEVIATIONS**2
    for arms in (*((arm,) for arm in {*seen, *chance}), *tree.clusters.values()):
        p = min(sum(chance.get(arm, 0.0) for arm in arms), 1.0)
        off = abs(sum(seen[arm] for arm in arms) - n * p)
        if off > (0 if p == 0 else square / 6 + np.sqrt((square / 6) ** 2 + square * n * p * (1 - p))):
            return False
    return True


def _close(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    """Say whether pairs of counts, (k, 2), may differ by chance alone, each of them and all together.

    Given the sum of a pair, the expected square of its difference is that sum. So the total is about chi-square with k
    degrees of freedom, whose far quantile is approximated by Wilson and Hilferty.
    """
    counts = counts[counts.sum(axis=1) > 0]
    squares = (counts[:, 0] - counts[:, 1]) ** 2 / counts.sum(axis=1)
    k = len(counts)
    if k == 0:
        return True
    most = k * (1 - 2 / (9 * k) + DEVIATIONS * np.sqrt(2 / (9 * k))) ** 3
    return bool(squares.max() <= DEVIATIONS**2 and squares.sum() <= most)
