"""From the runs of a figure to its picture."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from banditree import plots
from banditree.paper.figures import DEFAULT, Figure
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds
from banditree.tree import clustering


def draw(figure: Figure, variant: str, runs: Mapping[str, Runs], stem: Path) -> tuple[Path, Path]:
    """Write the picture of a figure, ``stem.png`` and ``stem.svg``."""
    return plots.save(axes(figure, variant, runs), stem)


def drawn(stem: Path) -> bool:
    """Whether both pictures are there."""
    return all((stem.parent / f"{stem.name}.{kind}").exists() for kind in ("png", "svg"))


def axes(figure: Figure, variant: str, runs: Mapping[str, Runs]) -> Any:
    """The picture of a figure as matplotlib Axes."""
    title = figure.title if variant == DEFAULT else f"{figure.title} ({variant})"
    if figure.kind == "function":
        return _function(figure, title)
    if figure.kind == "curves":
        return plots.regret(next(iter(runs.values())), ax=plots.sheet(), title=title)
    return _sweep(figure, variant, runs, title)


def _sweep(figure: Figure, variant: str, runs: Mapping[str, Runs], title: str) -> Any:
    series: dict[str, tuple[list[float], list[float], list[float]]] = {}  # {line: x, mean, sd}
    settings = figure.settings(variant)
    for setting in settings:
        for policy, regret in runs[setting.label].regret.items():
            final = regret[:, -1]  # (seeds,)
            xs, means, sds = series.setdefault(setting.line or policy, ([], [], []))
            xs.append(setting.x)
            found = over_seeds(final)
            means.append(found.mean)
            sds.append(found.sd if found.seeds > 1 else 0.0)
    n_seeds = len(next(iter(runs.values())).seeds)
    return plots.sweep(
        series,
        x_label=figure.x_label,
        y_label=f"cumulative regret at T = {figure.horizon:,} (reward)",
        seeds=n_seeds,
        ax=plots.sheet(),
        title=title,
        ordered=bool(settings[0].line),
    )


def _function(figure: Figure, title: str) -> Any:
    assert figure.function is not None
    parameters = figure.settings()[0].problem.parameters
    n_arms, n_clusters = parameters["n_arms"], parameters["n_clusters"]
    rng = np.random.default_rng(zlib.crc32(figure.name.encode()))
    flat = figure.name == "surface"
    places = rng.random((n_arms, 2) if flat else n_arms)
    tree = clustering.kmeans(places, branching=n_clusters, depth=1, rng=rng)
    top = tree.top_cluster()  # (arms,)
    return plots.function(
        figure.function, places, top, ax=plots.sheet(width=4.9) if flat else plots.sheet(), title=title
    )
