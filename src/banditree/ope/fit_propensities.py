"""Propensities for a log that has none: how often each arm was shown, given the context."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
STEPS = 300  # of the ascent
ENOUGH = 200_000  # rows that the coefficients are fitted on
CHUNK = 2_000_000  # cells of probabilities that are computed at a time


def fit_propensities(codes: Places, n_arms: int, contexts: Floats | None) -> tuple[Floats, str]:
    """The fitted probability of each row's arm, (n,), and in a few words how.

    Without contexts it is the arm's share of the rows. With contexts it is a multinomial logistic regression,
    P(a | x) proportional to exp(b_a + c_a x), by ascent with a fixed bound on the curvature (Böhning 1992), in which
    every step increases the likelihood.
    """
    shares = np.bincount(codes, minlength=n_arms) / len(codes)
    if contexts is None:
        return shares[codes], "each arm's share of the rows"
    spread = contexts.std(axis=0)
    X = (contexts[:, spread > 0] - contexts.mean(axis=0)[spread > 0]) / spread[spread > 0]
    X = np.column_stack([np.ones(len(X)), X])  # (n, features)
    part = slice(None) if len(X) <= ENOUGH else slice(None, None, -(-len(X) // ENOUGH))
    coefficients = _ascend(X[part], codes[part], n_arms, np.log(np.maximum(shares, 1e-12)))
    step = max(1, CHUNK // n_arms)
    found = [
        _probabilities(X[low : low + step], coefficients)[
            np.arange(len(codes[low : low + step])), codes[low : low + step]
        ]
        for low in range(0, len(X), step)
    ]
    return np.concatenate(found), "logistic regression on the contexts"


def _ascend(X: Floats, codes: Places, n_arms: int, start: Floats) -> Floats:
    """Coefficients of the logistic regression: (features, arms)."""
    coefficients = np.zeros((X.shape[1], n_arms))
    coefficients[0] = start
    seen = np.zeros_like(coefficients)  # sum of the features over the rows of each arm
    for feature in range(X.shape[1]):
        seen[feature] = np.bincount(codes, X[:, feature], minlength=n_arms)
    bound = np.linalg.inv(0.5 * X.T @ X + 1e-3 * np.eye(X.shape[1]))
    for _ in range(STEPS):
        gradient = seen - X.T @ _probabilities(X, coefficients) - 1e-3 * coefficients  # a little towards 0
        change = bound @ gradient
        coefficients += change
        if np.abs(change).max() < 1e-6:
            break
    return coefficients


def _probabilities(X: Floats, coefficients: Floats) -> Floats:
    """(n, arms)"""
    scores = X @ coefficients
    scores -= scores.max(axis=1, keepdims=True)
    chances: Floats = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances
