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
from tools.pages.markdown import Table, figures, table
from tools.pages.robustness_numbers import FLAT, OURS, Floats, Ratio
from tools.pages.robustness_worlds import World

PER_DECADE = 20  # times per factor of ten, even on a log axis
LIKE = 2.0  # up to this ratio of what two factors of ten add, which is ten for a straight line, growth is called log T
SIZE = (6.4, 3.6)  # inches, of one panel


@dataclass(frozen=True)
class Growth:
    """Long runs on one world."""

    world: World
    runs: Runs

    def added(self, policy: str) -> dict[int, Floats]:
        """List what each factor of ten adds to a policy's regret, {its end: (seeds,)}."""
        decades = [place for place, t in enumerate(self.runs.times) if t >= 10 and np.log10(t) % 1 == 0]
        regret = self.runs.regret[policy]
        return {int(self.runs.times[end]): regret[:, end] - regret[:, start] for start, end in pairwise(decades)}


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
            added = [f"{_mean(more)} ({figures(more.max())})" for more in growth.added(policy).values()]
            rows.append((growth.world.name, policy, *added, _mean(growth.runs.regret[policy][:, -1])))
    ends = list(growths[0].added(OURS))
    header = ("world", "policy", *(f"{end // 10:,} to {end:,}" for end in ends), f"1 to {ends[-1]:,}")
    return table(Table(header, rows, left=2))


def _mean(values: Floats) -> str:
    over = over_seeds(values)
    return f"{figures(over.mean)} ± {figures(over.se, 2)}"


def verdict(growths: Sequence[Growth]) -> str:
    """Say how the last factor of ten compares with the one before, and what that means."""
    lines = []
    for growth in growths:
        before, last = list(growth.added(OURS).values())[-2:]
        ratio = Ratio.of(last, before)
        if ratio.value <= LIKE:
            grows = "its regret grows like log T, or slower"
        elif ratio.value - 2 * ratio.se <= LIKE:
            grows = "its regret may grow like log T, but a few seeds on which it learns late decide that"
        else:
            grows = "its regret grows faster than log T"
        compared = f"ATS adds {ratio} times as much in the last factor of ten as in the one before"
        lines.append(f"- *{growth.world.name}*: {compared}; {grows}.")
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
