"""Claims on figures 2d to 2f: policies with contexts."""

from __future__ import annotations

from banditree.paper.claims.checks import Check, Finding, mean
from banditree.paper.claims.claim import Claim
from banditree.paper.claims.data import Data
from banditree.paper.claims.shapes import log_ratio
from banditree.paper.claims.violation import SLIGHTLY, slightly

CLEAR = 1.1  # "a clear improvement": the other has at least a tenth more regret
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
            Check(f"LinTS has {CLEAR:g} times the regret of LinTSC in {figure}", mean(flat - CLEAR * clustered))
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
        f"In each of 2d, 2e and 2f: regret of LinTS at T minus {CLEAR:g} times that of LinTSC, paired by seed, is "
        "above 0.",
        clear_improvement,
    ),
    Claim(
        "lintsc-slightly-better",
        "LinTSC is slightly better than LinUCBC on larger problems",
        LARGER,
        ("2e", "2f"),
        "In 2e and in 2f: (1) regret of LinUCBC at T minus that of LinTSC, paired by seed, is above 0; (2) unless "
        f"refuted, LinTSC has at most {SLIGHTLY:.0%} less regret.",
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
