"""Fit models of the reward with cross-fitting: no row is predicted by a model that was fitted on it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from banditree.data.cells import Floats
from banditree.data.log import Log, Places
from banditree.errors import InvalidType, InvalidValue
from banditree.ope.rows import ByRow
from banditree.policy.algorithms import LinATS
from banditree.stream import Seed
from banditree.tree import Tree

FOLDS = 5
BLOCKS = 50  # into which the log of a learning policy is divided, in order
CHUNK = 4_000_000  # numbers per call of a user's estimator
MAX_PREDICTIONS = 50_000_000  # rows times arms; above that, predictions by context would need too much memory


def fit_model(model: Any, log: Log, places: Places, tree: Tree, *, in_order: bool, rng: Seed) -> ByRow:
    """Predict the reward of every arm for every row.

    ``model`` is None (the means that LinATS would believe where the log has contexts, else rates of arms shrunk towards
    their clusters), an estimator with ``fit`` and ``predict`` as in
    scikit-learn, or the predictions themselves, (n, arms). With ``in_order``, a row's model is fitted only on earlier
    rows, else on the other folds.
    """
    if model is not None and not hasattr(model, "fit"):
        return _read_predictions(model, len(log), tree)
    fold = blocks(len(log)) if in_order else folds(len(log), rng)
    if model is None and log.contexts is not None and len(log) * tree.n_arms <= MAX_PREDICTIONS:
        return _by_contexts(log.rewards, log.contexts, places, tree, fold, in_order=in_order)
    if model is None:
        return _shrunk_rates(log.rewards, places, tree, fold, in_order=in_order)
    return _by_estimator(model, log, places, tree, fold, in_order=in_order)


def folds(n: int, rng: Any) -> Places:
    """Assign each row to a fold, at random and with equal sizes: (n,)."""
    return np.random.default_rng(rng).permutation(n) % min(FOLDS, n)


def blocks(n: int) -> Places:
    """Assign each row to a block, in order and with equal sizes: (n,)."""
    return np.arange(n) * min(BLOCKS, n) // n


def shrunk_rates(rows: Floats, sums: Floats, squares: Floats, tree: Tree) -> Floats:
    r"""Estimate the mean reward of each arm, shrunk towards its cluster, and that towards its own: (arms,).

    ``rows``, ``sums`` and ``squares`` are each arm's number of rows, sum of rewards and sum of squared rewards. From
    the root down, a node with n rows of mean y below a parent of estimate m gets (n y + k m) / (n + k), where
    k = sigma^2 / tau^2: the variance of a reward over the variance of siblings' means at that level, by moments. If
    siblings differ by no more than chance, k is infinite and the node takes its parent's estimate.
    """
    shape = tree.shape
    total = float(rows.sum())
    if total == 0:
        return np.zeros(tree.n_arms)
    n, s = np.zeros(shape.n_nodes), np.zeros(shape.n_nodes)
    n[shape.node_of], s[shape.node_of] = rows, sums
    shape.sum_up(n), shape.sum_up(s)
    y = s / np.maximum(n, 1)
    inside = float(squares.sum() - (rows * y[shape.node_of] ** 2).sum())
    variance = max(inside, 0.0) / max(total - int((rows > 0).sum()), 1)
    estimate = np.full(shape.n_nodes, y[0])
    for low, high in zip(shape.levels[1:-1].tolist(), shape.levels[2:].tolist(), strict=True):
        nodes = slice(low, high)
        parent = shape.parent[nodes].astype(np.intp)
        spread = _between(n[nodes], y[nodes], parent, n[parent], y[parent], variance)
        strength = variance / spread if spread > 0 else np.inf
        weight = n[nodes] / (n[nodes] + strength) if 0 < strength < np.inf else (n[nodes] > 0) * float(strength == 0)
        estimate[nodes] = weight * y[nodes] + (1 - weight) * estimate[parent]
    return np.asarray(estimate[shape.node_of])


def _between(n: Floats, y: Floats, parent: Places, parents_n: Floats, parents_y: Floats, variance: float) -> float:
    """Estimate tau^2, the variance of siblings' means beyond chance: E sum n (y - m)^2 = (I - P) sigma^2 + c tau^2."""
    seen = n > 0
    n, y, parent, parents_n, parents_y = n[seen], y[seen], parent[seen], parents_n[seen], parents_y[seen]
    free = len(n) - len(np.unique(parent))
    c = float((n * (1 - n / np.maximum(parents_n, 1))).sum())
    if free <= 0 or c <= 0:
        return 0.0
    return max(float((n * (y - parents_y) ** 2).sum()) - free * variance, 0.0) / c


