"""A world: contexts, arms and rewards, drawn beforehand and kept in a file, so that all contestants meet the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """What happens in ``horizon`` rounds. Which arm is chosen decides on the reward, never on what comes later.

    An arm's mean reward at round t is a row of ``table``, or linear in the context: theta.(1, x), as log odds if
    rewards are clicks; without contexts x is empty. All arms share the round's random number, so two contestants that
    choose the same arm get the same reward.
    """

    horizon: int
    paths: NDArray[
        np.int64
    ]  # (arms, levels) the clusters of each arm, coarse to fine; the numbers are unique per level
    contexts: Floats | None = None  # (rounds, dim)
    theta: Floats | None = None  # (arms, 1 + dim)
    table: Floats | None = None  # (rounds, arms) mean rewards
    draws: Floats = field(default_factory=lambda: np.zeros(0))  # (rounds,) normal, or uniform for clicks
    clicks: bool = False
    noise: float = 0.0  # standard deviation of a reward around its mean
    told: dict[str, Any] = field(default_factory=dict)  # for algorithms that must be told how the world was made

    @property
    def n_arms(self) -> int:
        return len(self.paths)

    @property
    def dim(self) -> int:
        """Length of the contexts, 0 if there are none."""
        return 0 if self.contexts is None else self.contexts.shape[1]

    @property
    def labels(self) -> NDArray[np.int64]:
        """The top cluster of each arm, (arms,)."""
        return self.paths[:, 0]

    def context(self, t: int) -> Floats:
        """The context of a round, (dim,)."""
        return np.zeros(0) if self.contexts is None else self.contexts[t]

    def means(self, t: int) -> Floats:
        """Mean rewards of a round, (arms,)."""
        if self.table is not None:
            return np.asarray(self.table[t], np.float64)
        assert self.theta is not None
        values = self.theta[:, 0] + self.theta[:, 1:] @ self.context(t)
        return np.asarray(1 / (1 + np.exp(-values)) if self.clicks else values)

    def reward(self, t: int, mean: float) -> float:
        """The reward of an arm whose mean at this round is ``mean``."""
        return float(self.draws[t] < mean) if self.clicks else mean + self.noise * float(self.draws[t])

    def save(self, path: Path) -> None:
        arrays = {name: getattr(self, name) for name in ("paths", "contexts", "theta", "table", "draws")}
        plain = {"horizon": self.horizon, "clicks": self.clicks, "noise": self.noise, "told": self.told}
        kept = {name: array for name, array in arrays.items() if array is not None}
        np.savez(path, plain=np.array(json.dumps(plain)), **kept)

    @classmethod
    def load(cls, path: Path) -> World:
        with np.load(path) as file:
            plain = json.loads(str(file["plain"]))
            return cls(**plain, **{name: file[name] for name in file.files if name != "plain"})
