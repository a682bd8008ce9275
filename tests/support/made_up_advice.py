"""A small shop, and advice for runs on it whose regret is made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from banditree.catalogue import Advice, Catalogue, inspect
from banditree.catalogue.advice import weigh
from banditree.catalogue.comparison import WorldRuns
from banditree.catalogue.simulation import parse_candidates
from banditree.simulation.runs import Runs
from banditree.tree import Tree

SHOP = Tree({"shoes": {"warm": ["s1", "s2"], "light": ["s3"]}, "hats": ["h1", "h2", "h3"]})
KNOWN = Catalogue(SHOP, means=[0.1, 0.2, 0.1, 0.5, 0.6, 0.5])
COUNTED = Catalogue(SHOP, [50, 60, 40, 90, 80, 70], [5, 12, 4, 45, 44, 30])


def pairs(curves: Mapping[str, Any], *, worlds: int = 40, spread: float = 0.0, one_world: bool = False) -> WorldRuns:
    """Two runs in each world: a mean curve, a share of it that the world moves, and the luck of a run."""
    times = np.linspace(1000, 20_000, 20).astype(np.int64)
    rng = np.random.default_rng(0)
    regret = {}
    for name, curve in curves.items():
        shift = rng.normal(0, spread, (worlds, 1, 1)) if name != "TS" else 0.0
        luck = rng.normal(0, 0.02, (worlds, 2, 1))
        regret[name] = curve(times.astype(float))[None, None, :] * (1 + shift + luck)
    runs = Runs(
        times=times,
        seeds=tuple(range(worlds)),
        regret={name: values.mean(axis=1) for name, values in regret.items()},
        engine=dict.fromkeys(curves, "native"),
        evaluations={name: np.ones(worlds) for name in curves},
        seconds=dict.fromkeys(curves, 1.0),
        clusters={name: [{"hats": 20_000, "shoes": 0}] * worlds for name in curves},
        plays={},
        arms=(),
        problem="made up",
        replicates=regret,
    )
    return WorldRuns(runs, one_world)


def pairs_of(curves: Mapping[str, Any], **options: Any) -> WorldRuns:
    return pairs(
        {each.label: curve for each, curve in zip(parse_candidates(curves, SHOP), curves.values(), strict=True)},
        **options,
    )


def weighed(curves: Mapping[str, Any], *, catalogue: Catalogue = COUNTED, **options: Any) -> Advice:
    return weigh(catalogue, parse_candidates(curves, SHOP), pairs_of(curves, **options), inspect(catalogue))


def ahead_by(errors: float, *, worlds: int = 40) -> WorldRuns:
    """Known means: TSC is ahead of TS by so many standard errors."""
    made = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.1 * t}, worlds=worlds, one_world=True)
    luck = made.compare("TSC", "TS")
    regret = {**made.runs.replicates, "TSC": made.regret("TSC") + luck.saving - errors * luck.noise}
    means = {name: values.mean(axis=1) for name, values in regret.items()}
    return WorldRuns(replace(made.runs, replicates=regret, regret=means), True)
