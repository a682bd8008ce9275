"""The problems that all contestants meet, as files that they read in whatever environment they run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    import banditree as bt

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


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Bernoulli arms in clusters; their expected rewards are fixed, or linear in contexts that are the same for all."""

    horizon: int
    labels: NDArray[np.int64]  # (arms,)
    expected: list[list[float]]  # (1, arms) means, or (steps, arms) theta.x
    best: list[float]  # (1,) or (steps,)
    contexts: Floats | None  # (steps, dim)

    @property
    def n_arms(self) -> int:
        return len(self.labels)

    @property
    def dim(self) -> int | None:
        return None if self.contexts is None else self.contexts.shape[1]

    @classmethod
    def read(cls, path: str) -> Case:
        with np.load(path) as arrays:
            contexts = arrays.get("contexts")
            expected = arrays["means"][None] if contexts is None else contexts @ arrays["theta"].T
            horizon = int(arrays["horizon"])
            return cls(horizon, arrays["labels"], expected.tolist(), expected.max(axis=1).tolist(), contexts)

    def regret(self, played: list[int]) -> float:
        """Expected regret of the arms played."""
        if self.contexts is None:
            return sum(self.best[0] - self.expected[0][arm] for arm in played)
        return sum(self.best[step] - self.expected[step][arm] for step, arm in enumerate(played))

    def blind_regret(self) -> float:
        """Expected regret of choosing arms uniformly."""
        a_step = float(np.mean(self.best) - np.mean(self.expected))
        return a_step * self.horizon
