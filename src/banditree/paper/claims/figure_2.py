"""Claims on figure 2: clusters by k-means, where strong dominance fails, and policies with contexts."""

from __future__ import annotations

from collections.abc import Sequence

from banditree.paper.claims.checks import Check, Finding, Floats, log_ratio, mean
from banditree.paper.claims.claim import Claim, Data, Evaluate
from banditree.paper.claims.figure_1 import BIG_RATIO, less_or_more

# ---------------------------------------------------------------- 2a to 2c


SLIGHT_SHARE = 0.15  # "slightly better": better, but not by more than this share

OUTPERFORMS = (
    "TSC outperforms the other algorithms on both instances and especially on the larger instance where there is a "
    "big gap between the regret of TSC and the regret of the other algorithms."
)
SLIGHT = "The HTS performs well on this problem and is slightly better than TSC while both HTS and TSC outperforms UCT."


def less(better: str, than: str, a: Floats, b: Floats, where: str = "") -> Check:
    """Check that one policy has less regret than another, paired by seed: (seeds,) both."""
    return Check(f"{better} has less regret than {than}{where}", mean(b - a))


def slightly(better: str, than: str, a: Floats, b: Floats, where: str = "") -> tuple[Check, Check]:
    """Check that it has less, but not much less."""
    what = f"{better} has no more than {SLIGHT_SHARE:.0%} less regret than {than}{where}"
    return less(better, than, a, b, where), Check(what, mean(a - (1 - SLIGHT_SHARE) * b), proof=False)


def best(figure: str) -> Evaluate:
    """Judge whether TSC has less regret than every other policy of the figure."""

    def evaluate(data: Data) -> Finding:
        tsc = data.final(figure, "TSC")
        others = {name: data.final(figure, name) for name in data.policies(figure) if name != "TSC"}
        checks = tuple(less("TSC", name, tsc, regret) for name, regret in others.items())
        ranked = sorted(others, key=lambda name: float(others[name].mean()))
        listed = ", ".join(f"{name} {others[name].mean():.0f}" for name in ranked)
        facts = f"TSC has a regret of {tsc.mean():.0f}; {listed}"
        return Finding(checks, facts, means({"TSC": tsc, **others}), len(tsc), data.horizon(figure))

    return evaluate


def big_gap(data: Data) -> Finding:
    """Judge whether every other policy has far more regret than TSC in 2b, with a wider gap than in 2a."""
    tsc = data.final("2b", "TSC")
    others = {name: data.final("2b", name) for name in data.policies("2b") if name != "TSC"}
    second = min(others, key=lambda name: float(others[name].mean()))
    small = {name: data.final("2a", name) for name in data.policies("2a")}
    second_in_2a = min((name for name in small if name != "TSC"), key=lambda name: float(small[name].mean()))
    wide, narrow = log_ratio(others[second], tsc), log_ratio(small[second_in_2a], small["TSC"])
    checks = (
        *(
            Check(f"{name} has {BIG_RATIO:g} times the regret of TSC", mean(regret - BIG_RATIO * tsc))
            for name, regret in others.items()
        ),
        Check("the gap to the second is wider in 2b than in 2a", wide - narrow),
    )
    ratios = {f"{name}/TSC in 2b": float(regret.mean() / tsc.mean()) for name, regret in others.items()}
    ratios |= {f"{second_in_2a}/TSC in 2a": float(small[second_in_2a].mean() / small["TSC"].mean())}
    facts = (
        f"In 2b the second, {second}, has {others[second].mean() / tsc.mean():.2f} times the regret of TSC; in 2a the "
        f"second, {second_in_2a}, has {small[second_in_2a].mean() / small['TSC'].mean():.2f} times"
    )
    return Finding(checks, facts, ratios, len(tsc), data.horizon("2b"))


def _read_2c(data: Data) -> dict[str, Floats]:
    return {name: data.final("2c", name) for name in ("TSC", "HTS L=2", "HTS L=3", "UCT L=2", "UCT L=3")}


