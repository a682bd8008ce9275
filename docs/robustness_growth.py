"""How regret grows on docs/robustness.md: long runs, their table and their picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from banditree import plots
from banditree.plots.files import write
from banditree.plots.style import house_style
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from banditree.simulation.statistics import over_seeds
from benchmarks.findings import Table
from benchmarks.report.markdown import table
from benchmarks.words import figures
from docs.robustness_numbers import FLAT, OURS
from docs.robustness_worlds import World

PER_DECADE = 20  # times per factor of ten, even on a log axis
LIKE = 2.0  # up to this ratio of what two factors of ten add, which is ten for a straight line, growth is called log T
SIZE = (6.4, 3.6)  # inches, of one panel


@dataclass(frozen=True)
class Growth:
    """Long runs on one world."""

    world: World
    runs: Runs

    def added(self, policy: str) -> list[tuple[int, float, float, float]]:
        """List the time, mean, standard error and maximum of what each factor of ten adds to a policy's regret."""
        decades = [int(t) for t in self.runs.times if t >= 10 and np.log10(t) % 1 == 0]
        found = []
        for start, end in pairwise(decades):
            first, last = (int(np.flatnonzero(self.runs.times == t)[0]) for t in (start, end))
            more = self.runs.regret[policy][:, last] - self.runs.regret[policy][:, first]  # (seeds,)
            over = over_seeds(more)
            found.append((end, over.mean, over.se, float(more.max())))
        return found


def grow(world: World, *, jobs: int | None = -1, progress: Callable[[float], None] | None = None) -> Growth:
    """Run a world for long, with regret written down at times that are even on a log axis."""
    n = round(PER_DECADE * np.log10(world.horizon)) + 1
    times = np.unique(np.rint(np.geomspace(1, world.horizon, n)).astype(np.int64)).tolist()
    policies = world.policies()
    runs = simulate(
        {name: policies[name] for name in (OURS, FLAT)},
        world.problem,
        horizon=world.horizon,
        seeds=world.seeds,
        checkpoints=times,
        jobs=jobs,
        progress=progress or False,
    )
    return Growth(world, runs)


def growth_table(growths: Sequence[Growth]) -> str:
    """What every factor of ten adds: the same again and again is log T, ten times as much is a straight line."""
    rows = []
    for growth in growths:
        for policy in growth.runs.policies:
            cells = [
                f"{figures(mean)} ± {figures(se, 2)} ({figures(most)})" for _, mean, se, most in growth.added(policy)
            ]
            total = growth.runs.over_seeds(policy)
            rows.append((growth.world.name, policy, *cells, f"{figures(total.mean[-1])} ± {figures(total.se[-1], 2)}"))
    ends = [end for end, *_ in growths[0].added(OURS)]
    header = ("world", "policy", *(f"{end // 10:,} to {end:,}" for end in ends), f"1 to {ends[-1]:,}")
    return table(Table(header, rows, left=2))


def verdict(growths: Sequence[Growth]) -> str:
    """Say how the last factor of ten compares with the one before, and what that means."""
    lines = []
    for growth in growths:
        before, last = (added for _, added, _, _ in growth.added(OURS)[-2:])
        grows = (
            "no faster than log T" if last <= before else "like log T" if last <= LIKE * before else "faster than log T"
        )
        times = figures(last / before, 2)
        lines.append(
            f"On *{growth.world.name}* the last factor of ten adds {times} times as much to the regret of ATS as the one "
            f"before: it grows {grows}."
        )
    return "\n".join(lines)


def draw(growths: Sequence[Growth], path: Path) -> None:
    """Draw regret over the logarithm of time, one panel per world."""
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(SIZE[0], SIZE[1] * len(growths)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(len(growths), 1))
    for ax, growth in zip(panels, growths, strict=True):
        plots.regret(growth.runs, ax=ax, band="se", log_time=True, title=growth.world.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(panels[0], path)
