"""Estimate the prior of a new arm from its sibling arms: the mean and spread of their true means.

Given the mean m of a cluster, the true mean of an arm has variance u phi, and the rate y of an arm with n plays has
variance u c around m, with c = phi + (1 - phi) / n and u = m (1 - m) for rewards from 0 to 1, c = phi + 1 / n and
u = sd^2 for normal ones (see `catalogue.posterior`). The best weights for m are 1 / c, and the weighted rate has
variance u / sum(1 / c). So the mean of a new arm has mean m and variance u (phi + 1 / sum(1 / c)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Siblings(NamedTuple):
    """The estimate that a new arm starts from."""

    mean: float
    spread: float  # variance of its true mean, in units of the variance of one reward


def siblings(plays: Floats, totals: Floats, unit: float | None = None) -> Siblings | None:
    """Estimate from the plays of arms and the sums of their rewards, (arms,) each; None if fewer than two were tried.

    ``unit`` is the variance of one reward; None stands for rewards from 0 to 1, whose variance depends on the mean.
    """
    n, y = plays[plays > 0], totals[plays > 0] / plays[plays > 0]
    if len(n) < 2:
        return None
    weight = np.minimum(n, 10 * np.median(n))  # no single arm dominates
    weight /= weight.sum()
    bounded = unit is None
    m = float(weight @ y)
    if bounded:  # add one play with reward 1/2, so that m is never 0 or 1
        m = float((totals.sum() + 0.5) / (plays.sum() + 1))
    u = m * (1 - m) if unit is None else unit
    # The method of moments; if noise explains all the spread, use the standard error of the estimate as phi.
    noise = float(weight @ (1 / n))
    found = float(weight @ (y - weight @ y) ** 2) / u - noise
    found = found / max(1 - noise, 0.1) if bounded else found
    phi = max(found, noise * np.sqrt(2 / (len(n) - 1)))
    phi = min(phi, 0.95) if bounded else phi
    precision = 1 / (phi + (1 - phi) / n if bounded else phi + 1 / n)
    mean = float(precision @ y / precision.sum())
    if bounded:
        mean = min(max(mean, m / 10), 1 - (1 - m) / 10)  # never exactly 0 or 1
    return Siblings(mean, phi + 1 / float(precision.sum()))
