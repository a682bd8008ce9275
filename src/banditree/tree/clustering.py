"""Build trees from features, by k-means (scikit-learn) or agglomerative clustering (SciPy). Needs the cluster extra."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.errors import InvalidValue, MissingExtra, missing_extra
from banditree.errors.checks import choice, whole
from banditree.stream import Seed, Stream, generator
from banditree.tree.build import ids_of
from banditree.tree.tree import Tree

Rng = np.random.Generator | Stream

LINKAGES = ("ward", "single", "complete", "average", "weighted", "centroid", "median")
SMALL = 512  # for up to this many points, all starts of a fit are sampled at once; see `_Starts`


def kmeans(
    X: object,
    branching: int = 15,
    depth: int = 2,
    arms: Iterable[object] | None = None,
    rng: Seed = 0,
    *,
    n_init: int = 10,
) -> Tree:
    """Split the arms into ``branching`` clusters by k-means, then split each cluster in turn, to ``depth`` levels.

    A cluster with at most ``branching`` arms, or whose rows are equal, is not split. If there are at most ``branching``
    distinct rows, each becomes a cluster.

    Parameters
    ----------
    X
        One row of features per arm, (arms, features), or one feature per arm, (arms,).
    branching
        Clusters that each cluster is split into.
    depth
        Levels of clusters.
    arms
        Ids of the arms; by default 0, 1, ...
    rng
        A seed or a generator.
    n_init
        Starts of scikit-learn's KMeans, of which the best result is kept.

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
    paths: list[tuple[object, ...]] = [()] * len(points)
    level = [np.arange(len(points))]  # the clusters to split next, as positions of their arms
    with _quick():
        for _ in range(depth):
            below: list[Places] = []
            for members in level:
                labels = _split(points[members], branching, n_init, stream)
                if labels is None:
                    continue
                for position, label in zip(members.tolist(), labels.tolist(), strict=True):
                    paths[position] = (*paths[position], label)
                below += [members[labels == label] for label in range(int(labels.max()) + 1)]
            level = below
    return Tree.from_paths([(*path, arm) for path, arm in zip(paths, ids, strict=True)])


def agglomerative(X: object, linkage: str = "ward", arms: Iterable[object] | None = None) -> Tree:
    """Build the full binary tree of agglomerative clustering, which repeatedly merges the two nearest clusters.

    Memory grows with the square of the number of arms.

    Parameters
    ----------
    X, arms
        As in :func:`kmeans`.
    linkage
        One of SciPy's methods.

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


def _split(points: Floats, k: int, n_init: int, rng: Rng) -> Places | None:
    """Return a cluster number for every point, in order of first appearance: (points,); None if there is no split."""
    if len(points) <= k:
        return None
    points = points - points.mean(axis=0)
    points = points / (np.abs(points).max() or 1.0)  # squares of tiny distances would underflow
    _, labels = np.unique(points, axis=0, return_inverse=True)
    labels = labels.ravel()  # NumPy 2.0 returns a column
    if labels.max() >= k:
        labels = _fit(points, k, n_init, rng)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return None if len(first) == 1 else first.argsort().argsort()[labels]


def _fit(points: Floats, k: int, n_init: int, rng: Rng) -> Places:
    """Return the labels of scikit-learn's KMeans: (points,)."""
    from sklearn.cluster import KMeans

    init = _Starts(n_init, rng) if len(points) <= SMALL else "k-means++"
    model = KMeans(k, init=init, n_init=n_init, random_state=int(rng.integers(2**31)))
    labels: Places = model.fit(points).labels_
    return labels


class _Starts:
    """Sample starting centres for scikit-learn's ``init``: greedy k-means++, for all starts of a small fit at once.

    A deep tree takes hundreds of tiny fits, and sampling the starts one by one took four fifths of their time.
    Arthur and Vassilvitskii (2007): a point becomes the next centre with probability proportional to its squared
    distance to the nearest centre so far; greedy: of 2 + log k such candidates, the one that helps most.
    """

    def __init__(self, n_init: int, rng: Rng) -> None:
        self.n_init, self.rng = n_init, rng
        self.left: Iterator[Floats] | None = None

    def __call__(self, points: Floats, k: int, random_state: object) -> Floats:
        if self.left is None:
            self.left = iter(points[self._sample_starts(points, k)])
        return next(self.left)

    def _sample_starts(self, points: Floats, k: int) -> Places:
        """Sample which points become centres: (starts, k)."""
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
    """Use one thread and skip repeated checks: on many small fits, extra threads only wait for each other."""
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
        # Points closer together than rounding can resolve give fewer clusters than requested, which is correct.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _missing(function: str, package: str) -> MissingExtra:
    return missing_extra("cluster", f"clustering.{function} needs {package}")


def _features(X: object) -> Floats:
    """Return the features as (arms, features), scaled so that no square overflows."""
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("X must be numbers of shape (arms,) or (arms, features), rows of equal length") from None
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.size == 0:
        raise InvalidValue(f"X has shape {np.asarray(X).shape}; it must be (arms,) or (arms, features), and not empty")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise InvalidValue(f"X[{row}, {column}] is {points[row, column]}; fill in or leave out non-finite values")
    return points / (np.abs(points).max() or 1.0)
