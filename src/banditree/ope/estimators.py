r"""The formulas of the estimators, as short functions over arrays.

Each function returns one score per row. The value is the mean of the scores, and its standard error their standard
deviation (with n - 1) divided by the square root of n: `mean_and_error` computes both. The two self-normalised
estimators are ratios; their scores are linearised (the delta method), so that the same holds for them.

For row i, with arm a_i, reward r_i and context x_i:

- ``rewards``: r_i
- ``weights``: w_i = pi(a_i | x_i) / pi_0(a_i | x_i), target over logging policy
- ``predicted``: q(x_i, a_i), what a model of the reward predicts for the arm that was shown
- ``direct``: v_i = sum over arms a of pi(a | x_i) q(x_i, a), what the model predicts for the target
- ``scale``: h_i, the weight of the row itself if a learning policy wrote the log (`adaptive.scales`)
"""

from __future__ import annotations

import numpy as np

from banditree.ope.by_row import Floats
from banditree.simulation.statistics import over_seeds


def ips(rewards: Floats, weights: Floats) -> Floats:
    r"""Inverse propensity scores (Horvitz and Thompson 1952). Unbiased; high variance if weights are large.

    .. math:: \hat V = \frac1n \sum_i w_i r_i

    >>> float(ips(np.array([1.0, 0.0]), np.array([0.5, 2.0])).mean())
    0.25
    """
    return weights * rewards


def snips(rewards: Floats, weights: Floats, scale: Floats | None = None) -> Floats:
    r"""Self-normalised inverse propensity scores (Swaminathan and Joachims 2015). Stays within the observed rewards.

    .. math:: \hat V = \frac{\sum_i w_i r_i}{\sum_i w_i}, \qquad s_i = \hat V + \frac{w_i (r_i - \hat V)}{\bar w}
    """
    return _normalised(rewards, weights, scale)


def dm(direct: Floats) -> Floats:
    r"""The direct method: what the model predicts. No variance from weights; biased if the model is wrong.

    .. math:: \hat V = \frac1n \sum_i v_i, \qquad v_i = \sum_a \pi(a \mid x_i)\, \hat q(x_i, a)
    """
    return direct


def dr(rewards: Floats, weights: Floats, predicted: Floats, direct: Floats) -> Floats:
    r"""Doubly robust (Dudík, Langford and Li 2011): the model, corrected by weighted residuals. Unbiased.

    .. math:: \hat V = \frac1n \sum_i v_i + w_i (r_i - \hat q(x_i, a_i))
    """
    return direct + weights * (rewards - predicted)


def sndr(rewards: Floats, weights: Floats, predicted: Floats, direct: Floats, scale: Floats | None = None) -> Floats:
    r"""Doubly robust with self-normalised weights (Thomas and Brunskill 2016).

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\sum_i w_i (r_i - \hat q(x_i, a_i))}{\sum_i w_i}
    """
    return direct + _normalised(rewards - predicted, weights, scale)


def switch_dr(rewards: Floats, weights: Floats, predicted: Floats, direct: Floats, *, tau: float) -> Floats:
    r"""Switch-DR (Wang, Agarwal and Dudík 2017): doubly robust, corrected only where the weight is at most tau.

    .. math:: \hat V = \frac1n \sum_i v_i + w_i \mathbb{1}[w_i \le \tau] (r_i - \hat q(x_i, a_i))
    """
    return direct + np.where(weights <= tau, weights, 0.0) * (rewards - predicted)


def dros(rewards: Floats, weights: Floats, predicted: Floats, direct: Floats, *, lam: float) -> Floats:
    r"""Doubly robust with optimistic shrinkage of the weights (Su, Dimakopoulou, Krishnamurthy and Dudík 2020).

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\lambda w_i}{w_i^2 + \lambda} (r_i - \hat q(x_i, a_i))
    """
    return direct + shrunk(weights, lam) * (rewards - predicted)


def mips(rewards: Floats, target: Floats, behaviour: Floats) -> Floats:
    r"""Marginalised inverse propensity scores (Saito and Joachims 2022) with clusters as the embedding.

    ``target`` and ``behaviour`` are the probabilities of the cluster of the arm that was shown. Small weights; unbiased
    where arms of a cluster have the same mean reward, or the two policies divide a cluster alike.

    .. math:: \hat V = \frac1n \sum_i \frac{\pi(C_i \mid x_i)}{\pi_0(C_i \mid x_i)}\, r_i
    """
    return ratio(target, behaviour) * rewards


def offcem(rewards: Floats, target: Floats, behaviour: Floats, predicted: Floats, direct: Floats) -> Floats:
    r"""OffCEM (Saito, Ren and Joachims 2023): weights by cluster for what clusters explain, a model for the rest.

    ``target`` and ``behaviour`` are the probabilities of the cluster of the arm that was shown. Unbiased where the
    model has the differences between the arms of a cluster right.

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\pi(C_i \mid x_i)}{\pi_0(C_i \mid x_i)} (r_i - \hat q(x_i, a_i))
    """
    return direct + ratio(target, behaviour) * (rewards - predicted)


def ratio(target: Floats, behaviour: Floats) -> Floats:
    """Divide target by behaviour: (n,). Rows that have probability 0 under the behaviour were refused before."""
    return target / behaviour


def shrunk(weights: Floats, lam: float) -> Floats:
    """Compute lam w / (w^2 + lam), which is w if lam is infinite: (n,)."""
    if np.isinf(lam):
        return weights
    return np.where(weights > 0, lam * weights / np.maximum(weights**2 + lam, np.finfo(float).tiny), 0.0)


def mean_and_error(scores: Floats, scale: Floats | None = None) -> tuple[float, float]:
    r"""Compute the value and its standard error, which is NaN for a single row.

    With ``scale`` (a log written by a learning policy) both are weighted, after Hadad et al. 2021:

    .. math:: \hat V = \frac{\sum_i h_i s_i}{\sum_i h_i}, \qquad
        \mathrm{se} = \frac{\sqrt{\sum_i h_i^2 (s_i - \hat V)^2}}{\sum_i h_i}
    """
    if scale is None:
        found = over_seeds(scores)
        return found.mean, found.se
    total = float(scale.sum())
    value = float(scale @ scores) / total
    return value, float(np.sqrt((scale**2) @ (scores - value) ** 2)) / total if len(scores) > 1 else float("nan")


def effective_sample_size(weights: Floats) -> float:
    r"""Compute how many rows of equal weight would be as informative (Kish 1965): :math:`(\sum w)^2 / \sum w^2`."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _normalised(values: Floats, weights: Floats, scale: Floats | None) -> Floats:
    """Compute linearised scores whose (scaled) mean is the weighted mean of the values; NaN if all weights are 0.

    With ``scale`` a few rows may carry most of the weight and pull the mean towards themselves: their residuals are
    divided by one minus their share of the weight, as the jackknife would do (HC3, MacKinnon and White 1985).
    """
    h = np.ones(len(weights)) if scale is None else scale
    total = float(h @ weights)
    if total == 0:
        return np.full(len(values), np.nan)
    centre = float((h * weights) @ values) / total
    apart: Floats = weights * (values - centre) * (float(h.sum()) / total)
    if scale is not None:
        apart = apart / np.maximum(1 - h * weights / total, np.finfo(float).eps)
        apart = apart - float(h @ apart) / float(h.sum())
    return centre + apart
