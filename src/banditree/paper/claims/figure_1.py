"""Claims on figure 1: TS and TSC under strong dominance, the lemma's bound on plays, and how deep HTS should go.

The docstrings of the functions are shown in the report as what decides a claim, with their parameters filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import log

import numpy as np

from banditree import TSC, problems, theory
from banditree.base.arrays import Floats
from banditree.paper.claims import checks as measure
from banditree.paper.claims.checks import Check, Finding, Measured, Missing, mean, slope, straighter
from banditree.paper.claims.claim import Claim, Data
from banditree.paper.figures import FIGURES
from banditree.simulation.simulator import simulate

# ---------------------------------------------------------------- 1a to 1e


BIG_RATIO = 1.5  # "greatly", "a big gap": the other has at least one and a half times the regret

QUALITY = (
    "the cumulative regret scales depending on the clustering quality parameters d and w* as suggested by our bounds "
    "... that is, the cumulative regret of TSC decreases as d increases and increases as w* increases."
)
LINEAR = "the linear dependence in N for TS is changed to a linear dependence in K and A*"


def trend(data: Data, *, key: str, symbol: str, goes: str) -> Finding:
    """The regret of TSC at T {goes} with {symbol}.

    (1) It does so by its least-squares slope on {symbol}, one slope per seed; (2) from the first {symbol} to the last;
    (3) unless refuted, it does not go the other way from any {symbol} to a larger one.
    """
    x, regret = data.sweep("TSC", key)
    rising, turns = (True, "falls") if goes == "rises" else (False, "rises")
    rise, against = slope(x, regret), measure.steps(regret, rising=rising)
    means = regret.mean(axis=0)
    checks = (
        Check(f"the regret of TSC {goes} with {symbol} by its slope", rise, above=rising),
        Check(f"it {goes} from the first {symbol} to the last", mean(regret[:, -1] - regret[:, 0]), above=rising),
        Check(f"it never {turns} from one {symbol} to a larger one", against, above=False, proof=False),
    )
    top = int(means.argmax())
    facts = (
        f"The regret of TSC goes from {means[0]:.0f} at {symbol} = {x[0]:g} to {means[-1]:.0f} at {symbol} = "
        f"{x[-1]:g}, is highest at {symbol} = {x[top]:g} with {means[top]:.0f}, and has a slope of "
        f"{rise.value:.0f} ± {rise.se:.0f}"
    )
    numbers = {"slope": rise.value, "slope_se": rise.se} | by_setting("TSC", key, x, means)
    return Finding(checks, facts, numbers, len(regret))


def straight(data: Data, *, policy: str, key: str, symbol: str, explained: float = 0.9) -> Finding:
    """Mean regret of {policy} at T over the grid of {symbol} is a straight line.

    (1) Its least-squares slope on {symbol} is above 0; (2) a straight line in {symbol} leaves a smaller residual sum of
    squares than one in log {symbol}, and (3) than one in the square of {symbol}, each as
    (r_other - r_line) / (r_other + r_line) > 0 with the standard error by the jackknife over seeds; (4) unless refuted,
    the line has R² >= {explained:g}. None of them is a part of the claim by itself.
    """
    x, regret = data.sweep(policy, key)
    means = regret.mean(axis=0)
    from_log, from_square = straighter(x, np.log(x), regret), straighter(x, x**2, regret)
    share = measure.r_squared(x, regret)
    checks = (
        Check(f"the regret of {policy} rises with {symbol}", slope(x, regret), core=False),
        Check(f"it is nearer to a line in {symbol} than to a line in log {symbol}", from_log, core=False),
        Check(f"it is nearer to a line in {symbol} than to a line in {symbol} squared", from_square, core=False),
        Check(f"a line in {symbol} explains nine tenths of it", share, explained, proof=False),
    )
    half = len(x) // 2
    low, high = (means[half] - means[0]) / (x[half] - x[0]), (means[-1] - means[half]) / (x[-1] - x[half])
    facts = (
        f"The regret of {policy} grows by {low:.2g} per unit of {symbol} up to {x[half]:g} and by {high:.2g} "
        f"from there to {x[-1]:g}; a line explains {share.value:.0%} of it"
    )
    if key == "n_arms":
        facts += f" (at N = {x[-1]:g}, T is {data.horizon / x[-1]:.2g} plays per arm)"
    numbers = {"line or log": from_log.value, "line or square": from_square.value, "r_squared": share.value}
    numbers |= {"slope_low": low, "slope_high": high}
    return Finding(checks, facts, numbers | by_setting(policy, key, x, means), len(regret))


def great_reduction(data: Data, *, ratio: float = BIG_RATIO) -> Finding:
    """TS has more and more regret than TSC as N grows.

    (1) The slope on log N of the regret of TS minus that of TSC is above 0; (2) so is that of log(mean regret of TS /
    mean regret of TSC) (jackknife over seeds); (3) at the largest N, regret of TS minus {ratio:g} times that of TSC,
    paired by seed, is above 0.
    """
    (x, ts), (_, tsc) = data.sweep("TS", "n_arms"), data.sweep("TSC", "n_arms")
    ratios, gaps = ts.mean(axis=0) / tsc.mean(axis=0), (ts - tsc).mean(axis=0)
    checks = (
        Check("TS minus TSC rises with N", slope(np.log(x), ts - tsc)),
        Check("TS over TSC rises with N", measure.ratio_slope(np.log(x), ts, tsc)),
        Check(f"TS has {ratio:g} times the regret of TSC at N = {x[-1]:g}", mean(ts[:, -1] - ratio * tsc[:, -1])),
    )
    facts = (
        f"TS has {ratios[0]:.2f} times the regret of TSC at N = {x[0]:g} and {ratios[-1]:.2f} times at N = {x[-1]:g}, "
        f"or {gaps[0]:.0f} and {gaps[-1]:.0f} more"
    )
    return Finding(checks, facts, by_setting("TS/TSC", "n_arms", x, ratios), len(ts))


def gain_vanishes(data: Data, *, most: float = 0.1) -> Finding:
    """TSC saves less and less of the regret of TS as A* grows.

    (1) At the smallest A* the regret of TS minus that of TSC, paired by seed, is above 0; (2) the slope on A* of the
    share saved, 1 - TSC / TS, is below 0 (jackknife over seeds); (3) unless refuted, at the largest A* TSC saves at
    most {most:.0%}.
    """
    (x, ts), (_, tsc) = data.sweep("TS", "n_best"), data.sweep("TSC", "n_best")
    n = len(x)
    gains = 1 - tsc.mean(axis=0) / ts.mean(axis=0)
    both = np.concatenate([ts, tsc], axis=1)  # (seeds, 2 settings)
    falling = measure.jackknife(lambda means: float(measure.slope_weights(x) @ (1 - means[n:] / means[:n])), both)
    at_end = mean(tsc[:, -1] - (1 - most) * ts[:, -1])
    checks = (
        Check(f"TSC has less regret than TS at A* = {x[0]:g}", mean(ts[:, 0] - tsc[:, 0])),
        Check("the share that TSC saves falls with A*", falling, above=False),
        Check(f"at A* = {x[-1]:g} TSC saves no more than {most:.0%}", at_end, proof=False),
    )
    facts = (
        f"TSC has {less_or_more(gains[0])} regret than TS at A* = {x[0]:g}, {less_or_more(gains[n // 2])} at A* = "
        f"{x[n // 2]:g} and {less_or_more(gains[-1])} at A* = {x[-1]:g}"
    )
    return Finding(checks, facts, by_setting("gain", "n_best", x, gains), len(ts))


def less_or_more(saved: float, digits: int = 0) -> str:
    """Put the share of regret that is saved into words.

    >>> less_or_more(0.25), less_or_more(-0.125, digits=1)
    ('25% less', '12.5% more')
    """
    return f"{abs(saved):.{digits}%} {'less' if saved >= 0 else 'more'}"


def by_setting(name: str, key: str, x: Floats, values: Sequence[float] | Floats) -> dict[str, float]:
    """Name the values of a sweep by the parameter."""
    return {f"{name} at {key}={at:g}": float(value) for at, value in zip(x, values, strict=True)}


DOMINANCE = (
    Claim(
        "d-falls",
        "Regret falls as clusters move apart",
        QUALITY,
        ("1a",),
        partial(trend, key="distance", symbol="d", goes="falls"),
    ),
    Claim(
        "w-rises",
        "Regret rises with the width of the best cluster",
        QUALITY,
        ("1b",),
        partial(trend, key="width", symbol="w*", goes="rises"),
    ),
    Claim(
        "ts-linear-in-n",
        "TS: regret grows in proportion to the number of arms",
        LINEAR,
        ("1c",),
        partial(straight, policy="TS", key="n_arms", symbol="N"),
    ),
    Claim(
        "tsc-linear-in-k",
        "TSC: regret grows in proportion to the number of clusters",
        LINEAR,
        ("1d",),
        partial(straight, policy="TSC", key="n_clusters", symbol="K"),
    ),
    Claim(
        "tsc-linear-in-a",
        "TSC: regret grows in proportion to the size of the best cluster",
        LINEAR,
        ("1e",),
        partial(straight, policy="TSC", key="n_best", symbol="A*"),
    ),
    Claim(
        "great-reduction",
        "TSC saves more as problems grow",
        "which greatly reduces the regret of TSC compared to TS as the size of the problem instance increases.",
        ("1c",),
        great_reduction,
    ),
    Claim(
        "gain-vanishes",
        "The gain from clusters vanishes when most arms are in the best one",
        "as the number of arms in the optimal cluster, A*, increases to be a substantial amount of the total number "
        "of arms, the gain from using TSC compared to TS vanishes.",
        ("1e",),
        gain_vanishes,
    ),
)


# ---------------------------------------------------------------- the lemma (Theorem 2)


SWEEPS = ("1a", "1b", "1c", "1d", "1e")
DISTANCES = (0.1, 0.4)  # of the fixed instances on which growth is measured: the default, and the tightest of 1a
BEST_CLUSTER = 0  # the name of the best cluster in strong_dominance


def log_terms(horizon: float) -> float:
    """Return log T + log log T."""
    return log(horizon) + log(log(horizon))


def bound_coefficient(problem: problems.Problem) -> float:
    """Return 1 / D(best of C, worst of C*), the same for all sub-optimal clusters and instances of strong_dominance."""
    instance = problem.instance(0)
    assert instance.means is not None
    return max(theory.cluster_plays(instance.tree, instance.means).values())


def _worst_level(data: Data, figure: str) -> tuple[Measured, str]:
    """Measure plays over the bound, minus 1, averaged over a seed's sub-optimal clusters, in the worst setting."""
    problem_of = {setting.label: setting.problem for setting in FIGURES[figure].settings(data.variant)}
    levels = []
    for label, runs in data.settings(figure).items():
        bound = bound_coefficient(problem_of[label]) * log_terms(float(runs.times[-1]))
        shares = [
            np.mean([n for name, n in plays.items() if name != BEST_CLUSTER]) / bound for plays in runs.clusters["TSC"]
        ]
        levels.append((mean(np.array(shares) - 1), label))
    return max(levels, key=lambda pair: pair[0].value)


