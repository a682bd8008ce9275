"""Whether two samples of choices may come from one distribution.

Given the total n of an arm, its share of the two differs by more than t sqrt(n) with probability at most
2 exp(-t^2 / 2) (Hoeffding); at t = 5.5 that is 5e-7, so that a policy which keeps the laws passes with practically
every seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

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
