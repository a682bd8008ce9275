"""Whether two samples of choices may come from one distribution, or one sample from given probabilities.

Given the total n of an arm, its share of the two differs by more than t sqrt(n) with probability at most
2 exp(-t^2 / 2) (Hoeffding); at t = 5.5 that is 5e-7, so that a policy which keeps the laws passes with practically
every seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np

from banditree.tree import Tree

DEVIATIONS = 5.5  # that are not chance


def alike(one: Counter[Hashable], two: Counter[Hashable], tree: Tree | None = None) -> bool:
    """Whether two samples of equal size may come from one distribution.

    Compared arm by arm, by top clusters of ``tree``, and in the sum over all arms: many small differences are one large
    one, and an arm chosen 30 times or less cannot stand out by itself.

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
    """Whether a sample of independent choices may come from these probabilities, by arms and by top clusters.

    Of n choices those of probability p are further than d from n p with probability at most
    2 exp(-d^2 / (2 n p (1 - p) + 2 d / 3)) (Bernstein); d is where the exponent is -t^2 / 2, with t as above.

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
    """Whether pairs of counts differ by chance alone, each of them and all together: (k, 2).

    Given its sum, a pair's squared difference is the sum on average. So all together are about chi-square with k
    degrees of freedom, whose far quantile is Wilson and Hilferty's.
    """
    counts = counts[counts.sum(axis=1) > 0]
    squares = (counts[:, 0] - counts[:, 1]) ** 2 / counts.sum(axis=1)
    k = len(counts)
    if k == 0:
        return True
    most = k * (1 - 2 / (9 * k) + DEVIATIONS * np.sqrt(2 / (9 * k))) ** 3
    return bool(squares.max() <= DEVIATIONS**2 and squares.sum() <= most)
