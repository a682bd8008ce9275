"""Read the numbers that claims need from the runs of each figure, under one variant, up to one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.paper.figures import DEFAULT
from banditree.simulation.runs import Runs

Floats = NDArray[np.float64]


class Source(Protocol):
    """The results of a reproduction: the runs of a figure under a variant, by setting."""

    def __contains__(self, key: object, /) -> bool: ...

    def runs(self, figure: str, variant: str = DEFAULT) -> Mapping[str, Runs]: ...


class Missing(Exception):
    """Raised when data that a claim needs were not run."""


@dataclass(frozen=True)
class Data:
    """A view of results. ``half=True`` sees the runs only up to half their horizon, to show the effect of T."""

    results: Source
    variant: str = DEFAULT
    half: bool = False
    jobs: int | None = -1  # workers, for claims that simulate something themselves

    def settings(self, figure: str) -> Mapping[str, Runs]:
        if (figure, self.variant) not in self.results:
            raise Missing(figure if self.variant == DEFAULT else f"{figure} ({self.variant})")
        return self.results.runs(figure, self.variant)

    def only(self, figure: str) -> Runs:
        """Return the runs of a figure that has a single setting."""
        (runs,) = self.settings(figure).values()
        return runs

    def at(self, runs: Runs) -> int:
        """Return the index of the time at which regret is read."""
        if not self.half:
            return len(runs.times) - 1
        first_half = np.flatnonzero(2 * runs.times <= runs.times[-1])
        if len(first_half) == 0:
            raise Missing("regret at half the horizon")
        return int(first_half[-1])

    def horizon(self, figure: str) -> int:
        """Return the time at which regret is read; the same in all settings of a figure."""
        runs = next(iter(self.settings(figure).values()))
        return int(runs.times[self.at(runs)])

    def final(self, figure: str, policy: str) -> Floats:
        """Return regret at the end in a figure with a single setting: (seeds,)."""
        return self._final(self.only(figure), policy, figure)

    def sweep(self, figure: str, policy: str, key: str) -> tuple[Floats, Floats]:
        """Return the values of the parameter, ascending, and regret at the end: (settings,), (seeds, settings)."""
        found = sorted((parameter(label, key), label) for label in self.settings(figure))
        if len(found) < 3:
            raise Missing(f"three settings of {figure}")
        columns = [self._final(self.settings(figure)[label], policy, figure) for _, label in found]
        return np.array([value for value, _ in found]), np.stack(columns, axis=1)

    def depths(self, figure: str) -> tuple[Floats, list[Floats]]:
        """Return numbers of arms, ascending, and regret of HTS at the end: (sizes,), and (seeds, depths) per size."""
        found: dict[float, dict[float, Floats]] = {}
        for label, runs in self.settings(figure).items():
            by_depth = found.setdefault(parameter(label, "n_arms"), {})
            by_depth[parameter(label, "depth")] = self._final(runs, "HTS", figure)
        if len(found) < 3:
            raise Missing(f"three settings of {figure}")
        sizes = sorted(found)
        return np.array(sizes), [np.stack([found[n][depth] for depth in sorted(found[n])], axis=1) for n in sizes]

    def curve(self, figure: str, policy: str) -> tuple[NDArray[np.int64], Floats]:
        """Return times and regret in a figure with a single setting: (times,), (seeds, times)."""
        runs = self.only(figure)
        end = self.at(runs) + 1
        return runs.times[:end], self._regret(runs, policy, figure)[:, :end]

    def policies(self, figure: str) -> tuple[str, ...]:
        return next(iter(self.settings(figure).values())).policies

    def _final(self, runs: Runs, policy: str, figure: str) -> Floats:
        return self._regret(runs, policy, figure)[:, self.at(runs)]

    @staticmethod
    def _regret(runs: Runs, policy: str, figure: str) -> Floats:
        if policy not in runs.regret:
            raise Missing(f"{policy} in {figure}")
        return runs.regret[policy]


def parameter(label: str, key: str) -> float:
    """Return the value of a key in the label of a setting, such as "n_arms=64 depth=2".

    >>> parameter("n_arms=64 depth=2", "depth")
    2.0
    """
    return float(dict(part.split("=") for part in label.split())[key])
