"""The claims of the paper's experiments and appendix as one table; verdicts are computed, never written by hand.

A claim is a row: in a figure, a statistic of ``a`` is below (or above) ``margin`` times that of ``b``. To add one, add
a row to ``CLAIMS``; a new statistic is a function of one side and a line in ``STATISTICS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, log, nan
from pathlib import Path
from typing import Protocol

import numpy as np

from banditree import theory
from banditree.base.arrays import Floats
from banditree.base.files import write_whole
from banditree.base.intervals import student
from banditree.base.result import jsonable
from banditree.base.words import number
from banditree.paper.figures import FIGURES
from banditree.paper.results import instance
from banditree.problems import Instance
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"
VERDICTS = (HOLDS, FAILS, OPEN)
CONFIDENCE = 0.9973  # two-sided confidence that decides: three standard errors of a normal distribution
ROUNDING = 1e-12  # of a number that is the same for all seeds
SWEEP_INSTANCES, SINGLE_INSTANCES = 5, 25  # examined of each setting of a sweep, and of a figure with one setting
BEST_CLUSTER = 0  # the name of the best cluster in strong_dominance


class Figures(Protocol):
    """The runs of figures by setting, such as `Results`."""

    def __contains__(self, figure: object, /) -> bool: ...

    def runs(self, figure: str) -> dict[str, Runs]: ...


@dataclass(frozen=True)
class Claim:
    """A row of the table. A side says a policy, and a setting if there are several: "TSC at distance=0.4"."""

    figure: str
    a: str
    relation: str  # "<" or ">"
    b: str  # in the same figure, unless it ends in " in FIGURE"
    quote: str  # the paper's sentence
    statistic: str = "regret at T"
    margin: float = 1.0

    def __str__(self) -> str:
        """Return the row in words.

        >>> print(next(claim for claim in CLAIMS if claim.figure == "2d"))
        LinTS > 1.1 × LinTSC
        """
        times = "" if self.margin == 1 else f"{self.margin:.3g} × "
        return f"{self.a} {self.relation} {times}{self.b}"

    @property
    def sides(self) -> list[tuple[str, str]]:
        """Return (figure, side) of a and of b."""
        parts = [side.partition(" in ") for side in (self.a, self.b)]
        return [(figure or self.figure, side) for side, _, figure in parts]

    @property
    def figures(self) -> tuple[str, ...]:
        """Return the figures whose runs it needs."""
        return tuple(dict.fromkeys(figure for figure, _ in self.sides))

    def judge(self, results: Figures) -> Verdict:
        """Measure both sides, seed by seed, and return the verdict."""
        measure = STATISTICS[self.statistic]
        a, b = (measure(results.runs(figure), figure, side) for figure, side in self.sides)  # (seeds,) each
        seeds = min(len(a), len(b))  # differ where figures were run with different seeds
        excess = over_seeds((a[:seeds] - self.margin * b[:seeds]) * (1 if self.relation == ">" else -1))
        is_exact = excess.se <= ROUNDING * abs(excess.mean)
        errors = inf * excess.mean if is_exact and excess.mean else excess.mean / excess.se if excess.se else nan
        return Verdict(self, float(a.mean()), float(b.mean()), errors, seeds)


@dataclass(frozen=True)
class Verdict:
    """The verdict of the runs on a claim."""

    claim: Claim
    a: float
    b: float
    errors: float  # distance of a from margin times b, in standard errors over seeds; plus is the paper's side
    seeds: int  # or instances

    @property
    def verdict(self) -> str:
        needed = needed_errors(self.seeds)
        return HOLDS if self.errors >= needed else FAILS if self.errors <= -needed else OPEN

    def to_dict(self) -> dict[str, object]:
        """Return its object in claims.json."""
        claim = self.claim
        content: dict[str, object] = jsonable(
            {
                "figure": claim.figure,
                "statistic": claim.statistic,
                "a": claim.a,
                "relation": claim.relation,
                "margin": claim.margin,
                "b": claim.b,
                "number_a": self.a,
                "number_b": self.b,
                "standard_errors": self.errors,
                "seeds": self.seeds,
                "verdict": self.verdict,
                "quote": claim.quote,
            }
        )
        return content


def needed_errors(seeds: int) -> float:
    """Return how many standard errors decide with this many seeds, by Student's t: three as their number grows.

    >>> [round(needed_errors(seeds), 2) for seeds in (5, 25, 50, 100, 10_000)]
    [6.62, 3.34, 3.16, 3.08, 3.0]
    """
    return student(seeds, CONFIDENCE) if seeds > 1 else inf


def judge(results: Figures) -> list[Verdict]:
    """Judge every claim whose figures were run, in the paper's order."""
    return [claim.judge(results) for claim in CLAIMS if all(figure in results for figure in claim.figures)]


