"""Claims on figure 2 and the appendix: which policy has less regret, whose regret flattens, and whose steps are cheap.

The docstrings of the functions are shown in the report as what decides a claim, with their parameters filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from banditree.base.arrays import Floats
from banditree.paper.claims.checks import Check, Finding, Missing, bending, exponent, log_ratio, mean
from banditree.paper.claims.claim import Claim, Data
from banditree.paper.claims.figure_1 import BIG_RATIO, less_or_more

SLIGHT_SHARE = 0.15  # "slightly better": better, but not by more than this share
PLACES = {"surface-regret": "on the surface", "bumps-regret": "on the bumps"}  # other figures: "in 2a"


def less(better: str, than: str, a: Floats, b: Floats) -> Check:
    """Check that one policy has less regret than another, paired by seed: (seeds,) both."""
    return Check(f"{better} has less regret than {than}", mean(b - a))


def no_more_than(share: float, better: str, than: str, a: Floats, b: Floats) -> Check:
    """Check that one policy has no more than this share less regret than another, unless refuted: (seeds,) both."""
    what = f"{better} has no more than {share:.0%} less regret than {than}"
    return Check(what, mean(a - (1 - share) * b), proof=False)


def means(regret: Mapping[str, Floats]) -> dict[str, float]:
    """Return the mean regret of each policy."""
    return {name: float(values.mean()) for name, values in regret.items()}


def list_regret(regret: Mapping[str, Floats]) -> str:
    """List the mean regret of each policy in words."""
    return ", ".join(f"{name} {values.mean():.0f}" for name, values in regret.items())


# ---------------------------------------------------------------- 2a to 2c


OUTPERFORMS = (
    "TSC outperforms the other algorithms on both instances and especially on the larger instance where there is a "
    "big gap between the regret of TSC and the regret of the other algorithms."
)
HTS, UCT = ("HTS L=2", "HTS L=3"), ("UCT L=2", "UCT L=3")  # the policies of figure 2c beside TSC
SLIGHT = "The HTS performs well on this problem and is slightly better than TSC while both HTS and TSC outperforms UCT."


def tsc_and_others(data: Data, figure: str) -> tuple[Floats, dict[str, Floats]]:
    """Return regret at T of TSC, (seeds,), and that of the other policies of a figure."""
    regret = {name: data.final(name, figure) for name in data.single(figure).policies}
    return regret.pop("TSC"), regret


def best(data: Data) -> Finding:
    """For every other policy, its regret at T minus that of TSC, paired by seed, is above 0."""
    tsc, others = tsc_and_others(data, data.figures[0])
    checks = tuple(less("TSC", name, tsc, regret) for name, regret in others.items())
    ranked = sorted(others.items(), key=lambda item: float(item[1].mean()))
    facts = f"TSC has a regret of {tsc.mean():.0f}; {list_regret(dict(ranked))}"
    return Finding(checks, facts, means({"TSC": tsc, **others}), len(tsc))


def big_gap(data: Data, *, ratio: float = BIG_RATIO) -> Finding:
    """TSC is far ahead in 2b, and farther than in 2a.

    (1) For every other policy in 2b, its regret at T minus {ratio:g} times that of TSC, paired by seed, is above 0;
    (2) log(second / TSC) of mean regrets is larger in 2b than in 2a (jackknife over seeds in each).
    """
    (tsc, others), (small_tsc, small_others) = (tsc_and_others(data, figure) for figure in ("2b", "2a"))
    second, small_second = (min(rivals, key=means(rivals).__getitem__) for rivals in (others, small_others))
    wide, narrow = log_ratio(others[second], tsc), log_ratio(small_others[small_second], small_tsc)
    checks = [
        Check(f"{name} has {ratio:g} times the regret of TSC", mean(regret - ratio * tsc))
        for name, regret in others.items()
    ]
    checks.append(Check("the gap to the second is wider in 2b than in 2a", wide - narrow))
    numbers = {f"{name}/TSC in 2b": float(regret.mean() / tsc.mean()) for name, regret in others.items()}
    numbers[f"{small_second}/TSC in 2a"] = float(small_others[small_second].mean() / small_tsc.mean())
    facts = (
        f"In 2b the second, {second}, has {numbers[f'{second}/TSC in 2b']:.2f} times the regret of TSC; in 2a the "
        f"second, {small_second}, has {numbers[f'{small_second}/TSC in 2a']:.2f} times"
    )
    return Finding(tuple(checks), facts, numbers, len(tsc))


def hts_slightly_better(data: Data, *, share: float = SLIGHT_SHARE) -> Finding:
    """For L = 2 and for L = 3, HTS is better than TSC, but not by much.

    (1) Regret of TSC at T minus that of HTS, paired by seed, is above 0; (2) unless refuted, HTS has at most
    {share:.0%} less regret.
    """
    regret = {name: data.final(name) for name in ("TSC", *HTS, *UCT)}
    tsc = regret["TSC"]
    checks = [
        check
        for name in HTS
        for check in (less(name, "TSC", regret[name], tsc), no_more_than(share, name, "TSC", regret[name], tsc))
    ]
    facts = f"TSC has a regret of {tsc.mean():.0f}, " + " and ".join(
        f"{name} {regret[name].mean():.0f} ({less_or_more(1 - regret[name].mean() / tsc.mean(), digits=1)})"
        for name in HTS
    )
    return Finding(tuple(checks), facts, means(regret), len(tsc))


def both_beat_uct(data: Data) -> Finding:
    """For L = 2 and for L = 3, both HTS and TSC are better than UCT.

    Regret of UCT at T minus that of TSC, of HTS L = 2 and of HTS L = 3, paired by seed, is above 0.
    """
    ours = {name: data.final(name) for name in ("TSC", *HTS)}
    theirs = {name: data.final(name) for name in UCT}
    checks = tuple(less(a, b, ours[a], theirs[b]) for a in ours for b in theirs)
    facts = f"Regret is {list_regret(ours)}, against {list_regret(theirs)}"
    return Finding(checks, facts, means(ours | theirs), len(ours["TSC"]))


VIOLATION = (
    *(
        Claim(f"tsc-best-{figure}", f"TSC has the least regret in figure {figure}", OUTPERFORMS, (figure,), best)
        for figure in ("2a", "2b")
    ),
    Claim("big-gap-2b", "The lead of TSC is largest on the larger instance", OUTPERFORMS, ("2b", "2a"), big_gap),
    Claim("hts-slightly-better", "HTS is slightly better than TSC", SLIGHT, ("2c",), hts_slightly_better),
    Claim("hts-tsc-beat-uct", "HTS and TSC both beat UCT", SLIGHT, ("2c",), both_beat_uct),
)


# ---------------------------------------------------------------- 2d to 2f


LARGER = (
    "LinTSC performs slightly better than LinUCBC as the problem becomes larger w.r.t number of arms and clusters, "
    "Figures 2e and 2f."
)


def clear_improvement(data: Data, *, ratio: float = 1.1) -> Finding:
    """In each of the figures, regret of LinTS at T minus {ratio:g} times that of LinTSC, paired by seed, is above 0."""
    regret = {figure: (data.final("LinTS", figure), data.final("LinTSC", figure)) for figure in data.figures}
    checks = tuple(
        Check(f"LinTS has {ratio:g} times the regret of LinTSC in {figure}", mean(flat - ratio * clustered))
        for figure, (flat, clustered) in regret.items()
    )
    ratios = {figure: float(flat.mean() / clustered.mean()) for figure, (flat, clustered) in regret.items()}
    listed = ", ".join(f"{value:.2f} in {figure}" for figure, value in ratios.items())
    facts = f"The regret of LinTS over that of LinTSC is {listed}"
    numbers = {f"LinTS/LinTSC in {figure}": value for figure, value in ratios.items()}
    return Finding(checks, facts, numbers, checks[0].estimate.seeds)


def slightly_better(data: Data, *, share: float = SLIGHT_SHARE) -> Finding:
    """In 2e and in 2f, LinTSC is better than LinUCBC, but not by much.

    (1) Regret of LinUCBC at T minus that of LinTSC, paired by seed, is above 0; (2) unless refuted, LinTSC has at most
    {share:.0%} less regret.
    """
    checks: list[Check] = []
    numbers: dict[str, float] = {}
    listed = []
    for figure in data.figures:
        ours, theirs = data.final("LinTSC", figure), data.final("LinUCBC", figure)
        than = f"LinUCBC in {figure}"
        checks += [less("LinTSC", than, ours, theirs), no_more_than(share, "LinTSC", than, ours, theirs)]
        numbers |= means({f"LinTSC in {figure}": ours, than: theirs})
        listed.append(f"{ours.mean():.0f} against {theirs.mean():.0f} in {figure}")
    facts = f"LinTSC has a regret of {' and '.join(listed)} for LinUCBC"
    return Finding(tuple(checks), facts, numbers, checks[0].estimate.seeds)


def ratio_is_larger(data: Data, *, policy: str, rival: str, larger: str, smaller: str, digits: int = 2) -> Finding:
    """log({policy} / {rival}) of mean regrets at T is larger in {larger} than in {smaller} (jackknife over seeds)."""
    both = {figure: (data.final(policy, figure), data.final(rival, figure)) for figure in data.figures}
    where = {figure: PLACES.get(figure, f"in {figure}") for figure in both}
    excess = log_ratio(*both[larger]) - log_ratio(*both[smaller])
    numbers = {f"{policy}/{rival} in {figure}": float(a.mean() / b.mean()) for figure, (a, b) in both.items()}
    (first, one), (second, other) = zip(where.values(), numbers.values(), strict=True)
    facts = f"{policy} has {one:.{digits}f} times the regret of {rival} {first} and {other:.{digits}f} times {second}"
    check = Check(f"{policy} over {rival} is larger {where[larger]} than {where[smaller]}", excess)
    return Finding((check,), facts, numbers, excess.seeds)


CONTEXTUAL = (
    Claim(
        "contexts-clear",
        "With contexts, clusters clearly help",
        "We see a clear improvement between not using the clustering (TS) and using the clustering (TSC).",
        ("2d", "2e", "2f"),
        clear_improvement,
    ),
    Claim(
        "lintsc-slightly-better",
        "LinTSC is slightly better than LinUCBC on larger problems",
        LARGER,
        ("2e", "2f"),
        slightly_better,
    ),
    Claim(
        "lintsc-gains-with-size",
        "The lead of LinTSC over LinUCBC grows with the problem",
        LARGER,
        ("2d", "2e"),
        partial(ratio_is_larger, policy="LinUCBC", rival="LinTSC", larger="2e", smaller="2d", digits=3),
    ),
)


# ---------------------------------------------------------------- the appendix


SURFACE = (
    "both UCT and HTS exhibits linear cumulative regret curve while TSC is still sub-linear since arms clustered "
    "together tends to have similar reward."
)
BUMPS = "for this instance HTS exhibits sub-linear regret and performs better than TSC, for this clustering."


def growth(data: Data, *, policy: str, shape: str, limit: float = 0.9) -> Finding:
    """Regret gained from T/2 to T minus 2^{limit:g} times that gained from T/4 to T/2, one number per seed, decides.

    It is above 0 if regret is linear and below 0 if it is sub-linear; that of {policy} should be {shape}. Growth like
    a + b t^p has p on the same side of {limit:g}, whatever was lost at the start.
    """
    runs = data.single()
    times, regret = runs.times, data.regret(runs, policy)
    power, final = exponent(times, regret), float(regret[:, -1].mean())
    check = Check(f"the regret of {policy} is {shape}", bending(times, regret, limit), above=shape == "linear")
    facts = (
        f"The regret of {policy} is {final:.0f} at the end, and grows like t^{power:.2f} over the last three quarters "
        "of the run"
    )
    return Finding((check,), facts, {"exponent": power, policy: final}, len(regret))


def is_better(data: Data, *, policy: str, than: str) -> Finding:
    """Regret of {than} at T minus that of {policy}, paired by seed, is above 0."""
    a, b = data.final(policy), data.final(than)
    facts = f"{policy} has a regret of {a.mean():.0f}, {than} of {b.mean():.0f}"
    return Finding((less(policy, than, a, b),), facts, means({policy: a, than: b}), len(a))


APPENDIX = (
    *(
        Claim(
            f"surface-{name.lower()}-linear",
            f"On the surface, the regret of {name} keeps growing at the same rate",
            SURFACE,
            ("surface-regret",),
            partial(growth, policy=name, shape="linear"),
        )
        for name in ("HTS", "UCT")
    ),
    Claim(
        "surface-tsc-sublinear",
        "On the surface, the regret of TSC flattens",
        SURFACE,
        ("surface-regret",),
        partial(growth, policy="TSC", shape="sub-linear"),
    ),
    Claim(
        "surface-full-tree-too-deep",
        "On the surface, the full tree is too deep",
        "using the full tree in this case is a too aggressive exploration scheme and we see that care has to be taken "
        "in HTS when deciding how deep the hierarchical clustering should be.",
        ("surface-regret",),
        partial(is_better, policy="TSC", than="HTS"),
    ),
    Claim(
        "bumps-hts-sublinear",
        "On the bumps, the regret of HTS flattens",
        BUMPS,
        ("bumps-regret",),
        partial(growth, policy="HTS", shape="sub-linear"),
    ),
    Claim(
        "bumps-hts-better",
        "On the bumps, HTS is better than TSC",
        BUMPS,
        ("bumps-regret",),
        partial(is_better, policy="HTS", than="TSC"),
    ),
    Claim(
        "quality-matters-for-hts",
        "A bad tree hurts HTS more than TSC",
        "This illustrate that the quality of the clustering is very important for the regret, especially for HTS.",
        ("surface-regret", "bumps-regret"),
        partial(ratio_is_larger, policy="HTS", rival="TSC", larger="surface-regret", smaller="bumps-regret"),
    ),
    Claim(
        "unstructured-tsc-worse",
        "Where clusters say nothing, TSC is worse than TS",
        "as expected we see that TSC has a cumulative regret which is worse then TS, since the quality of the "
        "clustering is bad.",
        ("unstructured-regret",),
        partial(is_better, policy="TS", than="TSC"),
    ),
)


# ---------------------------------------------------------------- the cost of a step, in belief draws


PAIRS = {"TSC": "TS", "LinTSC": "LinTS"}  # {on clusters: flat}


def cheaper(data: Data) -> Finding:
    """In each figure with both, TS draws more beliefs per step than TSC, and LinTS than LinTSC.

    The difference, averaged over settings and paired by seed, is above 0. It is a count of the algorithm's work, which
    does not depend on the machine.
    """
    checks, ratios = [], {}
    for figure in data.figures:
        try:
            settings = data.settings(figure)
        except Missing:
            continue
        for clustered, flat in PAIRS.items():
            both = [runs for runs in settings.values() if {clustered, flat} <= set(runs.policies)]
            if both:
                few, many = (np.mean([runs.evaluations[name] for runs in both], axis=0) for name in (clustered, flat))
                ratios[f"{flat}/{clustered} in {figure}"] = float(many.mean() / few.mean())
                checks.append(
                    Check(f"{clustered} draws fewer beliefs per step than {flat} in {figure}", mean(many - few))
                )
    if not checks:
        raise Missing(", ".join(data.figures))
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    times = f"between {ratios[least]:.1f} ({least}) and {ratios[most]:.1f} ({most})"
    times = f"{ratios[least]:.1f}" if least == most else times
    facts = f"The flat policy draws {times} times as many beliefs per step as the clustered one"
    return Finding(tuple(checks), facts, ratios, min(check.estimate.seeds for check in checks))


COST = (
    Claim(
        "cheaper-steps",
        "Clusters make a step cheaper",
        "exploiting a given cluster structure can significantly improve the regret and computational cost compared to "
        "using standard Thompson sampling.",
        ("1a", "1b", "1c", "1d", "1e", "2a", "2b", "2d", "2e", "2f", "unstructured-regret"),
        cheaper,
        over_time=False,
    ),
)
