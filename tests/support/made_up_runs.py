"""Made-up runs, for claims and reports: regrets with exactly the means and spreads that a test asks for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditree.base.arrays import Floats
from banditree.simulation.runs import Runs

SEEDS = 30


def noise(key: str, seeds: int = SEEDS) -> Floats:
    """Mean 0 and standard deviation 1 exactly, another order for every key: (seeds,)."""
    drawn = np.random.default_rng(zlib.crc32(key.encode())).standard_normal(seeds)
    drawn -= drawn.mean()
    scaled: Floats = drawn / drawn.std(ddof=1)
    return scaled


def runs(
    finals: Mapping[str, float],
    *,
    sd: float = 1.0,
    key: str = "",
    horizon: int = 400,
    powers: Mapping[str, float] | None = None,
    evaluations: Mapping[str, float] | None = None,
    clusters: Mapping[Any, float] | None = None,
    shared: float = 0.0,
    seeds: int = SEEDS,
) -> Runs:
    """Policies with these mean regrets at the horizon, growing like t^power; ``sd`` over seeds is each policy's own.

    ``shared`` is the standard deviation of what the instance of a seed adds to all of them.
    """
    times = np.arange(1, 101) * (horizon // 100)
    together = shared * noise(f"{key} together", seeds)
    regret = {}
    for name, final in finals.items():
        at_end = final + sd * noise(f"{key} {name}", seeds) + together  # (seeds,)
        regret[name] = at_end[:, None] * (times / horizon) ** (powers or {}).get(name, 0.5)
    plays = [
        {c: n + 0.1 * noise(f"{key} {c}", seeds)[i] for c, n in (clusters or {0: 1}).items()} for i in range(seeds)
    ]
    return Runs(
        times=times,
        seeds=tuple(range(seeds)),
        regret=regret,
        engine=dict.fromkeys(finals, "native"),
        evaluations={name: np.full(seeds, (evaluations or {}).get(name, 10.0)) for name in finals},
        seconds=dict.fromkeys(finals, 0.1),
        clusters=dict.fromkeys(finals, plays),
        plays={},
        arms=(),
        problem="made_up()",
    )


def sweep(key: str, values: Sequence[float], finals: Mapping[str, Sequence[float]], **options: Any) -> dict[str, Runs]:
    """A setting for each value of a parameter."""
    return {
        f"{key}={value:g}": runs({name: means[i] for name, means in finals.items()}, key=f"{key}{value:g}", **options)
        for i, value in enumerate(values)
    }


@dataclass
class MadeUp:
    """Results that hold what a test put there."""

    figures: dict[str, dict[str, Runs]] = field(default_factory=dict)

    def __contains__(self, figure: object, /) -> bool:
        return figure in self.figures

    def runs(self, figure: str) -> dict[str, Runs]:
        return self.figures[figure]


def results(**figures: dict[str, Runs] | Runs) -> MadeUp:
    """Runs by figure; ``_1a`` is figure 1a, ``surface_regret`` is surface-regret."""
    found: dict[str, dict[str, Runs]] = {}
    for name, given in figures.items():
        found[name.lstrip("_").replace("_", "-")] = {"": given} if isinstance(given, Runs) else given
    return MadeUp(found)