def _fixed_problem(distance: float) -> problems.Problem:
    drawn = problems.strong_dominance(distance=distance).instance(0)
    return problems.bernoulli(drawn.tree, drawn.means)


@lru_cache(maxsize=8)  # the variants of a claim ask for the same
def _gained_plays(distance: float, horizon: int, factor: int, seeds: int, jobs: int | None) -> list[Floats]:
    """Return the plays that each sub-optimal cluster gains from ``horizon`` to ``factor`` times that: (seeds,) each."""
    # Runs depend only on rng and names, so the short run is the beginning of the long one.
    short, long = (
        simulate([TSC], _fixed_problem(distance), horizon=steps, seeds=seeds, rng=0, jobs=jobs, progress=False)
        for steps in (horizon, factor * horizon)
    )
    both = list(zip(long.clusters["TSC"], short.clusters["TSC"], strict=True))  # plays by cluster, for each seed
    names = [name for name in both[0][0] if name != BEST_CLUSTER]
    return [np.array([after[name] - before[name] for after, before in both], np.float64) for name in names]


def under_bound(data: Data, *, distances: tuple[float, ...] = DISTANCES, factor: int = 10) -> Finding:
    """The statement is asymptotic, so level and growth are both looked at, with ε = 0 and without the O(1).

    (1) In each figure, in the setting with the most plays for its bound, plays at T averaged over a seed's sub-optimal
    clusters are below the bound; (2) on the fixed instances with d = {distances[0]:g} and d = {distances[1]:g}, the
    plays gained from T to {factor} T by the cluster that gains most are below what the bound gains.
    """
    checks, shares, growths = [], {}, {}
    for figure in SWEEPS:
        try:
            level, label = _worst_level(data, figure)
        except Missing:
            continue
        what = f"clusters are played less than the bound in {figure} (tightest at {label})"
        checks.append(Check(what, level, above=False))
        shares[f"in {figure} at {label}"] = level.value + 1
    if not checks:
        raise Missing(", ".join(SWEEPS))
    seeds, horizon = checks[0].estimate.seeds, data.horizon
    for distance in distances:
        log_growth = log_terms(factor * horizon) - log_terms(horizon)
        allowed = bound_coefficient(_fixed_problem(distance)) * log_growth
        gained = _gained_plays(distance, horizon, factor, seeds, data.jobs)
        worst = max((mean(plays - allowed) for plays in gained), key=lambda gain: gain.value)
        what = f"plays grow more slowly than the bound from T to {factor} T at d = {distance:g}"
        checks.append(Check(what, worst, above=False))
        growths[distance] = worst.value / allowed + 1
    most = max(shares, key=lambda where: shares[where])
    facts = (
        f"Over (log T + log log T) / D, the plays of a sub-optimal cluster come to {shares[most]:.2f} at most "
        f"({most}), and their growth from T to {factor} T in the worst cluster to "
        f"{', '.join(f'{growth:.2f} at d = {distance:g}' for distance, growth in growths.items())}"
    )
    numbers = {f"plays/bound {where}": share for where, share in shares.items()}
    numbers |= {f"growth/bound at distance={distance:g}": growth for distance, growth in growths.items()}
    return Finding(tuple(checks), facts, numbers, seeds)


