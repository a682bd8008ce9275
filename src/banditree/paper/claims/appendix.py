"""Claims of the appendix, and that clusters make a step cheaper."""

from __future__ import annotations

import numpy as np

from banditree.paper.claims.checks import Check, Finding, Missing, bending, exponent, log_ratio, mean
from banditree.paper.claims.claim import Claim, Data, Evaluate
from banditree.paper.claims.figure_2 import less, means

# ---------------------------------------------------------------- the appendix


LINEAR_EXPONENT = 0.9  # growth like t^0.9 or faster is linear, slower is sub-linear

SURFACE = (
    "both UCT and HTS exhibits linear cumulative regret curve while TSC is still sub-linear since arms clustered "
    "together tends to have similar reward."
)
BUMPS = "for this instance HTS exhibits sub-linear regret and performs better than TSC, for this clustering."


def growth(figure: str, policy: str, *, linear: bool) -> Evaluate:
    """Judge whether regret keeps growing in proportion to time."""

    def evaluate(data: Data) -> Finding:
        times, regret = data.curve(figure, policy)
        power = exponent(times, regret)
        what = f"the regret of {policy} is {'linear' if linear else 'sub-linear'}"
        check = Check(what, bending(times, regret, LINEAR_EXPONENT), above=linear)
        facts = (
            f"The regret of {policy} is {regret[:, -1].mean():.0f} at the end, and grows like t^{power:.2f} over the "
            "last three quarters of the run"
        )
        numbers = {"exponent": power, policy: float(regret[:, -1].mean())}
        return Finding((check,), facts, numbers, len(regret), data.horizon(figure))

    return evaluate


def better(figure: str, ours: str, theirs: str) -> Evaluate:
    """Judge whether one policy has less regret than another at the end."""

    def evaluate(data: Data) -> Finding:
        a, b = data.final(figure, ours), data.final(figure, theirs)
        facts = f"{ours} has a regret of {a.mean():.0f}, {theirs} of {b.mean():.0f}"
        numbers = means({ours: a, theirs: b})
        return Finding((less(ours, theirs, a, b),), facts, numbers, len(a), data.horizon(figure))

    return evaluate


def matters_for_hts(data: Data) -> Finding:
    """Judge whether HTS does worse relative to TSC where its tree is bad (surface) than where it is good (bumps)."""
    figures = ("surface-regret", "bumps-regret")
    both = {figure: (data.final(figure, "HTS"), data.final(figure, "TSC")) for figure in figures}
    bad, good = (log_ratio(hts, tsc) for hts, tsc in both.values())
    check = Check("HTS over TSC is larger on the surface than on the bumps", bad - good)
    numbers = {f"HTS/TSC in {figure}": float(hts.mean() / tsc.mean()) for figure, (hts, tsc) in both.items()}
    surface, bumps = numbers.values()
    facts = f"HTS has {surface:.2f} times the regret of TSC on the surface and {bumps:.2f} times on the bumps"
    return Finding((check,), facts, numbers, min(bad.seeds, good.seeds), data.horizon("surface-regret"))


def _describe_growth(side: str) -> str:
    return (
        f"Regret gained from T/2 to T minus 2^{LINEAR_EXPONENT:g} times that gained from T/4 to T/2, one number per "
        "seed, is "
        f"{side} 0: growth like a + b t^p has p {side} {LINEAR_EXPONENT:g}, whatever was lost at the start."
    )


def _describe_pair(ours: str, theirs: str) -> str:
    return f"Regret of {theirs} at T minus that of {ours}, paired by seed, is above 0."


APPENDIX = (
    *(
        Claim(
            f"surface-{name.lower()}-linear",
            f"On the surface, the regret of {name} keeps growing at the same rate",
            SURFACE,
            ("surface-regret",),
            _describe_growth("above"),
            growth("surface-regret", name, linear=True),
        )
        for name in ("HTS", "UCT")
    ),
    Claim(
        "surface-tsc-sublinear",
        "On the surface, the regret of TSC flattens",
        SURFACE,
        ("surface-regret",),
        _describe_growth("below"),
        growth("surface-regret", "TSC", linear=False),
    ),
    Claim(
        "surface-full-tree-too-deep",
        "On the surface, the full tree is too deep",
        "using the full tree in this case is a too aggressive exploration scheme and we see that care has to be taken "
        "in HTS when deciding how deep the hierarchical clustering should be.",
        ("surface-regret",),
        _describe_pair("TSC", "HTS"),
        better("surface-regret", "TSC", "HTS"),
    ),
    Claim(
        "bumps-hts-sublinear",
        "On the bumps, the regret of HTS flattens",
        BUMPS,
        ("bumps-regret",),
        _describe_growth("below"),
        growth("bumps-regret", "HTS", linear=False),
    ),
    Claim(
        "bumps-hts-better",
        "On the bumps, HTS is better than TSC",
        BUMPS,
        ("bumps-regret",),
        _describe_pair("HTS", "TSC"),
        better("bumps-regret", "HTS", "TSC"),
    ),
    Claim(
        "quality-matters-for-hts",
        "A bad tree hurts HTS more than TSC",
        "This illustrate that the quality of the clustering is very important for the regret, especially for HTS.",
        ("surface-regret", "bumps-regret"),
        "log(HTS / TSC) of mean regrets at T is larger on the surface, where the tree is bad, than on the bumps, "
        "where it is good (jackknife over seeds in each).",
        matters_for_hts,
    ),
    Claim(
        "unstructured-tsc-worse",
        "Where clusters say nothing, TSC is worse than TS",
        "as expected we see that TSC has a cumulative regret which is worse then TS, since the quality of the "
        "clustering is bad.",
        ("unstructured-regret",),
        _describe_pair("TS", "TSC"),
        better("unstructured-regret", "TS", "TSC"),
    ),
)


# ---------------------------------------------------------------- the cost of a step, in belief draws


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
            both = [runs for runs in settings.values() if {clustered, flat} <= set(runs.policies)]
            if both:
                draws = {name: np.mean([runs.evaluations[name] for runs in both], axis=0) for name in (clustered, flat)}
                ratios[f"{flat}/{clustered} in {figure}"] = float(draws[flat].mean() / draws[clustered].mean())
                what = f"{clustered} draws fewer beliefs per step than {flat} in {figure}"
                checks.append(Check(what, mean(draws[flat] - draws[clustered])))
                horizon = horizon or data.horizon(figure)
    if not checks:
        raise Missing(", ".join(COST_FIGURES))
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    many = f"{ratios[least]:.1f} times"
    if least != most:
        many = f"between {ratios[least]:.1f} ({least}) and {ratios[most]:.1f} ({most}) times"
    facts = f"The flat policy draws {many} as many beliefs per step as the clustered one"
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