def _shrunk_rates(rewards: Floats, places: Places, tree: Tree, fold: Places, *, in_order: bool) -> ByRow:
    k, cell = int(fold.max()) + 1, fold * tree.n_arms + places
    by_fold = [
        np.bincount(cell, weights, minlength=k * tree.n_arms).reshape(k, tree.n_arms).astype(np.float64)
        for weights in (None, rewards, rewards**2)
    ]
    others = [np.cumsum(sums, axis=0) - sums if in_order else sums.sum(axis=0) - sums for sums in by_fold]
    rows, sums, squares = others
    return ByRow(np.array([shrunk_rates(rows[i], sums[i], squares[i], tree) for i in range(k)]), fold)


def _by_contexts(
    rewards: Floats, contexts: Floats, places: Places, tree: Tree, fold: Places, *, in_order: bool
) -> ByRow:
    """Predict by the beliefs of LinATS: one model across arms, which learns how far siblings are alike."""
    dim = contexts.shape[1]
    arms = tree.ids(places)
    with_constant = np.column_stack([np.ones(len(contexts)), contexts])
    predictions = np.zeros((len(contexts), tree.n_arms))
    policy = LinATS(tree, dim=dim, rng=0)
    for i in range(int(fold.max()) + 1):
        rows, others = fold == i, fold != i
        if not in_order:
            policy = LinATS(tree, dim=dim, rng=0)
            policy.update_many(arms[others], rewards[others], contexts=contexts[others])
        predictions[rows] = with_constant[rows] @ _coefficients(policy, dim)
        if in_order:
            policy.update_many(arms[rows], rewards[rows], contexts=contexts[rows])
    return ByRow.each(predictions)


def _coefficients(policy: LinATS, dim: int) -> Floats:
    """Return the level and slopes of each arm's expected reward, which is linear in the context: (1 + dim, arms)."""
    index = {policy.tree.path(arm): place for place, arm in enumerate(policy.tree.arms)}
    means = np.zeros((1 + dim, len(index)))
    for at, context in enumerate([np.zeros(dim), *np.eye(dim)]):
        for row in policy.table(context=context):
            if row.path in index:
                means[at, index[row.path]] = row.mean
    means[1:] -= means[0]
    return means


def _read_predictions(model: Any, n: int, tree: Tree) -> ByRow:
    try:
        matrix = np.asarray(model, np.float64)
    except (TypeError, ValueError):
        raise InvalidType(
            f"model {model!r:.60} must be None, an estimator with fit and predict, or predicted rewards (rows, arms)"
        ) from None
    if matrix.shape == (tree.n_arms,) and n != tree.n_arms:
        matrix = np.broadcast_to(matrix, (n, tree.n_arms))
    if matrix.shape != (n, tree.n_arms):
        raise InvalidValue(
            f"model has shape {matrix.shape}; give ({n}, {tree.n_arms}): one row per row of the log, one column per arm"
        )
    if not np.isfinite(matrix).all():
        raise InvalidValue("model has predictions that are not finite; give finite numbers")
    return ByRow.each(matrix)


def _by_estimator(model: Any, log: Log, places: Places, tree: Tree, fold: Places, *, in_order: bool) -> ByRow:
    """Fit a user's estimator. Features are the context, and indicators of the arm and of every cluster above it."""
    arms = _indicators(tree)
    X = np.empty((len(log), 0)) if log.contexts is None else log.contexts
    kind = fold if log.contexts is None else np.arange(len(log))  # rows of one kind share a prediction
    first = np.unique(kind, return_index=True)[1]  # (kinds,) the first row of each
    predictions = np.zeros((len(first), tree.n_arms))
    step = max(1, CHUNK // (tree.n_arms * (X.shape[1] + arms.shape[1])))
    for i in range(int(fold.max()) + 1):
        train = fold < i if in_order else fold != i
        if not train.any():
            continue  # nothing comes before the first block: its predictions are 0
        estimator = copy.deepcopy(model).fit(np.hstack([X[train], arms[places[train]]]), log.rewards[train])
        kinds = np.flatnonzero(fold[first] == i)
        for low in range(0, len(kinds), step):
            some = kinds[low : low + step]
            features = np.hstack([np.repeat(X[first[some]], tree.n_arms, axis=0), np.tile(arms, (len(some), 1))])
            predictions[some] = _predict(estimator, features).reshape(len(some), tree.n_arms)
    return ByRow(predictions, kind)


def _predict(estimator: Any, features: Floats) -> Floats:
    """Predict the expected reward; for a classifier, the classes (rewards) weighted by their probabilities."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(features) @ np.asarray(estimator.classes_, np.float64))
    return np.asarray(estimator.predict(features), np.float64)


def _indicators(tree: Tree) -> Floats:
    """Mark the nodes on the path of each arm with 1, without the root: (arms, nodes - 1)."""
    shape = tree.shape
    indicators = np.zeros((tree.n_arms, shape.n_nodes))
    at = shape.node_of.copy()
    while (at > 0).any():
        indicators[np.arange(tree.n_arms), at] = 1.0
        at = np.where(at > 0, shape.parent[at], 0)
    return indicators[:, 1:]
