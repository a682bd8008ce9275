"""The problems that all contestants meet, written to files that they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import banditree as bt

DIM = 5


def write(folder: Path, *, horizon: int, contextual_horizon: int) -> dict[str, Path]:
    """One file a problem: {title: path}."""
    files = {
        "100 arms in 10 clusters": _strong(folder / "strong-100.npz", 100, 10, horizon),
        "1,000 arms in 32 clusters": _strong(folder / "strong-1000.npz", 1000, 32, horizon),
        "400 arms in 20 clusters, 5 features": _linear(folder / "linear-400.npz", 400, 20, contextual_horizon),
    }
    return files


def _strong(path: Path, n_arms: int, n_clusters: int, horizon: int) -> Path:
    """The paper's strong dominance: the best cluster has means 0.5 to 0.6, the others 0.3 to 0.4."""
    instance = bt.problems.strong_dominance(n_arms=n_arms, n_clusters=n_clusters, n_best=n_clusters).instance(0)
    labels = [instance.tree.path(arm)[0] for arm in instance.arms]
    np.savez(path, horizon=horizon, labels=np.array(labels, np.int64), means=np.asarray(instance.means))
    return path


def _linear(path: Path, n_arms: int, n_clusters: int, horizon: int) -> Path:
    """The paper's contextual clusters with rewards of 0 or 1, which every peer takes.

    Contexts are shares that add up to 1 and coefficients are in [0, 1], so that theta.x is a probability.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(n_clusters, size=n_arms)
    centres = rng.random((n_clusters, DIM))
    theta = np.clip(centres[labels] + 0.1 * rng.standard_normal((n_arms, DIM)), 0.0, 1.0)  # (arms, dim)
    contexts = rng.dirichlet(np.full(DIM, 0.5), size=horizon)
    np.savez(path, horizon=horizon, labels=labels, theta=theta, contexts=contexts)
    return path
