"""Estimate the propensities of a log that has none: how often each arm was shown, given the context."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditree.tables.cells import Floats

Places = NDArray[np.intp]

STEPS = 300  # of the ascent, at most
ENOUGH = 200_000  # rows to fit the coefficients on, at most
CHUNK = 2_000_000  # probabilities to compute at a time


def fit_propensities(codes: Places, n_arms: int, contexts: Floats | None) -> tuple[Floats, str]:
    """Fit the probability of each row's arm, (n,); also return the method in words.

    Without contexts it is the arm's share of the rows. With contexts it is a multinomial logistic regression,
    P(a | x) proportional to exp(b_a + c_a x), fitted with a fixed bound on the curvature (Böhning 1992), so that every
    step increases the likelihood.
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
    """Fit the coefficients of the logistic regression: (features, arms)."""
    coefficients = np.zeros((X.shape[1], n_arms))
    coefficients[0] = start
    seen = np.zeros_like(coefficients)  # sum of the features over the rows of each arm
    for feature in range(X.shape[1]):
        seen[feature] = np.bincount(codes, X[:, feature], minlength=n_arms)
    bound = np.linalg.inv(0.5 * X.T @ X + 1e-3 * np.eye(X.shape[1]))
    for _ in range(STEPS):
        gradient = seen - X.T @ _probabilities(X, coefficients) - 1e-3 * coefficients  # with a weak ridge penalty
        change = bound @ gradient
        coefficients += change
        if np.abs(change).max() < 1e-6:
            break
    return coefficients


def _probabilities(X: Floats, coefficients: Floats) -> Floats:
    """Compute the probability of every arm for every row: (n, arms)."""
    scores = X @ coefficients
    scores -= scores.max(axis=1, keepdims=True)
    probabilities: Floats = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities
