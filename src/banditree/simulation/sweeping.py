"""Run the same policies on a family of problems: regret against the parameters of the problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.base.result import Result
from banditree.base.tables import Table, frame
from banditree.base.words import count
from banditree.errors import BadFile, Interrupted, InvalidType, InvalidValue
from banditree.policy.factories import Factory
from banditree.problems.instance import AnyProblem
from banditree.simulation import files
from banditree.simulation.runs import Runs, made_notes
from banditree.simulation.simulator import simulate
from banditree.simulation.statistics import OverSeeds, over_seeds

if TYPE_CHECKING:
    from banditree.base.document import Document

RESERVED = ("policy", "seed", "regret", "mean", "sd", "se", "interval")  # columns, so not names of parameters
Point = Mapping[str, Any]  # a combination, {parameter: value}
Series = tuple[list[float], list[float], list[float]]  # x, mean and sd of each point


def sweep(
    grid: Mapping[str, Iterable[object]],
    make_problem: Callable[..., AnyProblem],
    policies: Mapping[str, Factory] | Iterable[Factory],
    *,
    horizon: int,
    seeds: int | Iterable[int],
    **options: Any,
) -> Sweep:
    """Run `simulate` for every combination of the values in ``grid``.

    On Ctrl-C the finished combinations are in ``.sweep`` of the exception.

    Parameters
    ----------
    grid
        ``{parameter: values}``.
    make_problem
        Returns the problem of a combination; it is called as ``make_problem(**parameters)``.
    policies, horizon, seeds, **options
        As for `simulate`.

    Examples
    --------
    >>> import banditree as bt
    >>> grid = {"n_arms": [20, 40], "distance": [0.05, 0.1]}
    >>> make = lambda n_arms, distance: bt.problems.strong_dominance(n_arms, n_clusters=4, n_best=4, distance=distance)
    >>> result = bt.sweep(grid, make, [bt.TS, bt.TSC], horizon=100, seeds=5)
    >>> len(result.table()), result.to_frame().shape
    (8, (40, 5))
    """
    values = _read_grid(grid)
    if not callable(make_problem):
        raise InvalidType(f"make_problem={make_problem!r:.60} must be a function of {', '.join(values)}")
    policies = dict(policies) if isinstance(policies, Mapping) else list(policies)
    indices = seeds if isinstance(seeds, int) else list(seeds)
    points: list[dict[str, object]] = []
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
class Sweep(Result):
    """Runs of the same policies for every combination of some parameters. Printing shows the table."""

    grid: Mapping[str, Sequence[object]]  # {parameter: its values}
    points: tuple[Point, ...]  # every combination, the last parameter fastest
    runs: tuple[Runs, ...]  # of each combination

    def table(self) -> Table:
        """Return one row per combination and policy: the parameters, and regret at the horizon over seeds."""
        rows = [
            (*point.values(), policy, final.mean, final.sd, final.se, final.interval)
            for point, policy, final in self._finals()
        ]
        return Table((*self.grid, "policy", "mean", "sd", "se", "interval"), rows)

    def to_frame(self) -> Any:
        """Return one row per combination, policy and seed: the parameters, policy, seed, and regret at the horizon.

        In the library that is installed: pandas, Polars or PyArrow.
        """
        rows = self._rows()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(self._columns())})

    def _columns(self) -> tuple[str, ...]:
        return (*self.grid, "policy", "seed", "regret")

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (*point.values(), policy, seed, value)
            for point, runs in zip(self.points, self.runs, strict=True)
            for policy, regret in runs.regret.items()
            for seed, value in zip(runs.seeds, regret[:, -1].tolist(), strict=True)
        ]

    @property
    def about(self) -> dict[str, object]:
        """What the sweep was made with: rng, delay, batch, version, horizon, and the problem of every combination."""
        return self.runs[0].about | {"problem": [runs.problem for runs in self.runs]}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: as ``.csv`` the rows of `to_frame`, for other tools; else NPZ with everything for `load`."""
        if files.is_csv(path):
            return files.write_csv(path, self._columns(), self._rows())
        encoded = [files.encode_runs(runs, f"{i}.") for i, runs in enumerate(self.runs)]
        header = {"kind": "sweep", "grid": self.grid, "points": self.points, "runs": [header for header, _ in encoded]}
        return files.write_npz(path, header, {name: array for _, arrays in encoded for name, array in arrays.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sweep:
        """Read what `save` wrote as ``.npz``: everything except the instances."""
        header, arrays = files.read_npz(path, "sweep")
        try:
            runs = [files.decode_runs(Runs, one, arrays, f"{i}.") for i, one in enumerate(header["runs"])]
            if len(header["points"]) != len(runs):
                raise ValueError("there must be runs for every combination")
            return cls(dict(header["grid"]), tuple(header["points"]), tuple(runs))
        except files.DAMAGES as error:
            raise BadFile(f"{path} is damaged: {error}") from None

    def plot(self, x: str | None = None, *, band: str | None = "sd", log: bool = False, **options: Any) -> Any:
        """Plot regret at the horizon against a parameter: one line per policy, with error bars.

        Parameters
        ----------
        x
            The parameter on the horizontal axis; the first one by default. Values that are not numbers are drawn in
            the order given.
        band
            The bars: "sd" or "se" over seeds, "interval" for a 95% interval of the mean, or None.
        log
            Whether the horizontal axis is logarithmic.
        options
            Those of `banditree.plots.sweep`, such as ``y_label``.

        Returns
        -------
        The Axes; with more parameters an array of them, one for each combination of the others.
        """
        from banditree import plots

        x = next(iter(self.grid)) if x is None else x
        if x not in self.grid:
            raise InvalidValue(f"x={x!r} is not a parameter; there are {', '.join(self.grid)}")
        is_numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.grid[x])
        ticks = None if is_numeric else [str(value) for value in self.grid[x]]  # texts below the axis
        panels: dict[tuple[object, ...], dict[str, Series]] = {}
        for point, policy, final in self._finals():
            lines = panels.setdefault(tuple(value for name, value in point.items() if name != x), {})
            at = float(point[x] if ticks is None else ticks.index(str(point[x])))
            add_point(lines, policy, at, final, band)
        others = [name for name in self.grid if name != x]
        titles = [
            ", ".join(f"{name} = {value}" for name, value in zip(others, values, strict=True)) for values in panels
        ]
        words: dict[str, Any] = {"x_label": x, "seeds": len(self.runs[0].seeds), "band": band, "log": log} | options
        words.setdefault("y_label", f"cumulative regret at T = {int(self.runs[0].times[-1]):,} (reward)")
        return plots.panels(list(panels.values()), titles=titles, ticks=ticks, **words)

    def document(self) -> Document:
        from banditree.base.document import Document, Picture

        def draw() -> str:
            from banditree import plots

            axes = self.plot(in_window=False)
            return plots.svg(axes if not isinstance(axes, np.ndarray) else axes.flat[0])

        horizon, seeds = int(self.runs[0].times[-1]), count(len(self.runs[0].seeds), "seed")
        combinations = count(len(self.points), "combination")
        headline = f"Regret for {combinations} of {' and '.join(self.grid)}: {seeds}, horizon {horizon:,}"
        return Document(headline, (self.table().grid(), Picture(draw, alt=headline), *made_notes(self.runs[0].made)))

    def facts(self) -> dict[str, object]:
        return {"grid": self.grid, "about": self.about, "table": self.table()}

    def _finals(self) -> Iterator[tuple[Point, str, OverSeeds]]:
        """Yield every combination and policy with its regret at the horizon."""
        for point, runs in zip(self.points, self.runs, strict=True):
            for policy, regret in runs.regret.items():
                yield point, policy, over_seeds(regret[:, -1])


def add_point(lines: dict[str, Series], name: str, x: float, final: OverSeeds, band: str | None = "sd") -> None:
    """Add a point to the line of this name; a single seed has no spread, and is drawn with 0."""
    xs, means, sds = lines.setdefault(name, ([], [], []))
    xs.append(x)
    means.append(final.mean)
    sds.append(final.half_width(band or "sd") if final.seeds > 1 else 0.0)


def _read_grid(grid: object) -> dict[str, list[object]]:
    if not isinstance(grid, Mapping) or not grid:
        raise InvalidType(
            f"grid={grid!r:.60} must be a mapping from parameters to values, as {{'n_arms': [100, 1000]}}"
        )
    values_by_name: dict[str, list[object]] = {}
    for name, values in grid.items():
        if not isinstance(name, str) or name in RESERVED:
            raise InvalidValue(
                f"parameter {name!r} must have another name: a text that is not one of {', '.join(RESERVED)}"
            )
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidType(f"grid[{name!r}] is {values!r:.60}; give a list of values, even for a single one")
        listed = list(values)
        # Numbers of NumPy become Python's.
        values_by_name[name] = [value.item() if hasattr(value, "item") else value for value in listed]
        if not listed or len({repr(value) for value in listed}) < len(listed):
            raise InvalidValue(f"grid[{name!r}] is {listed!r:.60}; give at least one value, and none twice")
    return values_by_name