def write_claims(verdicts: Sequence[Verdict], out: Path) -> None:
    """Write ``claims.json``, a list with one object per claim, and ``claims.md``, a table with one row per claim."""
    described = [verdict.to_dict() for verdict in verdicts]
    text = json.dumps(described, indent=2, allow_nan=False, ensure_ascii=False)
    write_whole(out / "claims.json", [text.encode(), b"\n"])
    columns = ("the paper says", "figure", "statistic", "claim", "a", "b", "standard errors", "seeds", "verdict")
    lines = [f"| {' | '.join(columns)} |", "|---|---|---|---|---:|---:|---:|---:|---|"]
    quoted = ""
    for verdict in verdicts:
        claim = verdict.claim
        quote = "" if claim.quote == quoted else claim.quote
        quoted = claim.quote
        cells = (quote, claim.figure, claim.statistic, f"{claim}", *describe(verdict), f"**{verdict.verdict}**")
        lines.append(f"| {' | '.join(cells)} |")
    write_whole(out / "claims.md", ["\n".join([*lines, ""]).encode()])


def describe(verdict: Verdict) -> tuple[str, str, str, str]:
    """Return both numbers, the distance in standard errors and the number of seeds, as text."""
    errors = f"{verdict.errors:+.1f}" if isfinite(verdict.errors) else "all" if verdict.errors == inf else "–"
    return number(verdict.a, digits=3), number(verdict.b, digits=3), errors, str(verdict.seeds)


# ---------------------------------------------------------------- the statistics: of one side, (seeds,)


def regret(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return regret at the horizon of a policy, or the ratio of the mean regrets of two, "HTS / TSC"."""
    names = [part.partition(" at ") for part in side.split(" / ")]
    regrets = np.stack([runs[label].regret[name][:, -1] for name, _, label in names], axis=1)  # (seeds, 1 or 2)
    return regrets[:, 0] if len(names) == 1 else by_jackknife(lambda means: float(means[0] / means[1]), regrets)


def gained(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return the regret that a policy gains "from T/4 to T/2" or "from T/2 to T".

    Growth like a + b t^p gains 2^p times as much in the second span as in the first, whatever a and b are.
    """
    (of_figure,) = runs.values()
    name, _, span = side.partition(" from ")
    start, end = (int((of_figure.times * k <= of_figure.times[-1]).sum()) - 1 for k in SPANS[span])
    return of_figure.regret[name][:, end] - of_figure.regret[name][:, start]


SPANS = {"T/4 to T/2": (4, 2), "T/2 to T": (2, 1)}


def unexplained(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return the share of the variance between settings that a straight line leaves: "TS on N", "on log N", "on N²".

    Where settings differ in depth too, those with the greatest depth count.
    """
    name, _, scale = side.partition(" on ")
    regrets = {label.split()[0]: each.regret[name][:, -1] for label, each in runs.items() if name in each.regret}
    x = np.array([float(label.partition("=")[2]) for label in regrets])
    x = np.log(x) if scale.startswith("log ") else x**2 if scale.endswith("²") else x
    line = np.column_stack([np.ones_like(x), x])  # (settings, 2)

    def share(means: Floats) -> float:
        residual = means - line @ np.linalg.lstsq(line, means, rcond=None)[0]
        variance = float(means.var())
        return float((residual**2).mean()) / variance if variance else 0.0

    return by_jackknife(share, np.stack([*regrets.values()], axis=1))


def by_jackknife(function: Callable[[Floats], float], samples: Floats) -> Floats:
    """Return one number per seed whose mean is a function of means over seeds, and whose spread gives its error.

    >>> samples = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 5.0]])
    >>> by_jackknife(lambda means: float(means[0] - means[1]), samples).tolist()
    [-1.0, 1.0, -3.0]
    """
    n = len(samples)
    without = (samples.sum(axis=0) - samples) / max(n - 1, 1)  # (seeds, numbers)
    estimates = np.array([function(means) for means in without]) if n > 1 else np.zeros(1)
    return np.asarray(function(samples.mean(axis=0)) + (n - 1) * (estimates.mean() - estimates))


def draws(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return the beliefs that a policy draws per step, a count that does not depend on the machine."""
    name, _, label = side.partition(" at ")
    return runs[label].evaluations[name]


