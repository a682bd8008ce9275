"""Claims about the instances themselves: which of them have the dominance that the theorems assume."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from banditree import theory
from banditree.paper.claims.checks import Check, Estimate, Finding, Floats
from banditree.paper.claims.claim import Claim, Evaluate
from banditree.paper.claims.data import Data
from banditree.paper.figures import FIGURES
from banditree.paper.results import stream
from banditree.problems import Instance
from banditree.simulation import Streams

DRAWS = 5  # instances of each setting


def dominated(figures: Sequence[str], *, expected: bool, hierarchical: bool = False) -> Evaluate:
    """Whether (hierarchical) strong dominance holds in every instance, or in none."""
    kind = "hierarchical strong dominance" if hierarchical else "strong dominance"

    def evaluate(data: Data) -> Finding:
        checks: list[Check] = []
        numbers: dict[str, float] = {}
        for figure in figures:
            data.settings(figure)  # only where the figure was run
            found = []
            # Settings that share their instances are looked at once.
            different = {setting.stream: setting for setting in FIGURES[figure].settings(data.variant)}
            for setting in different.values():
                streams = Streams(stream(figure, data.variant, setting))
                for seed in range(DRAWS):
                    instance = setting.problem.instance(streams.instance(seed))
                    quality = theory.quality(instance.tree, _means(instance))
                    found.append(quality.hierarchical if hierarchical else quality.dominance)
            share = float(np.mean(found))
            what = f"{kind} {'holds in all' if expected else 'fails in all'} instances of {figure}"
            estimate = Estimate(share if expected else 1 - share, 0.0, len(found))
            checks.append(Check(what, estimate, threshold=1 - 0.5 / len(found)))
            numbers |= {f"share of {figure} with dominance": share, f"instances of {figure}": float(len(found))}
        listed = ", ".join(
            f"{numbers[f'share of {figure} with dominance']:.0%} of {numbers[f'instances of {figure}']:.0f} instances "
            f"of {figure}"
            for figure in figures
        )
        facts = f"{kind.capitalize()} holds in {listed}"
        return Finding(tuple(checks), facts, numbers, checks[0].estimate.seeds, data.horizon(figures[0]))

    return evaluate


def _means(instance: Instance) -> Floats:
    assert instance.means is not None
    return instance.means


def _words(kind: str, where: str) -> str:
    return (
        f"{kind} is computed on the instances of the first {DRAWS} seeds of every setting; it must {where}. A count, "
        "with no sampling error."
    )


INSTANCES = (
    Claim(
        "instances-strong-dominance",
        "We generate synthetic data, for which strong dominance holds",
        ("1a", "1b", "1c", "1d", "1e"),
        _words("Strong dominance", "hold in all"),
        dominated(("1a", "1b", "1c", "1d", "1e"), expected=True),
        over_time=False,
    ),
    Claim(
        "instances-hierarchical-dominance",
        "recursively sorting and merging the arms into a balanced binary tree, which has the hierarchical strong "
        "dominance "
        "property.",
        ("1f",),
        _words("Hierarchical strong dominance", "hold in all"),
        dominated(("1f",), expected=True, hierarchical=True),
        over_time=False,
    ),
    Claim(
        "instances-violate-dominance",
        "the periodicity of sin yields many local optima and the optimal cluster won't strongly dominate the other "
        "clusters.",
        ("2a", "2b"),
        _words("Strong dominance", "fail in all"),
        dominated(("2a", "2b"), expected=False),
        over_time=False,
    ),
)
