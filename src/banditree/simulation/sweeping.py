"""The same policies on a family of problems: regret against the parameters of the problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from banditree.errors import Interrupted, InvalidType, InvalidValue
from banditree.output.frames import frame
from banditree.output.tables import Table
from banditree.simulation.one_seed import Factory
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from banditree.simulation.statistics import over_seeds

OURS = ("policy", "seed", "regret", "mean", "sd", "se", "interval")  # columns that no parameter may be called


def sweep(
    grid: Mapping[str, Iterable[Any]],
    make_problem: Callable[..., Any],
    policies: Mapping[str, Factory] | Iterable[Factory],
    *,
    horizon: int,
    seeds: int | Iterable[int],
    **options: Any,
) -> Sweep:
    """Run `simulate` for every combination of the values in ``grid``, ``{parameter: values}``.

    ``make_problem(**parameters)`` gives the problem of a combination; ``options`` are those of `simulate`. On Ctrl-C
    the combinations that are finished are in ``.sweep`` of the exception.

    >>> import banditree as bt
    >>> grid = {"n_arms": [20, 40], "distance": [0.05, 0.1]}
    >>> make = lambda n_arms, distance: bt.problems.strong_dominance(n_arms, n_clusters=4, n_best=4, distance=distance)
    >>> found = bt.sweep(grid, make, [bt.TS, bt.TSC], horizon=100, seeds=5)
    >>> len(found.table()), found.to_frame().shape
    (8, (40, 5))
    """
    values = _checked(grid)
    if not callable(make_problem):
        raise InvalidType(f"make_problem={make_problem!r:.60} must be a function of {', '.join(values)}")
    policies = dict(policies) if isinstance(policies, Mapping) else list(policies)
    indices = seeds if isinstance(seeds, int) else list(seeds)
    points: list[dict[str, Any]] = []
    runs: list[Runs] = []
    for combination in product(*values.values()):
        point = dict(zip(values, combination, strict=True))
        try:
            runs.append(simulate(policies, make_problem(**point), horizon=horizon, seeds=indices, **options))
        except Interrupted as stopped:
            stopped.sweep = Sweep(values, tuple(points), tuple(runs))
            raise
        points.append(point)
    return Sweep(values, tuple(points), tuple(runs))


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Runs of the same policies for every combination of some parameters. Printing shows the table."""

    grid: Mapping[str, Sequence[Any]]  # {parameter: its values}
    points: tuple[Mapping[str, Any], ...]  # every combination, {parameter: value}, the last parameter fastest
    runs: tuple[Runs, ...]  # of each of them

    def table(self) -> Table:
        """A row for every combination and policy: the parameters, and regret at the horizon over seeds."""
        rows = []
        for point, runs in zip(self.points, self.runs, strict=True):
            for policy, regret in runs.regret.items():
                over = over_seeds(regret[:, -1])
                rows.append((*point.values(), policy, over.mean, over.sd, over.se, over.interval))
        return Table((*self.grid, "policy", "mean", "sd", "se", "interval"), rows)

    def to_frame(self) -> Any:
        """A row for every combination, policy and seed: the parameters, policy, seed, and regret at the horizon.

        In the library that is installed: pandas, Polars or PyArrow.
        """
        columns: dict[str, list[Any]] = {name: [] for name in (*self.grid, "policy", "seed", "regret")}
        for point, runs in zip(self.points, self.runs, strict=True):
            for policy, regret in runs.regret.items():
                for seed, value in zip(runs.seeds, regret[:, -1].tolist(), strict=True):
                    for name, each in {**point, "policy": policy, "seed": seed, "regret": value}.items():
                        columns[name].append(each)
        return frame(columns)

    def plot(self, x: str | None = None, **options: Any) -> Any:
        """Regret at the horizon against a parameter, the first one or ``x``: one line per policy, bars of 1 sd.

        Returns the Axes; with more parameters an array of them, one for each combination of the others. Values that are
        not numbers are taken in the order given.
        """
        from banditree import plots

        x = next(iter(self.grid)) if x is None else x
        if x not in self.grid:
            raise InvalidValue(f"x={x!r} is not a parameter; there are {', '.join(self.grid)}")
        panels: dict[tuple[Any, ...], dict[str, Any]] = {}
        for point, runs in zip(self.points, self.runs, strict=True):
            series = panels.setdefault(tuple(value for name, value in point.items() if name != x), {})
            for policy, regret in runs.regret.items():
                over = over_seeds(regret[:, -1])
                line = series.setdefault(policy, ([], [], []))
                for numbers, value in zip(line, (self._place(x, point[x]), over.mean, over.sd), strict=True):
                    numbers.append(0.0 if math.isnan(value) else value)  # one seed has no spread
        others = [name for name in self.grid if name != x]
        titles = [", ".join(f"{name} = {value}" for name, value in zip(others, each, strict=True)) for each in panels]
        words = {
            "x_label": x,
            "y_label": f"cumulative regret at T = {int(self.runs[0].times[-1]):,} (reward)",
            "seeds": len(self.runs[0].seeds),
        }
        return plots.panels(list(panels.values()), titles=titles, ticks=self._ticks(x), **words, **options)

    def _place(self, name: str, value: Any) -> float:
        """Where a value stands on the axis."""
        ticks = self._ticks(name)
        return float(value) if ticks is None else float(ticks.index(str(value)))

    def _ticks(self, name: str) -> list[str] | None:
        """The words below the axis, where the values are not numbers."""
        values = self.grid[name]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        return None if numeric else [str(value) for value in values]

    def __repr__(self) -> str:
        return str(self.table())


def _checked(grid: Any) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping) or not grid:
        raise InvalidType(
            f"grid={grid!r:.60} must be a mapping from parameters to values, as {{'n_arms': [100, 1000]}}"
        )
    found: dict[str, list[Any]] = {}
    for name, values in grid.items():
        if not isinstance(name, str) or name in OURS:
            raise InvalidValue(
                f"parameter {name!r} must have another name, which is text and none of {', '.join(OURS)}"
            )
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidType(f"grid[{name!r}] is {values!r:.60}; give a list of values, also for a single one")
        listed = list(values)
        found[name] = [value.item() if hasattr(value, "item") else value for value in listed]  # NumPy's numbers too
        if not listed or len({repr(value) for value in listed}) < len(listed):
            raise InvalidValue(f"grid[{name!r}] is {listed!r:.60}; give at least one value, and none twice")
    return found