def plays(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return plays of a sub-optimal cluster, on average over them; of "the bound" those that Theorem 2 allows."""
    name, _, label = side.partition(" at ")
    if name != "the bound":
        by_seed = runs[label].clusters[name]
        return np.array([np.mean([n for each, n in counts.items() if each != BEST_CLUSTER]) for counts in by_seed])
    drawn = instance(figure, label, 0)
    horizon = float(runs[label].times[-1])
    allowed = max(theory.cluster_plays(drawn.tree, _means(drawn)).values()) * (log(horizon) + log(log(horizon)))
    return np.full(len(runs[label].seeds), allowed)


def dominance(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return 1 for instances with "strong" or "hierarchical" dominance and 0 for others; of "all" always 1."""
    drawn = examined_instances(figure, _seeds(runs))
    if side == "all":
        return np.ones(len(drawn))
    qualities = [theory.quality(each.tree, _means(each)) for each in drawn]
    return np.array([each.hierarchical if side == "hierarchical" else each.dominance for each in qualities], float)


def spread(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return the standard deviation of expected rewards around the mean of "a cluster", or of "all arms"."""
    return np.array([_spread(each, side) for each in examined_instances(figure, _seeds(runs))])


def _spread(drawn: Instance, side: str) -> float:
    means = _means(drawn)
    groups = _groups(drawn) if side == "a cluster" else [np.ones(len(means), bool)]
    return float(np.sqrt(sum(((means[arms] - means[arms].mean()) ** 2).sum() for arms in groups) / len(means)))


def diameter(runs: dict[str, Runs], figure: str, side: str) -> Floats:
    """Return the greatest distance between the coefficients of two arms of a cluster, on average over clusters."""
    coefficients = [(each.theta, _groups(each)) for each in examined_instances(figure, _seeds(runs))]
    return np.array([
        np.mean([np.linalg.norm(theta[arms][:, None] - theta[arms], axis=2).max() for arms in groups])
        for theta, groups in coefficients
        if theta is not None
    ])  # fmt: skip


@cache
def examined_instances(figure: str, seeds: int) -> list[Instance]:
    """Return the instances of the first seeds of every setting; those that settings share are drawn once."""
    settings = {setting.stream: setting for setting in FIGURES[figure].settings()}.values()
    n_seeds = min(seeds, SWEEP_INSTANCES if len(settings) > 1 else SINGLE_INSTANCES)
    return [instance(figure, setting.label, seed) for setting in settings for seed in range(n_seeds)]


def _seeds(runs: dict[str, Runs]) -> int:
    return len(next(iter(runs.values())).seeds)


def _means(drawn: Instance) -> Floats:
    assert drawn.means is not None
    return drawn.means


def _groups(drawn: Instance) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return a mask of the arms of each top cluster: (arms,) each."""
    top = np.asarray(drawn.tree.nodes.top_of_arms)
    return [top == cluster for cluster in np.unique(top)]


STATISTICS: dict[str, Callable[[dict[str, Runs], str, str], Floats]] = {
    "regret at T": regret,
    "regret gained": gained,
    "variance that a line leaves": unexplained,
    "belief draws per step": draws,
    "plays of a sub-optimal cluster": plays,
    "share of instances with dominance": dominance,
    "spread of expected rewards": spread,
    "diameter of a cluster": diameter,
}


# ---------------------------------------------------------------- the table


BIG = 1.5  # "greatly", "a big gap": the other has at least one and a half times the regret
CLEAR = 1.1  # "a clear improvement"
SLIGHT = 0.85  # "slightly better": by not more than 15%
SUBLINEAR = 2**0.9  # a second half of a run that gains less than this grows more slowly than t^0.9
MOST, FEW = 0.95, 0.05  # of instances
SWEEPS = ("1a", "1b", "1c", "1d", "1e")
LINE = "variance that a line leaves"

DOMINANCE = "We generate synthetic data, for which strong dominance holds"
HIERARCHICAL = (
    "recursively sorting and merging the arms into a balanced binary tree, which has the hierarchical strong dominance "
    "property."
)
QUALITY = (
    "the cumulative regret scales depending on the clustering quality parameters d and w* as suggested by our bounds "
    "... that is, the cumulative regret of TSC decreases as d increases and increases as w* increases."
)
LINEAR = "the linear dependence in N for TS is changed to a linear dependence in K and A*"
REDUCTION = "which greatly reduces the regret of TSC compared to TS as the size of the problem instance increases."
VANISHES = (
    "as the number of arms in the optimal cluster, A*, increases to be a substantial amount of the total number of "
    "arms, the gain from using TSC compared to TS vanishes."
)
LEMMA = (
    "the expected number of plays of a sub-optimal cluster C at time T using TSC is bounded from above by (1 + ε) / "
    "D(max of C, min of C*) (log T + log log T) + O(1)."
)
LEVELS = (
    "as the size of the problem instance grows, i.e increasing N, using more levels in the tree becomes more "
    "beneficial due to aggressive exploration scheme of HTS."
)
LOGARITHM = "HTS gets only a dependence O(log_2 N) in the number of arms when using the full hierarchical tree"
SIMILAR = "the smoothness of the function ensures arms within the same cluster to have similar expected rewards"
PERIODICITY = (
    "the periodicity of sin yields many local optima and the optimal cluster won't strongly dominate the other "
    "clusters."
)
OUTPERFORMS = (
    "TSC outperforms the other algorithms on both instances and especially on the larger instance where there is a big "
    "gap between the regret of TSC and the regret of the other algorithms."
)
THREE_LEVELS = (
    "The HTS performs well on this problem and is slightly better than TSC while both HTS and TSC outperforms UCT."
)
CONTEXTS = "We see a clear improvement between not using the clustering (TS) and using the clustering (TSC)."
LARGER = (
    "LinTSC performs slightly better than LinUCBC as the problem becomes larger w.r.t number of arms and clusters, "
    "Figures 2e and 2f."
)
DIAMETER = "we can control the expected diameter of a cluster by varying ε."
SURFACE = (
    "both UCT and HTS exhibits linear cumulative regret curve while TSC is still sub-linear since arms clustered "
    "together tends to have similar reward."
)
TOO_DEEP = (
    "using the full tree in this case is a too aggressive exploration scheme and we see that care has to be taken in "
    "HTS when deciding how deep the hierarchical clustering should be."
)
BUMPS = "for this instance HTS exhibits sub-linear regret and performs better than TSC, for this clustering."
ESPECIALLY = "This illustrate that the quality of the clustering is very important for the regret, especially for HTS."
UNSTRUCTURED = (
    "as expected we see that TSC has a cumulative regret which is worse then TS, since the quality of the clustering "
    "is bad."
)
COST = (
    "exploiting a given cluster structure can significantly improve the regret and computational cost compared to "
    "using standard Thompson sampling."
)


def _growth(figure: str, policy: str, relation: str, quote: str) -> Claim:
    late, early = f"{policy} from T/2 to T", f"{policy} from T/4 to T/2"
    return Claim(figure, late, relation, early, quote, "regret gained", SUBLINEAR)


CLAIMS: tuple[Claim, ...] = (
    *(Claim(name, "strong", ">", "all", DOMINANCE, "share of instances with dominance", MOST) for name in SWEEPS),
    Claim("1a", "TSC at distance=0.2", "<", "TSC at distance=0.05", QUALITY),
    Claim("1a", "TSC at distance=0.4", "<", "TSC at distance=0.2", QUALITY),
    Claim("1b", "TSC at width=0.2", ">", "TSC at width=0", QUALITY),
    Claim("1b", "TSC at width=0.4", ">", "TSC at width=0.2", QUALITY),
    Claim("1c", "TS on N", "<", "TS on log N", LINEAR, LINE),
    Claim("1d", "TSC on K", "<", "TSC on log K", LINEAR, LINE),
    Claim("1d", "TSC on K", "<", "TSC on K²", LINEAR, LINE),
    Claim("1e", "TSC on A*", "<", "TSC on log A*", LINEAR, LINE),
    Claim("1c", "TS at n_arms=1000", ">", "TSC at n_arms=1000", REDUCTION, margin=BIG),
    Claim("1c", "TS at n_arms=1000 / TSC at n_arms=1000", ">", "TS at n_arms=25 / TSC at n_arms=25", REDUCTION),
    Claim("1e", "TSC at n_best=2", "<", "TS at n_best=2", VANISHES),
    Claim("1e", "TSC at n_best=90", ">", "TS at n_best=90", VANISHES, margin=0.9),
    *(
        Claim("1a", f"TSC at {label}", "<", f"the bound at {label}", LEMMA, "plays of a sub-optimal cluster")
        for label in ("distance=0.1", "distance=0.4")
    ),
    Claim("1f", "hierarchical", ">", "all", HIERARCHICAL, "share of instances with dominance", MOST),
    Claim("1f", "HTS at n_arms=2048 depth=10", "<", "HTS at n_arms=2048 depth=0", LEVELS),
    Claim(
        "1f",
        "HTS at n_arms=2048 depth=0 / HTS at n_arms=2048 depth=10",
        ">",
        "HTS at n_arms=16 depth=0 / HTS at n_arms=16 depth=3",
        LEVELS,
    ),
    Claim("1f", "HTS on log N", "<", "HTS on N", LOGARITHM, LINE),
    *(Claim(name, "a cluster", "<", "all arms", SIMILAR, "spread of expected rewards", 0.5) for name in ("2a", "2b")),
    *(
        Claim(name, "strong", "<", "all", PERIODICITY, "share of instances with dominance", FEW)
        for name in ("2a", "2b")
    ),
    *(Claim("2a", rival, ">", "TSC", OUTPERFORMS) for rival in ("UCBC", "TSMax", "UCB1", "TS")),
    *(Claim("2b", rival, ">", "TSC", OUTPERFORMS, margin=BIG) for rival in ("UCBC", "TSMax", "UCB1", "TS")),
    Claim("2b", "TSMax / TSC", ">", "TSMax / TSC in 2a", OUTPERFORMS),
    *(
        Claim("2c", hts, relation, "TSC", THREE_LEVELS, margin=margin)
        for hts in ("HTS L=2", "HTS L=3")
        for relation, margin in (("<", 1.0), (">", SLIGHT))
    ),
    *(
        Claim("2c", uct, ">", better, THREE_LEVELS)
        for uct in ("UCT L=2", "UCT L=3")
        for better in ("TSC", "HTS L=2", "HTS L=3")
    ),
    *(Claim(name, "LinTS", ">", "LinTSC", CONTEXTS, margin=CLEAR) for name in ("2d", "2e", "2f")),
    *(
        Claim(name, "LinTSC", relation, "LinUCBC", LARGER, margin=margin)
        for name in ("2e", "2f")
        for relation, margin in (("<", 1.0), (">", SLIGHT))
    ),
    Claim("2e", "LinUCBC / LinTSC", ">", "LinUCBC / LinTSC in 2d", LARGER),
    Claim("2e", "ε = 0.5", ">", "ε = 0.1 in 2f", DIAMETER, "diameter of a cluster"),
    _growth("surface-regret", "HTS", ">", SURFACE),
    _growth("surface-regret", "UCT", ">", SURFACE),
    _growth("surface-regret", "TSC", "<", SURFACE),
    Claim("surface-regret", "HTS", ">", "TSC", TOO_DEEP),
    _growth("bumps-regret", "HTS", "<", BUMPS),
    Claim("bumps-regret", "HTS", "<", "TSC", BUMPS),
    Claim("surface-regret", "HTS / TSC", ">", "HTS / TSC in bumps-regret", ESPECIALLY),
    Claim("unstructured-regret", "TSC", ">", "TS", UNSTRUCTURED),
    *(
        Claim(name, flat, ">", clustered, COST, "belief draws per step")
        for names, flat, clustered in (
            (("2a", "2b", "unstructured-regret"), "TS", "TSC"),
            (("2d", "2e", "2f"), "LinTS", "LinTSC"),
        )
        for name in names
    ),
)
