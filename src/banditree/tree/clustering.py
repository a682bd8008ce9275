"""Trees out of features: scikit-learn's k-means and SciPy's agglomerative clustering, which come with an extra."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue, MissingExtra, missing_extra
from banditree.errors.checks import choice, whole
from banditree.stream import Stream, generator
from banditree.tree.build import ids_of
from banditree.tree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Rng = np.random.Generator | Stream

LINKAGES = ("ward", "single", "complete", "average", "weighted", "centroid", "median")
SMALL = 512  # up to so many points, all starts of a fit are drawn at once; see `_Starts`


def kmeans(
    X: Any,
    branching: int = 15,
    depth: int = 2,
    arms: Iterable[Any] | None = None,
    rng: Any = 0,
    *,
    n_init: int = 10,
) -> Tree:
    """Split the arms into ``branching`` clusters by k-means, each cluster again, and so on, ``depth`` times.

    ``X`` has a row of features an arm, (arms, features), or one feature an arm, (arms,). A cluster with no more arms
    than ``branching``, or whose arms are all alike, is not split. Where there are no more distinct rows than
    ``branching``, they are the clusters. ``n_init`` is scikit-learn's: the best of so many starts is kept.

    >>> tree = kmeans([0.0, 0.1, 5.0, 5.1, 9.0], branching=3, depth=1, arms=["a", "b", "c", "d", "e"])
    >>> tree.clusters
    {0: ['a', 'b'], 1: ['c', 'd'], 2: ['e']}
    """
    points = _features(X)
    branching = whole("branching", branching, 2)
    depth = whole("depth", depth, 0)
    n_init = whole("n_init", n_init, 1)
    ids = ids_of(arms, len(points), "rows of X")
    stream = generator(rng)
    paths: list[tuple[Any, ...]] = [()] * len(points)
    level = [np.arange(len(points))]  # the clusters to split next: positions of their arms
    with _quick():
        for _ in range(depth):
            below: list[Ints] = []
            for members in level:
                labels = _split(points[members], branching, n_init, stream)
                if labels is None:
                    continue
                for position, label in zip(members.tolist(), labels.tolist(), strict=True):
                    paths[position] = (*paths[position], label)
                below += [members[labels == label] for label in range(int(labels.max()) + 1)]
            level = below
    return Tree.from_paths([(*path, arm) for path, arm in zip(paths, ids, strict=True)])


def agglomerative(X: Any, linkage: str = "ward", arms: Iterable[Any] | None = None) -> Tree:
    """The full binary tree of agglomerative clustering: the nearest two are merged, again and again.

    ``X`` is as in :func:`kmeans`; ``linkage`` is one of SciPy's methods. Takes memory of the order of arms squared.

    >>> agglomerative([0.0, 0.1, 5.0, 5.2, 9.0]).path(0)
    (5, 0)
    """
    points = _features(X)
    method = choice("linkage", linkage, LINKAGES)
    ids = ids_of(arms, len(points), "rows of X")
    if len(points) == 1:
        return Tree(ids)  # nothing to merge
    try:
        from scipy.cluster import hierarchy
    except ImportError as error:
        raise _missing("agglomerative", "SciPy") from error
    return Tree.from_linkage(hierarchy.linkage(points, method=method), ids)


def _split(points: Floats, k: int, n_init: int, rng: Rng) -> Ints | None:
    """A cluster number for every point, in order of first appearance: (points,); None where there is no split."""
    if len(points) <= k:
        return None
    points = points - points.mean(axis=0)
    points = points / (np.abs(points).max() or 1.0)  # squares of tiny distances would vanish
    _, labels = np.unique(points, axis=0, return_inverse=True)
    labels = labels.ravel()  # NumPy 2.0 gives a column
    if labels.max() >= k:
        labels = _fit(points, k, n_init, rng)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return None if len(first) == 1 else first.argsort().argsort()[labels]


def _fit(points: Floats, k: int, n_init: int, rng: Rng) -> Ints:
    """Labels of scikit-learn's KMeans: (points,)."""
    from sklearn.cluster import KMeans

    init = _Starts(n_init, rng) if len(points) <= SMALL else "k-means++"
    model = KMeans(k, init=init, n_init=n_init, random_state=int(rng.integers(2**31)))
    labels: Ints = model.fit(points).labels_
    return labels


class _Starts:
    """Starting centres for scikit-learn's ``init``: its own greedy k-means++, for all starts of a small fit at once.

    A deep tree is hundreds of tiny fits, in which four fifths of the time went into drawing the starts one by one.
    Arthur and Vassilvitskii (2007): a point becomes the next centre with probability proportional to its squared
    distance to the nearest centre so far; greedy: of 2 + log k such candidates, the one that helps most.
    """

    def __init__(self, n_init: int, rng: Rng) -> None:
        self.n_init, self.rng = n_init, rng
        self.left: Iterator[Floats] | None = None

    def __call__(self, points: Floats, k: int, random_state: object) -> Floats:
        if self.left is None:
            self.left = iter(points[self._draw(points, k)])
        return next(self.left)

    def _draw(self, points: Floats, k: int) -> Ints:
        """Which points the centres are: (starts, k)."""
        squared = np.zeros((len(points), len(points)))  # (points, points) distances
        for feature in points.T:
            squared += np.subtract.outer(feature, feature) ** 2
        starts = np.arange(self.n_init)
        chosen = np.empty((self.n_init, k), np.intp)
        chosen[:, 0] = self.rng.integers(len(points), size=self.n_init)
        nearest = squared[chosen[:, 0]]  # (starts, points) squared distance to the nearest centre so far
        for step in range(1, k):
            total = nearest.cumsum(axis=1)
            target = self.rng.random((self.n_init, 2 + int(np.log(k)))) * total[:, -1:]
            candidate = (total[:, None, :] <= target[:, :, None]).sum(axis=2).clip(max=len(points) - 1)
            after = np.minimum(nearest[:, None, :], squared[candidate])  # (starts, candidates, points)
            best = after.sum(axis=2).argmin(axis=1)
            nearest, chosen[:, step] = after[starts, best], candidate[starts, best]
        return chosen


@contextmanager
def _quick() -> Iterator[None]:
    """One thread and no repeated checks: on many small fits, more threads only wait for each other."""
    try:
        from sklearn import config_context
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise _missing("kmeans", "scikit-learn") from error
    with (
        threadpool_limits(1),
        config_context(assume_finite=True, skip_parameter_validation=True),
        warnings.catch_warnings(),
    ):
        # Points nearer to each other than rounding can tell make fewer clusters than were asked for: that is right.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _missing(function: str, package: str) -> MissingExtra:
    return missing_extra("cluster", f"clustering.{function} needs {package}")


def _features(X: Any) -> Floats:
    """The features as (arms, features), scaled so that no square overflows."""
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("X must be numbers of shape (arms,) or (arms, features), with rows of one length") from None
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.size == 0:
        raise InvalidValue(f"X has shape {np.shape(X)}; it must be (arms,) or (arms, features), and not empty")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise InvalidValue(f"X[{row}, {column}] is {points[row, column]}; fill in or leave out what is not finite")
    return points / (np.abs(points).max() or 1.0)
