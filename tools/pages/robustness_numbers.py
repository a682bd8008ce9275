"""The numbers of docs/robustness.md: run the policies on a world, and compare ATS with the others at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditree.simulation.simulator import simulate
from banditree.simulation.statistics import OverSeeds, over_seeds
from tools.pages.robustness_worlds import World

Floats = NDArray[np.float64]
OURS, FLAT = "ATS", "TS"


@dataclass(frozen=True)
class Ratio:
    """The mean regret of one policy over that of another on the same seeds, and its standard error."""

    value: float
    se: float

    @classmethod
    def of(cls, a: Floats, b: Floats) -> Ratio:
        """Compute it, paired: to first order the error of mean a / mean b is that of a - ratio b, over mean b.

        >>> Ratio.of(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
        Ratio(value=0.5, se=0.0)
        """
        value = float(a.mean() / b.mean())
        return cls(value, over_seeds(a - value * b).se / float(b.mean()))

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.se:.2f}"


@dataclass(frozen=True)
class Point:
    """The regret of all policies on a world at one time."""

    world: World
    time: int
    regret: Mapping[str, Floats]  # {policy: (seeds,)}

    @property
    def best(self) -> str:
        """The policy with the least mean regret, of those that are not ours."""
        return min((name for name in self.regret if name != OURS), key=lambda name: self.regret[name].mean())

    def over_seeds(self, policy: str) -> OverSeeds:
        return over_seeds(self.regret[policy])

    def tail(self, policy: str) -> float:
        """The 99th percentile over seeds."""
        return float(np.quantile(self.regret[policy], 0.99))

    @property
    def to_best(self) -> Ratio:
        return Ratio.of(self.regret[OURS], self.regret[self.best])

    @property
    def to_flat(self) -> Ratio:
        return Ratio.of(self.regret[OURS], self.regret[FLAT])

    @property
    def tail_to_flat(self) -> float:
        return self.tail(OURS) / self.tail(FLAT)


def measure(world: World, *, jobs: int | None = -1, progress: Callable[[float], None] | None = None) -> list[Point]:
    """Run all policies, and look at a tenth of the horizon, the horizon, and ten times it where some seeds go on."""
    policies, horizon = world.policies(), world.horizon
    times = [horizon // 10, horizon]
    work = {10 * horizon: range(world.long_seeds), horizon: range(world.long_seeds, world.seeds)}
    work = {end: seeds for end, seeds in work.items() if seeds}
    steps = sum(end * len(seeds) for end, seeds in work.items())
    parts, done = [], 0.0
    for end, seeds in work.items():
        share = end * len(seeds) / steps
        part = simulate(
            policies,
            world.problem,
            horizon=end,
            seeds=seeds,
            checkpoints=times,
            jobs=jobs,
            progress=_within(progress, done, share),
        )
        parts.append(part)
        done += share
    found = []
    for place, time in enumerate([*times, 10 * horizon]):
        there = [part for part in parts if place < len(part.times)]
        if there:
            regret = {name: np.concatenate([part.regret[name][:, place] for part in there]) for name in policies}
            found.append(Point(world, time, regret))
    return found


def _within(progress: Callable[[float], None] | None, start: float, share: float) -> Callable[[float], None] | bool:
    """The progress of a part of some work."""
    if progress is None:
        return False
    return lambda done: progress(start + share * done)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean on the log scale.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return float(np.exp(np.mean(np.log(values))))
