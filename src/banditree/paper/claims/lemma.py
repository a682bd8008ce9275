"""The claim of the lemma (Theorem 2): plays of a sub-optimal cluster stay below a multiple of log T + log log T."""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Any

import numpy as np

from banditree import TSC, problems, theory
from banditree.paper.claims.checks import Check, Finding, Floats, Measured, mean
from banditree.paper.claims.claim import Claim
from banditree.paper.claims.data import Data, Missing
from banditree.paper.figures import FIGURES
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate

SWEEPS = ("1a", "1b", "1c", "1d", "1e")
DISTANCES = (0.1, 0.4)  # of the fixed instances on which growth is measured: the default, and the tightest of 1a
LONGER = 10  # growth is measured from T to this times T
BEST = 0  # the name of the best cluster in strong_dominance


def logs(horizon: float) -> float:
    """Return log T + log log T."""
    return log(horizon) + log(log(horizon))


def coefficient(problem: Any) -> float:
    """Return 1 / D(best of C, worst of C*), the same for all sub-optimal clusters and instances of strong_dominance."""
    instance = problem.instance(0)
    return max(theory.cluster_plays(instance.tree, instance.means).values())


def level(data: Data, figure: str) -> tuple[Measured, str]:
    """Measure plays over the bound, minus 1, averaged over a seed's sub-optimal clusters, in the worst setting."""
    problem_of = {setting.label: setting.problem for setting in FIGURES[figure].settings(data.variant)}
    found = []
    for label, runs in data.settings(figure).items():
        bound = coefficient(problem_of[label]) * logs(float(runs.times[-1]))
        shares = [np.mean([n for name, n in plays.items() if name != BEST]) / bound for plays in runs.clusters["TSC"]]
        found.append((mean(np.array(shares) - 1), label))
    return max(found, key=lambda each: each[0].value)


def growth(distance: float, *, horizon: int, seeds: int, jobs: int | None) -> tuple[Measured, float]:
    """Measure plays gained from ``horizon`` to ten times that, minus what the bound allows; also return their ratio.

    Both are for the worst cluster.
    """
    allowed = coefficient(_fixed(distance)) * (logs(LONGER * horizon) - logs(horizon))
    gains = [mean(plays - allowed) for plays in _gained(distance, horizon, seeds, jobs)]
    worst = max(gains, key=lambda each: each.value)
    return worst, worst.value / allowed + 1


def _fixed(distance: float) -> problems.Problem:
    drawn = problems.strong_dominance(distance=distance).instance(0)
    return problems.bernoulli(drawn.tree, drawn.means)


@lru_cache(maxsize=8)  # the variants of a claim ask for the same
def _gained(distance: float, horizon: int, seeds: int, jobs: int | None) -> list[Floats]:
    """Return the plays that each sub-optimal cluster gains from ``horizon`` to ten times that: (seeds,) each."""
    problem = _fixed(distance)
    # Runs depend only on rng and names, so the short run is the beginning of the long one.
    short, long = (
        simulate([TSC], problem, horizon=steps, seeds=seeds, rng=0, jobs=jobs, progress=False)
        for steps in (horizon, LONGER * horizon)
    )
    names = [name for name in problem.instance(0).tree.clusters if name != BEST]
    return [_plays(long, name) - _plays(short, name) for name in names]


def _plays(runs: Runs, cluster: Any) -> Floats:
    """Return the plays of a cluster: (seeds,)."""
    return np.array([plays[cluster] for plays in runs.clusters["TSC"]], np.float64)


def under_bound(data: Data) -> Finding:
    """Judge the level at T in the figures, and the growth after T on fixed instances."""
    checks, numbers, horizon = [], {}, 0  # the horizon of the first figure
    for figure in SWEEPS:
        try:
            found, label = level(data, figure)
        except Missing:
            continue
        what = f"clusters are played less than the bound in {figure} (tightest at {label})"
        checks.append(Check(what, found, above=False))
        numbers[f"plays/bound in {figure} at {label}"] = found.value + 1
        horizon = horizon or data.horizon(figure)
    if not checks:
        raise Missing(", ".join(SWEEPS))
    shares = dict(numbers)
    seeds = checks[0].estimate.seeds
    for distance in DISTANCES:
        found, share = growth(distance, horizon=horizon, seeds=seeds, jobs=data.jobs)
        what = f"plays grow more slowly than the bound from T to {LONGER} T at d = {distance:g}"
        checks.append(Check(what, found, above=False))
        numbers[f"growth/bound at distance={distance:g}"] = share
    worst = max(shares, key=lambda name: shares[name])
    grown = ", ".join(f"{numbers[f'growth/bound at distance={d:g}']:.2f} at d = {d:g}" for d in DISTANCES)
    facts = (
        f"Over (log T + log log T) / D, the plays of a sub-optimal cluster come to {shares[worst]:.2f} at most "
        f"({worst.removeprefix('plays/bound ')}), and their growth from T to {LONGER} T in the worst cluster to "
        f"{grown}"
    )
    return Finding(tuple(checks), facts, numbers, seeds, horizon)


LEMMA = (
    Claim(
        "lemma-cluster-plays",
        "Poor clusters are played no more often than the theory allows",
        "the expected number of plays of a sub-optimal cluster C at time T using TSC is bounded from above by (1 + ε) "
        "/ D(max of C, min of C*) (log T + log log T) + O(1).",
        SWEEPS,
        "The statement is asymptotic, so level and growth are both looked at, with ε = 0 and without the O(1): (1) in "
        "each figure, in the setting with the most plays for its bound, plays at T averaged over a seed's sub-optimal "
        f"clusters are below the bound; (2) on the fixed instances with d = {DISTANCES[0]:g} and d = "
        f"{DISTANCES[1]:g}, the plays gained from T to {LONGER} T by the cluster that gains most are below what the "
        "bound gains.",
        under_bound,
        over_time=False,
    ),
)
