"""A problem as a file that every contestant reads, in whatever environment it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