LEMMA = (
    Claim(
        "lemma-cluster-plays",
        "Poor clusters are played no more often than the theory allows",
        "the expected number of plays of a sub-optimal cluster C at time T using TSC is bounded from above by (1 + ε) "
        "/ D(max of C, min of C*) (log T + log log T) + O(1).",
        SWEEPS,
        under_bound,
        over_time=False,
    ),
)


# ---------------------------------------------------------------- 1f


def full_and_flat(data: Data) -> tuple[Floats, Floats, Floats, list[int]]:
    """Return N, (sizes,), regret at T without and with the full tree, (seeds, sizes), and the best depth of each N."""
    depths = data.depths()
    flat, full = (np.stack([regret[place] for regret in depths.values()], axis=1) for place in (0, -1))
    return np.array(list(depths)), flat, full, [int(np.mean(regret, axis=1).argmin()) for regret in depths.values()]


def depth_helps_more(data: Data) -> Finding:
    """The full tree saves more the more arms there are.

    (1) The slope on log2 N of log(mean regret at L = 0 / mean regret at the greatest L) is above 0 (jackknife over
    seeds); (2) at the largest N the regret at L = 0 minus that at the greatest L, paired by seed, is above 0.
    """
    sizes, flat, full, best = full_and_flat(data)
    saved = flat.mean(axis=0) / full.mean(axis=0)
    checks = (
        Check("no tree over the full tree rises with N", measure.ratio_slope(np.log2(sizes), flat, full)),
        Check(f"the full tree has less regret than none at N = {sizes[-1]:g}", mean(flat[:, -1] - full[:, -1])),
    )
    facts = (
        f"Without a tree HTS has {saved[0]:.2f} times the regret of the full tree at N = {sizes[0]:g} and "
        f"{saved[-1]:.2f} times at N = {sizes[-1]:g}; the depth with the least regret goes from {best[0]} to "
        f"{best[-1]}"
    )
    numbers = by_setting("flat/full", "n_arms", sizes, saved) | by_setting("best depth", "n_arms", sizes, best)
    return Finding(checks, facts, numbers, len(full))


