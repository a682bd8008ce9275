"""Estimate the propensities of a log that has none: how often each arm was shown, given the context."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from banditree.data.cells import Floats

Places = NDArray[np.intp]
RIDGE = 1.0  # penalty on squared coefficients, worth one row: an arm with few rows stays near its share
MAX_ROUNDS, STEPS_PER_ROUND = 12, 8  # of the descent
SMALLEST_GAIN = 1e-7  # log-likelihood per row that a step must promise
CHUNK = 200_000  # probabilities to compute at a time: they stay in the processor's cache


def fit_propensities(codes: Places, n_arms: int, contexts: Floats | None) -> tuple[Floats, str]:
    """Fit the probability of each row's arm, (n,); also return the method in words.

    Without contexts it is the arm's share of the rows. With contexts it is a multinomial logistic regression,
    P(a | x) proportional to exp(b_a + c_a x), with a weak ridge penalty. Rows with the same context are one weighted
    row.
    """
    shares = np.bincount(codes, minlength=n_arms) / len(codes)
    if contexts is None:
        return shares[codes], "each arm's share of the rows"
    X = _whiten(contexts)
    distinct, kind = np.unique(X, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    coefficients = np.zeros((X.shape[1], n_arms))
    coefficients[0] = np.log(np.maximum(shares, 1e-12))
    coefficients = _fit(distinct, np.bincount(kind).astype(np.float64), X, codes, coefficients)
    return _probabilities_at(distinct, coefficients, kind, codes), "logistic regression on the contexts"


def _whiten(contexts: Floats) -> Floats:
    """Return a constant, and the columns that vary, rotated so that they are not correlated: (n, features)."""
    centred = contexts - contexts.mean(axis=0)
    spread = centred.std(axis=0)
    columns = centred[:, spread > 0] / spread[spread > 0]
    variances, directions = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = variances > 1e-9  # dummies of all categories add up to 1: one direction says nothing
    return np.column_stack([np.ones(len(columns)), columns @ (directions[:, kept] / np.sqrt(variances[kept]))])


def _fit(distinct: Floats, counts: Floats, X: Floats, codes: Places, start: Floats) -> Floats:
    """Fit the coefficients, (features, arms), to rows X with these arms, whose distinct contexts have these counts.

    The negative log-likelihood is minimised by L-BFGS. Its steps are scaled by the curvature of each coefficient, the
    sum of P(a | x) x^2 over the rows, which is renewed in every round: without it, rare arms would hardly move.
    """
    n_arms = start.shape[1]
    shown = np.array([np.bincount(codes, column, minlength=n_arms) for column in X.T])  # (features, arms)
    ridge = np.full((len(shown), 1), RIDGE)
    ridge[0] = 1e-6  # the intercepts are the arms' shares
    smallest_gain = SMALLEST_GAIN * float(counts.sum())

    def probabilities(coefficients: Floats) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Yield features, counts, probabilities of the arms, and log of the total, for some contexts at a time."""
        step = max(1, CHUNK // n_arms)
        for low in range(0, len(distinct), step):
            rows = distinct[low : low + step]
            yield rows, counts[low : low + step, None], *_softmax(rows @ coefficients)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        value = 0.5 * float((ridge * coefficients**2).sum()) - float((coefficients * shown).sum())
        gradient = ridge * coefficients - shown
        for rows, weights, shares, log_totals in probabilities(coefficients):
            value += float(weights[:, 0] @ log_totals)
            gradient += (rows * weights).T @ shares
        return value, gradient

    point, (value, gradient) = start, loss(start)
    for step in range(MAX_ROUNDS * STEPS_PER_ROUND):
        if step % STEPS_PER_ROUND == 0:
            curvature = sum((rows**2 * weights).T @ shares for rows, weights, shares, _ in probabilities(point)) + ridge
            steps: list[tuple[Floats, Floats]] = []  # (change of the point, change of the gradient)
        direction = -_times_inverse_curvature(gradient, steps, np.asarray(curvature))
        promised = -float((direction * gradient).sum()) / 2
        if promised < smallest_gain:
            break
        length = 1.0
        candidate, (new_value, new_gradient) = point + direction, loss(point + direction)
        while new_value > value - 1e-4 * length * promised and length >= 1e-6:  # the step leads up: halve it
            length /= 2
            candidate = point + length * direction
            new_value, new_gradient = loss(candidate)
        change, turn = candidate - point, new_gradient - gradient
        if float((change * turn).sum()) > 0:
            steps.append((change, turn))
        point, value, gradient = candidate, new_value, new_gradient
    return point


def _times_inverse_curvature(gradient: Floats, steps: list[tuple[Floats, Floats]], curvature: Floats) -> Floats:
    """Multiply the gradient by the inverse curvature that the last steps show (Nocedal 1980)."""
    rest = gradient.copy()
    shares = []
    for change, turn in reversed(steps):
        share = float((change * rest).sum() / (change * turn).sum())
        shares.append(share)
        rest -= share * turn
    rest /= curvature
    for (change, turn), share in zip(steps, reversed(shares), strict=True):
        rest += (share - float((turn * rest).sum() / (change * turn).sum())) * change
    return rest


def _softmax(scores: Floats) -> tuple[Floats, Floats]:
    """Compute probabilities, (n, arms), in place of the scores, and the logarithm of the sum of their exp: (n,)."""
    highest = scores.max(axis=1, keepdims=True)
    scores -= highest
    np.exp(scores, out=scores)
    totals = scores.sum(axis=1, keepdims=True)
    scores /= totals
    return scores, (highest + np.log(totals))[:, 0]


def _probabilities_at(distinct: Floats, coefficients: Floats, kind: Places, codes: Places) -> Floats:
    """Compute the probability of each row's arm, given the coefficients and each row's distinct context: (n,)."""
    scores = np.einsum("ij,ij->i", distinct[kind], coefficients.T[codes])
    log_totals = np.empty(len(distinct))
    step = max(1, CHUNK // coefficients.shape[1])
    for low in range(0, len(distinct), step):
        log_totals[low : low + step] = _softmax(distinct[low : low + step] @ coefficients)[1]
    return np.asarray(np.exp(scores - log_totals[kind]))
