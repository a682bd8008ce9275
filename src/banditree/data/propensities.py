"""Estimate the propensities of a log that has none: how often each arm was shown, given the context."""

from __future__ import annotations

import warnings

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.errors import missing_extra

CHUNK = 4_000_000  # probabilities to compute at a time
SHARES = "each arm's share of the rows"


def fit_propensities(codes: Places, n_arms: int, contexts: Floats | None) -> tuple[Floats, str]:
    """Fit the probability of each row's arm, (n,); also return the method in words.

    Without contexts it is the arm's share of the rows. With contexts it is scikit-learn's multinomial logistic
    regression on standardised columns, with its default penalty. Rows of one arm with the same context are one weighted
    row.
    """
    shares = np.bincount(codes, minlength=n_arms) / len(codes)
    if contexts is None or len(np.unique(codes)) < 2:
        return shares[codes], SHARES
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        what = "estimating propensities from contexts needs scikit-learn"
        raise missing_extra("cluster", what) from None
    kinds, kind_of_row, rows = np.unique(
        np.column_stack([contexts, codes]), axis=0, return_inverse=True, return_counts=True
    )
    centred = kinds[:, :-1] - contexts.mean(axis=0)
    X = centred / np.maximum(contexts.std(axis=0), np.finfo(float).tiny)
    arms = kinds[:, -1].astype(np.intp)
    model = LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its last step is as good a guess as we need
        model.fit(X, arms, sample_weight=rows)
    place = np.searchsorted(model.classes_, arms)
    fitted = np.empty(len(X))
    step = max(1, CHUNK // n_arms)
    for low in range(0, len(X), step):
        part = slice(low, low + step)
        fitted[part] = np.take_along_axis(model.predict_proba(X[part]), place[part, None], axis=1)[:, 0]
    return fitted[kind_of_row.reshape(-1)], "logistic regression on the contexts"
