"""The claim that clusters make a step cheaper, counted in belief draws, which do not depend on the machine."""

from __future__ import annotations

import numpy as np

from banditree.paper.claims.checks import Check, Finding, mean
from banditree.paper.claims.claim import Claim
from banditree.paper.claims.data import Data, Missing

PAIRS = {"TSC": "TS", "LinTSC": "LinTS"}  # {on clusters: flat}


def cheaper(data: Data) -> Finding:
    """Judge whether TSC draws fewer beliefs per step than TS, and LinTSC than LinTS, in every figure that was run."""
    checks, ratios, horizon = [], {}, 0  # the horizon of the first figure
    for figure in COST_FIGURES:
        try:
            settings = data.settings(figure)
        except Missing:
            continue
        for clustered, flat in PAIRS.items():
            runs = [each for each in settings.values() if {clustered, flat} <= set(each.policies)]
            if runs:
                draws = {name: np.mean([each.evaluations[name] for each in runs], axis=0) for name in (clustered, flat)}
                ratios[f"{flat}/{clustered} in {figure}"] = float(draws[flat].mean() / draws[clustered].mean())
                what = f"{clustered} draws fewer beliefs per step than {flat} in {figure}"
                checks.append(Check(what, mean(draws[flat] - draws[clustered])))
                horizon = horizon or data.horizon(figure)
    if not checks:
        raise Missing(", ".join(COST_FIGURES))
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    facts = (
        f"The flat policy draws between {ratios[least]:.1f} ({least}) and {ratios[most]:.1f} ({most}) times as many "
        "beliefs per step as the clustered one"
    )
    return Finding(tuple(checks), facts, ratios, min(check.estimate.seeds for check in checks), horizon)


COST_FIGURES = ("1a", "1b", "1c", "1d", "1e", "2a", "2b", "2d", "2e", "2f", "unstructured-regret")

COST = (
    Claim(
        "cheaper-steps",
        "Clusters make a step cheaper",
        "exploiting a given cluster structure can significantly improve the regret and computational cost compared to "
        "using standard Thompson sampling.",
        COST_FIGURES,
        "In each figure with both: the number of belief draws per step of TS minus that of TSC (LinTS and LinTSC), "
        "averaged over settings, paired by seed, is above 0. It is a count of the algorithm's work, which does not "
        "depend on the machine.",
        cheaper,
        over_time=False,
    ),
)
