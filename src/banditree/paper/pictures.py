"""Draw the picture of a figure from its runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from banditree import plots
from banditree.paper.figures import DEFAULT, Figure
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds
from banditree.simulation.sweeping import Series, add_point
from banditree.tree import clustering

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(figure: Figure, variant: str, runs: Mapping[str, Runs], stem: Path) -> tuple[Path, Path]:
    """Write the picture of a figure as ``stem.png`` and ``stem.svg``."""
    return plots.save(axes(figure, variant, runs), stem)


def is_drawn(stem: Path) -> bool:
    """Say whether both files of a picture exist."""
    return all((stem.parent / f"{stem.name}.{kind}").exists() for kind in ("png", "svg"))


def axes(figure: Figure, variant: str, runs: Mapping[str, Runs]) -> Axes:
    """Draw a figure, and return its Matplotlib Axes."""
    title = figure.title if variant == DEFAULT else f"{figure.title} ({variant})"
    if figure.kind == "function":
        return _function(figure, title)
    if figure.kind == "curves":
        return plots.regret(next(iter(runs.values())), ax=plots.sheet(), title=title)
    return _sweep(figure, variant, runs, title)


def _sweep(figure: Figure, variant: str, runs: Mapping[str, Runs], title: str) -> Axes:
    lines: dict[str, Series] = {}
    settings = figure.settings(variant)
    for setting in settings:
        for policy in settings[0].policies:  # of 1f, where ATS has no depth to tell, HTS alone
            regret = runs[setting.label].regret[policy]
            add_point(lines, setting.line or policy, setting.x, over_seeds(regret[:, -1]))
    return plots.sweep(
        lines,
        x_label=figure.x_label,
        y_label=f"cumulative regret at T = {figure.horizon:,} (reward)",
        seeds=len(next(iter(runs.values())).seeds),
        ax=plots.sheet(),
        title=title,
        ordered=bool(settings[0].line),
    )


def _function(figure: Figure, title: str) -> Axes:
    assert figure.function is not None
    parameters = figure.settings()[0].problem.parameters
    n_arms, n_clusters = parameters["n_arms"], parameters["n_clusters"]
    rng = np.random.default_rng(zlib.crc32(figure.name.encode()))
    is_plane = figure.name == "surface"
    positions = rng.random((n_arms, 2) if is_plane else n_arms)
    tree = clustering.kmeans(positions, branching=n_clusters, depth=1, rng=rng)
    top = tree.nodes.top_of_arms  # (arms,)
    return plots.function(
        figure.function, positions, top, ax=plots.sheet(width=4.9) if is_plane else plots.sheet(), title=title
    )
