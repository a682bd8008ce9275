"""Make the table of numbers below each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from banditree.output.html import number
from banditree.paper.claims.claim import parameter
from banditree.simulation.runs import Runs


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first ``words`` columns are words, the others numbers. ``label`` is for screen readers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    label: str
    words: int = 1


def numbers(figure: str, runs: Mapping[str, Runs]) -> Grid:
    """Return regret at T over seeds: one row per policy, or one per setting if there are several."""
    if list(runs) == [""]:
        return _policies(figure, runs[""])
    if all("depth=" in label for label in runs):
        return _depths(figure, runs)
    return _settings(figure, runs)


def _policies(figure: str, runs: Runs) -> Grid:
    columns = ("policy", "regret at T", "sd", "se", "belief draws per step", "µs per step")
    rows = [
        (row.policy, *map(number, (row.mean, row.sd, row.se, row.evaluations, row.microseconds)))
        for row in runs.table()
    ]
    return Grid(columns, rows, f"Numbers of figure {figure}")


def _settings(figure: str, runs: Mapping[str, Runs]) -> Grid:
    policies = next(iter(runs.values())).policies
    columns = ("setting", *(f"{name} {what}" for name in policies for what in ("regret at T", "sd", "se")))
    rows = []
    for label, each in runs.items():
        found = {row.policy: row for row in each.table()}
        cells = (number(found[name][what]) for name in policies for what in ("mean", "sd", "se"))
        rows.append((label.replace("=", " = "), *cells))
    return Grid(columns, rows, f"Numbers of figure {figure}")


def _depths(figure: str, runs: Mapping[str, Runs]) -> Grid:
    """Return mean regret and its standard error: one row per number of arms, one column per depth."""
    found: dict[int, dict[int, str]] = {}
    for label, each in runs.items():
        row = each.table()[0]
        n_arms, depth = int(parameter(label, "n_arms")), int(parameter(label, "depth"))
        found.setdefault(n_arms, {})[depth] = f"{number(row.mean)} ± {number(row.se)}"
    deepest = max(max(by_depth) for by_depth in found.values())
    columns = ("N", *(f"L = {depth}" for depth in range(deepest + 1)))
    rows = [(str(n), *(by_depth.get(depth, "") for depth in range(deepest + 1))) for n, by_depth in found.items()]
    return Grid(columns, rows, f"Regret at T and its standard error, figure {figure}")