def log_n(data: Data, *, most: float = 1.5) -> Finding:
    """Regret at T with the greatest L over the grid of N grows no faster than log N.

    (1) A straight line in log N leaves a smaller residual sum of squares than one in N,
    (r_lin - r_log) / (r_lin + r_log) > 0 with the standard error by the jackknife over seeds; (2) unless refuted, a
    doubling costs in the upper half of the grid at most {most:g} times what it costs in the lower half.
    """
    sizes, flat, full, _ = full_and_flat(data)
    means, x = full.mean(axis=0), np.log2(sizes)
    half = len(x) // 2
    early = (full[:, half] - full[:, 0]) / (x[half] - x[0])  # (seeds,) the cost of a doubling
    late = (full[:, -1] - full[:, half]) / (x[-1] - x[half])
    curve = straighter(np.log(sizes), sizes, full)
    costs = f"a doubling of N costs the larger half of the trees no more than {most:g} times what it costs the smaller"
    checks = (
        Check("the regret of the full tree is nearer to a line in log N than to a line in N", curve),
        Check(costs, mean(late - most * early), above=False, proof=False),
    )
    facts = (
        f"With the full tree, regret goes from {means[0]:.0f} at N = {sizes[0]:g} to {means[-1]:.0f} at N = "
        f"{sizes[-1]:g} (without a tree {flat[:, 0].mean():.0f} to {flat[:, -1].mean():.0f}): {early.mean():.1f} per "
        f"doubling up to N = {sizes[half]:g}, {late.mean():.1f} from there on"
    )
    numbers = by_setting("full", "n_arms", sizes, means)
    numbers |= {"early_doubling": early.mean(), "late_doubling": late.mean(), "log or line": curve.value}
    return Finding(checks, facts, numbers, len(full))


HIERARCHY = (
    Claim(
        "depth-helps-more",
        "More levels help more as the number of arms grows",
        "as the size of the problem instance grows, i.e increasing N, using more levels in the tree becomes more "
        "beneficial due to aggressive exploration scheme of HTS.",
        ("1f",),
        depth_helps_more,
    ),
    Claim(
        "log-n",
        "HTS on the full tree: regret grows with the logarithm of the number of arms",
        "HTS gets only a dependence O(log_2 N) in the number of arms when using the full hierarchical tree",
        ("1f",),
        log_n,
    ),
)
