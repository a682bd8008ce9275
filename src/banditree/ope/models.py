"""Fit models of the reward with cross-fitting: no row is predicted by a model that was fitted on it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.beliefs import Gaussian
from banditree.beliefs.adaptive_kinds import adaptive
from banditree.beliefs.base import Batch
from banditree.data.folds import BLOCKS, FOLDS
from banditree.data.log import Log
from banditree.errors import InvalidType, InvalidValue
from banditree.ope.rows import ByRow
from banditree.policy.algorithms import LinATS
from banditree.stream import Seed
from banditree.tree import Tree

CHUNK = 4_000_000  # numbers per call of a user's estimator
LEAST_SPREAD, TINY = 1e-9, 1e-290  # of rewards, relative to their size; and absolute, where all are 0
MAX_PREDICTIONS = 50_000_000  # rows times arms; above that, predictions by context would need too much memory


def fit_model(model: object, log: Log, places: Places, tree: Tree, *, in_order: bool, rng: Seed) -> ByRow:
    """Predict the reward of every arm for every row.

    ``model`` is None (what LinATS would believe where the log has contexts, else what ATS would), an estimator with
    ``fit`` and ``predict`` as in scikit-learn, or the predictions themselves, (n, arms) or (arms,). With ``in_order``,
    a row's model is fitted only on earlier rows, else on the other folds.
    """
    n = len(log.codes)
    if model is not None and not hasattr(model, "fit"):
        return _read_predictions(model, n, tree)
    if log.plays is not None:
        if model is not None:
            raise InvalidValue("model= fits an estimator to rows in memory; leave it out, or give predictions by arm")
        assert log.folds is not None
        fold = log.folds
    elif in_order:
        fold = blocks(n)
    else:
        fold = folds(n, rng) if log.folds is None else log.folds
    if model is None and log.contexts is not None and n * tree.n_arms <= MAX_PREDICTIONS:
        return _by_contexts(log.rewards, log.contexts, places, tree, fold, in_order=in_order)
    if model is None:
        return _by_arms(log, places, tree, fold, in_order=in_order)
    return _by_estimator(model, log, places, tree, fold, in_order=in_order)


def folds(n: int, rng: Any) -> Places:
    """Assign each row to a fold, at random and with equal sizes: (n,)."""
    return np.random.default_rng(rng).permutation(n) % min(FOLDS, n)


def blocks(n: int) -> Places:
    """Assign each row to a block, in order and with equal sizes: (n,)."""
    return np.arange(n) * min(BLOCKS, n) // n


def _by_arms(log: Log, places: Places, tree: Tree, fold: Places, *, in_order: bool) -> ByRow:
    """Predict by the beliefs of ATS about arms: their rates, shrunk towards similar siblings."""
    k, cell, plays = int(fold.max()) + 1, fold * tree.n_arms + places, log.counted
    low, high = log.extremes
    by_fold = [
        np.bincount(cell, sums, minlength=k * tree.n_arms).reshape(k, tree.n_arms)
        for sums in (plays, plays * log.rewards, plays * log.rewards**2 + log.squares)
    ]
    rows, sums, squares = (np.cumsum(one, axis=0) - one if in_order else one.sum(axis=0) - one for one in by_fold)
    bounded = low >= 0 and high <= 1
    table = [believed_means(tree, rows[i], sums[i], None if bounded else squares[i]) for i in range(k)]
    return ByRow(np.array(table), fold)


def believed_means(tree: Tree, rows: Floats, sums: Floats, squares: Floats | None) -> Floats:
    """Return the mean reward of each arm by the belief of ATS, given its rows and the sum of their rewards: (arms,).

    Rewards are from 0 to 1; ``squares``, the sums of their squares, are for all others.
    """
    total = float(rows.sum())
    if total == 0:
        return np.zeros(tree.n_arms)
    prior = None
    if squares is not None:
        within = float((squares - sums**2 / np.maximum(rows, 1)).sum()) / max(total - float((rows > 0).sum()), 1.0)
        mean = float(sums.sum()) / total
        least = max(LEAST_SPREAD * max(abs(mean), float(np.sqrt(squares.sum() / total))), TINY)
        prior = Gaussian(max(np.sqrt(max(within, 0.0)), least), mean=mean)
    beliefs = adaptive(prior).rows(tree.shape.n_nodes, {})
    beliefs.join_evidence()
    beliefs.attach(tree.shape)
    arms = np.arange(tree.n_arms)
    beliefs.add_batch(tree.shape, Batch.of(arms, sums, rows, None, tree.n_arms))
    return np.asarray(beliefs.mean(tree.shape.node_of, None)[:, 0])


def _by_contexts(
    rewards: Floats, contexts: Floats, places: Places, tree: Tree, fold: Places, *, in_order: bool
) -> ByRow:
    """Predict by the beliefs of LinATS: one model across arms, which learns how similar siblings are."""
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


def _read_predictions(model: object, n: int, tree: Tree) -> ByRow:
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
