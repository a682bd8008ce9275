"""The paper's functions from the position of an arm to its mean reward."""

from __future__ import annotations

import numpy as np

from banditree.base.arrays import Floats


def sine(x: object) -> Floats:
    """f(x) = (sin 13x sin 27x + 1) / 2 on [0, 1] (Bubeck et al. 2011): many local maxima, so no cluster dominates."""
    x = np.asarray(x, np.float64)
    return np.asarray((np.sin(13 * x) * np.sin(27 * x) + 1) / 2)


def bumps(x: object) -> Floats:
    """f(x) = (exp(-(0.1 - x)^2 / 0.05) + exp(-(0.9 - x)^2 / 0.8)) / 2 on [0, 1]: very smooth."""
    x = np.asarray(x, np.float64)
    return np.asarray((np.exp(-((0.1 - x) ** 2) / 0.05) + np.exp(-((0.9 - x) ** 2) / 0.8)) / 2)


def surface(x: object) -> Floats:
    """Three ridges on [0, 1]^2, so that nearby arms are similar and larger clusters are mixed: (..., 2) to (...,).

    f(x1, x2) = exp(-100 (0.2 - x1)^2) / 2 + exp(-100 (0.7 - x1)^2) / 5 + exp(-100 (0.7 - x2)^2) / 5
    """
    x = np.asarray(x, np.float64)
    return np.asarray(_ridge(x[..., 0], 0.2) / 2 + _ridge(x[..., 0], 0.7) / 5 + _ridge(x[..., 1], 0.7) / 5)


def _ridge(x: Floats, at: float) -> Floats:
    return np.asarray(np.exp(-100 * (at - x) ** 2))
