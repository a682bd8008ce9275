"""A small shop, and advice for runs on it whose regret is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from banditree.base.arrays import Floats
from banditree.catalogue import Advice, Catalogue, inspect
from banditree.catalogue.advice import weigh
from banditree.catalogue.simulation import WITHOUT_TREE, parse_candidates
from banditree.simulation.runs import Runs
from banditree.tree import Tree

Curve = Callable[[Floats], Any]
SHOP = Tree({"shoes": {"warm": ["s1", "s2"], "light": ["s3"]}, "hats": ["h1", "h2", "h3"]})
KNOWN = Catalogue(SHOP, means=[0.1, 0.2, 0.1, 0.5, 0.6, 0.5])
COUNTED = Catalogue(SHOP, [50, 60, 40, 90, 80, 70], [5, 12, 4, 45, 44, 30])


def runs_of(curves: Mapping[str, Curve], *, worlds: int = 40, spread: float = 0.02) -> Runs:
    """Regret over time by label: a mean curve, which each world multiplies by 1 and a normal number of this spread."""
    times = np.linspace(1000, 20_000, 20).astype(np.int64)
    rng = np.random.default_rng(0)
    regret = {
        name: curve(times.astype(float)) * (1 + rng.normal(0, spread, (worlds, 1))) for name, curve in curves.items()
    }
    return Runs(
        times=times,
        seeds=tuple(range(worlds)),
        regret=regret,
        engine=dict.fromkeys(curves, "native"),
        evaluations={name: np.ones(worlds) for name in curves},
        seconds=dict.fromkeys(curves, 1.0),
        clusters={name: [{"hats": 20_000, "shoes": 0}] * worlds for name in curves},
        plays={},
        arms=(),
        problem="made up",
    )


def weighed(curves: Mapping[str, Curve], *, catalogue: Catalogue = COUNTED, **options: Any) -> Advice:
    """Advice for these curves, by the names that users write; "ATS without the tree" is one more of them."""
    named = [name for name in curves if name != WITHOUT_TREE.label]
    candidates = [*parse_candidates(named, SHOP), *([WITHOUT_TREE] if WITHOUT_TREE.label in curves else [])]
    by_label = {candidate.label: curves[name] for candidate, name in zip(candidates, curves, strict=True)}
    return weigh(candidates, runs_of(by_label, **options), inspect(catalogue))
