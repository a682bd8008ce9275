"""Compute the theory part of the report: bounds on one instance of figures 1a to 1e, and regret measured on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from banditree import TS, TSC, plots, problems
from banditree import theory as bounds
from banditree.paper.results import Results
from banditree.report.document import Grid
from banditree.report.words import number
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from banditree.tree import Tree

HORIZON = 30_000  # ten times that of the figures, so that growth can be seen
N_HIERARCHY = 64  # arms of the tree on which Theorem 7 is computed


@dataclass(frozen=True)
class Theory:
    """The tables and the picture of the theory part."""

    picture: Path
    seeds: int
    bounds: Grid
    growth: Grid
    levels: Grid


def theory(results: Results, *, jobs: int | None = -1) -> Theory:
    """Compute the theory part, with as many seeds as figure 1a has (ten if that was not run)."""
    drawn = problems.strong_dominance().instance(0)
    problem = problems.bernoulli(drawn.tree, drawn.means)
    seeds = results.kept["1a", "default"].seeds if "1a" in results else 10
    times = np.unique(np.geomspace(1, HORIZON, 80).astype(int)).tolist()
    runs = simulate(
        [TS, TSC],
        problem,
        horizon=HORIZON,
        seeds=seeds,
        rng=0,
        checkpoints=[*times, HORIZON // 10],
        jobs=jobs,
        progress=False,
    )
    title = "TS and TSC on one instance, and the bounds"
    axes = plots.regret(runs, bounds=True, log_time=True, ax=plots.sheet(), title=title)
    picture, _ = plots.save(axes, results.out / "theory")
    assert drawn.means is not None
    return Theory(picture, seeds, _bounds(drawn.tree, drawn.means), _growth(runs), _levels())


def _bounds(tree: Tree, means: NDArray[np.float64]) -> Grid:
    quality, plays = bounds.quality(tree, means), bounds.cluster_plays(tree, means)
    upper = bounds.tsc_minimax(tree, means, horizon=HORIZON)
    rows = [
        ("definition", "width of the best cluster, w*", quality.width),
        ("definition", "least distance to it, d", min(quality.distance.values())),
        ("definition", "mean of w*/d_C, γ", quality.gamma),
        ("Theorem 1", "plays of an arm by TS, over log T + log log T, at most", max(bounds.arm_plays(means).values())),
        ("Theorem 2", "plays of a cluster by TSC, over log T + log log T", max(plays.values())),
        ("Theorem 3", "regret of TSC over log T, at most", bounds.tsc_upper(tree, means)),
        ("Theorem 3", "... after Pinsker's inequality", bounds.tsc_upper(tree, means, form="pinsker")),
        ("Theorem 4", f"√((A* + K(1 + γ)) T log T) at T = {HORIZON:,}", upper),
        ("Theorem 5", "regret of any good policy over log T, at least", bounds.lower(tree, means)),
        ("Theorem 6", f"√((A* + K) T) at T = {HORIZON:,}", bounds.minimax_lower(tree, means, horizon=HORIZON)),
        ("Lai and Robbins", "regret of TS over log T", bounds.lai_robbins(means)),
    ]
    return Grid(
        ("from", "what", "number"), [(*words, number(value)) for *words, value in rows], names=(0, 1), label="Bounds"
    )


def _levels() -> Grid:
    """Compute the bound of Theorem 7 for every depth, in its three forms."""
    instance = problems.hierarchical_dominance(N_HIERARCHY).instance(0)
    assert instance.means is not None
    upper = partial(bounds.hts_upper, instance.tree, instance.means)
    rows = [
        (str(depth), *(number(upper(depth=depth, form=form)) for form in ("kl", "pinsker", "printed")))
        for depth in range(instance.tree.depth + 1)
    ]
    return Grid(("depth L", "divergence", "Pinsker", "as printed"), rows, label="Theorem 7")


def _growth(runs: Runs) -> Grid:
    """Measure the growth of regret from T/10 to T."""
    before = int(np.flatnonzero(runs.times == HORIZON // 10)[0])
    rows = []
    for name, regret in runs.regret.items():
        early, late = float(regret[:, before].mean()), float(regret[:, -1].mean())
        rows.append((name, *map(number, (early, late, (late - early) / log(10)))))
    columns = ("policy", f"regret at {HORIZON // 10:,}", f"at {HORIZON:,}", "growth over log T")
    return Grid(columns, rows, label="Growth measured")
