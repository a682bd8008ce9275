"""Claims on figures 2a to 2c: clusters by k-means, where strong dominance fails."""

from __future__ import annotations

from collections.abc import Sequence

from banditree.paper.claims.checks import Check, Finding, Floats, mean
from banditree.paper.claims.claim import Claim, Evaluate
from banditree.paper.claims.data import Data
from banditree.paper.claims.dominance import BIG, less_or_more
from banditree.paper.claims.shapes import log_ratio

SLIGHTLY = 0.15  # "slightly better": better, but not by more than this share

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
    what = f"{better} has no more than {SLIGHTLY:.0%} less regret than {than}{where}"
    return less(better, than, a, b, where), Check(what, mean(a - (1 - SLIGHTLY) * b), proof=False)


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
    before = min((name for name in small if name != "TSC"), key=lambda name: float(small[name].mean()))
    wide, narrow = log_ratio(others[second], tsc), log_ratio(small[before], small["TSC"])
    checks = (
        *(
            Check(f"{name} has {BIG:g} times the regret of TSC", mean(each - BIG * tsc))
            for name, each in others.items()
        ),
        Check("the gap to the second is wider in 2b than in 2a", wide - narrow),
    )
    ratios = {f"{name}/TSC in 2b": float(each.mean() / tsc.mean()) for name, each in others.items()}
    ratios |= {f"{before}/TSC in 2a": float(small[before].mean() / small["TSC"].mean())}
    facts = (
        f"In 2b the second, {second}, has {others[second].mean() / tsc.mean():.2f} times the regret of TSC; in 2a the "
        f"second, {before}, has {small[before].mean() / small['TSC'].mean():.2f} times"
    )
    return Finding(checks, facts, ratios, len(tsc), data.horizon("2b"))


def _of_2c(data: Data) -> dict[str, Floats]:
    return {name: data.final("2c", name) for name in ("TSC", "HTS L=2", "HTS L=3", "UCT L=2", "UCT L=3")}


def hts_slightly_better(data: Data) -> Finding:
    """Judge whether HTS is slightly better than TSC, at both depths."""
    regret = _of_2c(data)
    deep = ("HTS L=2", "HTS L=3")
    checks = [check for name in deep for check in slightly(name, "TSC", regret[name], regret["TSC"])]
    shares = {name: float(1 - regret[name].mean() / regret["TSC"].mean()) for name in deep}
    facts = f"TSC has a regret of {regret['TSC'].mean():.0f}, " + " and ".join(
        f"{name} {regret[name].mean():.0f} ({less_or_more(shares[name], digits=1)})" for name in deep
    )
    return Finding(tuple(checks), facts, means(regret), len(regret["TSC"]), data.horizon("2c"))


def both_beat_uct(data: Data) -> Finding:
    """Judge whether HTS at each depth and TSC have less regret than UCT at each depth."""
    regret = _of_2c(data)
    ours, theirs = ("TSC", "HTS L=2", "HTS L=3"), ("UCT L=2", "UCT L=3")
    checks = tuple(less(name, rival, regret[name], regret[rival]) for name in ours for rival in theirs)
    facts = f"Regret is {_said(ours, regret)}, against {_said(theirs, regret)}"
    return Finding(checks, facts, means(regret), len(regret["TSC"]), data.horizon("2c"))


def _said(names: Sequence[str], regret: dict[str, Floats]) -> str:
    return ", ".join(f"{name} {regret[name].mean():.0f}" for name in names)


def means(regret: dict[str, Floats]) -> dict[str, float]:
    """Return the mean regret of each policy."""
    return {name: float(each.mean()) for name, each in regret.items()}


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
        f"(1) For every other policy in 2b, its regret at T minus {BIG:g} times that of TSC, paired by seed, is above "
        "0; (2) log(second / TSC) of mean regrets is larger in 2b than in 2a (jackknife over seeds in each).",
        big_gap,
    ),
    Claim(
        "hts-slightly-better",
        "HTS is slightly better than TSC",
        SLIGHT,
        ("2c",),
        "For L = 2 and for L = 3: (1) regret of TSC at T minus that of HTS, paired by seed, is above 0; (2) unless "
        f"refuted, HTS has at most {SLIGHTLY:.0%} less regret.",
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