def hts_slightly_better(data: Data) -> Finding:
    """Judge whether HTS is slightly better than TSC, at both depths."""
    regret = _read_2c(data)
    deep = ("HTS L=2", "HTS L=3")
    checks = [check for name in deep for check in slightly(name, "TSC", regret[name], regret["TSC"])]
    shares = {name: float(1 - regret[name].mean() / regret["TSC"].mean()) for name in deep}
    facts = f"TSC has a regret of {regret['TSC'].mean():.0f}, " + " and ".join(
        f"{name} {regret[name].mean():.0f} ({less_or_more(shares[name], digits=1)})" for name in deep
    )
    return Finding(tuple(checks), facts, means(regret), len(regret["TSC"]), data.horizon("2c"))


def both_beat_uct(data: Data) -> Finding:
    """Judge whether HTS at each depth and TSC have less regret than UCT at each depth."""
    regret = _read_2c(data)
    ours, theirs = ("TSC", "HTS L=2", "HTS L=3"), ("UCT L=2", "UCT L=3")
    checks = tuple(less(name, rival, regret[name], regret[rival]) for name in ours for rival in theirs)
    facts = f"Regret is {_list_regret(ours, regret)}, against {_list_regret(theirs, regret)}"
    return Finding(checks, facts, means(regret), len(regret["TSC"]), data.horizon("2c"))


def _list_regret(names: Sequence[str], regret: dict[str, Floats]) -> str:
    return ", ".join(f"{name} {regret[name].mean():.0f}" for name in names)


def means(regret: dict[str, Floats]) -> dict[str, float]:
    """Return the mean regret of each policy."""
    return {name: float(values.mean()) for name, values in regret.items()}


VIOLATION = (
    *(
        Claim(
            f"tsc-best-{figure}",
            f"TSC has the least regret in figure {figure}",
            OUTPERFORMS,
            (figure,),
            "For every other policy, its regret at T minus that of TSC, paired by seed, is above 0.",
            best(figure),
        )
        for figure in ("2a", "2b")
    ),
    Claim(
        "big-gap-2b",
        "The lead of TSC is largest on the larger instance",
        OUTPERFORMS,
        ("2b", "2a"),
        f"(1) For every other policy in 2b, its regret at T minus {BIG_RATIO:g} times that of TSC, paired by seed, "
        "is above "
        "0; (2) log(second / TSC) of mean regrets is larger in 2b than in 2a (jackknife over seeds in each).",
        big_gap,
    ),
    Claim(
        "hts-slightly-better",
        "HTS is slightly better than TSC",
        SLIGHT,
        ("2c",),
        "For L = 2 and for L = 3: (1) regret of TSC at T minus that of HTS, paired by seed, is above 0; (2) unless "
        f"refuted, HTS has at most {SLIGHT_SHARE:.0%} less regret.",
        hts_slightly_better,
    ),
    Claim(
        "hts-tsc-beat-uct",
        "HTS and TSC both beat UCT",
        SLIGHT,
        ("2c",),
        "For UCT with L = 2 and L = 3: its regret at T minus that of TSC, of HTS L = 2 and of HTS L = 3, paired by "
        "seed, is above 0.",
        both_beat_uct,
    ),
)


# ---------------------------------------------------------------- 2d to 2f


CLEAR_RATIO = 1.1  # "a clear improvement": the other has at least a tenth more regret
CONTEXT_FIGURES = ("2d", "2e", "2f")
LARGER = (
    "LinTSC performs slightly better than LinUCBC as the problem becomes larger w.r.t number of arms and clusters, "
    "Figures 2e and 2f."
)


def clear_improvement(data: Data) -> Finding:
    """Judge whether LinTSC has clearly less regret than LinTS in all three figures."""
    checks, numbers = [], {}
    for figure in CONTEXT_FIGURES:
        flat, clustered = data.final(figure, "LinTS"), data.final(figure, "LinTSC")
        checks.append(
            Check(
                f"LinTS has {CLEAR_RATIO:g} times the regret of LinTSC in {figure}",
                mean(flat - CLEAR_RATIO * clustered),
            )
        )
        numbers[f"LinTS/LinTSC in {figure}"] = float(flat.mean() / clustered.mean())
    listed = ", ".join(f"{numbers[f'LinTS/LinTSC in {figure}']:.2f} in {figure}" for figure in CONTEXT_FIGURES)
    facts = f"The regret of LinTS over that of LinTSC is {listed}"
    return Finding(tuple(checks), facts, numbers, len(data.final("2d", "LinTS")), data.horizon("2d"))


def slightly_better(data: Data) -> Finding:
    """Judge whether LinTSC is slightly better than LinUCBC in the two large figures."""
    checks: list[Check] = []
    numbers: dict[str, float] = {}
    for figure in ("2e", "2f"):
        ours, theirs = data.final(figure, "LinTSC"), data.final(figure, "LinUCBC")
        checks += slightly("LinTSC", "LinUCBC", ours, theirs, f" in {figure}")
        numbers |= {f"LinTSC in {figure}": float(ours.mean()), f"LinUCBC in {figure}": float(theirs.mean())}
    listed = " and ".join(
        f"{numbers[f'LinTSC in {figure}']:.0f} against {numbers[f'LinUCBC in {figure}']:.0f} in {figure}"
        for figure in ("2e", "2f")
    )
    facts = f"LinTSC has a regret of {listed} for LinUCBC"
    return Finding(tuple(checks), facts, numbers, len(data.final("2e", "LinTSC")), data.horizon("2e"))


def advantage_grows(data: Data) -> Finding:
    """Judge whether LinUCBC over LinTSC is larger with N = 900 than with N = 400, at the same spread."""
    both = {figure: (data.final(figure, "LinUCBC"), data.final(figure, "LinTSC")) for figure in ("2d", "2e")}
    numbers = {f"LinUCBC/LinTSC in {figure}": float(ucb.mean() / ts.mean()) for figure, (ucb, ts) in both.items()}
    small, large = (log_ratio(ucb, ts) for ucb, ts in both.values())
    check = Check("LinUCBC over LinTSC is larger in 2e than in 2d", large - small)
    in_2d, in_2e = numbers.values()
    facts = f"LinUCBC has {in_2d:.3f} times the regret of LinTSC in 2d and {in_2e:.3f} times in 2e"
    return Finding((check,), facts, numbers, large.seeds, data.horizon("2e"))


CONTEXTUAL = (
    Claim(
        "contexts-clear",
        "With contexts, clusters clearly help",
        "We see a clear improvement between not using the clustering (TS) and using the clustering (TSC).",
        CONTEXT_FIGURES,
        f"In each of 2d, 2e and 2f: regret of LinTS at T minus {CLEAR_RATIO:g} times that of LinTSC, paired by seed, "
        "is "
        "above 0.",
        clear_improvement,
    ),
    Claim(
        "lintsc-slightly-better",
        "LinTSC is slightly better than LinUCBC on larger problems",
        LARGER,
        ("2e", "2f"),
        "In 2e and in 2f: (1) regret of LinUCBC at T minus that of LinTSC, paired by seed, is above 0; (2) unless "
        f"refuted, LinTSC has at most {SLIGHT_SHARE:.0%} less regret.",
        slightly_better,
    ),
    Claim(
        "lintsc-gains-with-size",
        "The lead of LinTSC over LinUCBC grows with the problem",
        LARGER,
        ("2d", "2e"),
        "log(LinUCBC / LinTSC) of mean regrets at T is larger in 2e (N = 900, K = 30) than in 2d (N = 400, K = 20), "
        "at the same ε (jackknife over seeds in each).",
        advantage_grows,
    ),
)
