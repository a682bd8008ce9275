"""Claims on figures 1a to 1e: TS and TSC under strong dominance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from banditree.paper.claims.checks import Check, Finding, Floats, jackknife, mean
from banditree.paper.claims.claim import Claim, Evaluate
from banditree.paper.claims.data import Data
from banditree.paper.claims.shapes import explained, ratio_slope, slope, slope_weights, steps, straighter

BIG = 1.5  # "greatly", "a big gap": the other has at least one and a half times the regret
GONE = 0.1  # "vanishes": at most a tenth less regret

QUALITY = (
    "the cumulative regret scales depending on the clustering quality parameters d and w* as suggested by our bounds "
    "... that is, the cumulative regret of TSC decreases as d increases and increases as w* increases."
)
LINEAR = "the linear dependence in N for TS is changed to a linear dependence in K and A*"


def trend(figure: str, key: str, symbol: str, *, rising: bool) -> Evaluate:
    """Judge whether the regret of TSC rises, or falls, with a parameter."""
    goes, turns = ("rises", "falls") if rising else ("falls", "rises")

    def evaluate(data: Data) -> Finding:
        x, regret = data.sweep(figure, "TSC", key)
        found, against = slope(x, regret), steps(regret, rising=rising)
        means = regret.mean(axis=0)
        checks = (
            Check(f"the regret of TSC {goes} with {symbol} by its slope", found, above=rising),
            Check(f"it {goes} from the first {symbol} to the last", mean(regret[:, -1] - regret[:, 0]), above=rising),
            Check(f"it never {turns} from one {symbol} to a larger one", against, above=False, proof=False),
        )
        top = int(means.argmax())
        facts = (
            f"The regret of TSC goes from {means[0]:.0f} at {symbol} = {x[0]:g} to {means[-1]:.0f} at {symbol} = "
            f"{x[-1]:g}, is highest at {symbol} = {x[top]:g} with {means[top]:.0f}, and has a slope of "
            f"{found.value:.0f} ± {found.se:.0f}"
        )
        numbers = {"slope": found.value, "slope_se": found.se} | by_setting("TSC", key, x, means)
        return Finding(checks, facts, numbers, len(regret), data.horizon(figure))

    return evaluate


def straight(figure: str, policy: str, key: str, symbol: str) -> Evaluate:
    """Judge whether regret is a straight line in a parameter."""

    def evaluate(data: Data) -> Finding:
        x, regret = data.sweep(figure, policy, key)
        means = regret.mean(axis=0)
        from_log, from_square = straighter(x, np.log(x), regret), straighter(x, x**2, regret)
        share = explained(x, regret)
        checks = (
            Check(f"the regret of {policy} rises with {symbol}", slope(x, regret), core=False),
            Check(f"it is nearer to a line in {symbol} than to a line in log {symbol}", from_log, core=False),
            Check(f"it is nearer to a line in {symbol} than to a line in {symbol} squared", from_square, core=False),
            Check(f"a line in {symbol} explains nine tenths of it", share, 0.9, proof=False),
        )
        half = len(x) // 2
        low, high = (means[half] - means[0]) / (x[half] - x[0]), (means[-1] - means[half]) / (x[-1] - x[half])
        facts = (
            f"The regret of {policy} grows by {low:.2g} per unit of {symbol} up to {x[half]:g} and by {high:.2g} "
            f"from there to {x[-1]:g}; a line explains {share.value:.0%} of it"
        )
        if key == "n_arms":
            facts += f" (at N = {x[-1]:g}, T is {data.horizon(figure) / x[-1]:.2g} plays per arm)"
        numbers = {"line or log": from_log.value, "line or square": from_square.value, "r_squared": share.value}
        numbers |= {"slope_low": low, "slope_high": high}
        return Finding(checks, facts, numbers | by_setting(policy, key, x, means), len(regret), data.horizon(figure))

    return evaluate


def great_reduction(data: Data) -> Finding:
    """Judge whether TSC beats TS by more and more as N grows."""
    x, ts = data.sweep("1c", "TS", "n_arms")
    _, tsc = data.sweep("1c", "TSC", "n_arms")
    ratios = ts.mean(axis=0) / tsc.mean(axis=0)
    gaps = (ts - tsc).mean(axis=0)
    growth = ratio_slope(np.log(x), ts, tsc)
    checks = (
        Check("TS minus TSC rises with N", slope(np.log(x), ts - tsc)),
        Check("TS over TSC rises with N", growth),
        Check(f"TS has {BIG:g} times the regret of TSC at N = {x[-1]:g}", mean(ts[:, -1] - BIG * tsc[:, -1])),
    )
    facts = (
        f"TS has {ratios[0]:.2f} times the regret of TSC at N = {x[0]:g} and {ratios[-1]:.2f} times at N = {x[-1]:g}, "
        f"or {gaps[0]:.0f} and {gaps[-1]:.0f} more"
    )
    numbers = by_setting("TS/TSC", "n_arms", x, ratios)
    return Finding(checks, facts, numbers, len(ts), data.horizon("1c"))


def gain_vanishes(data: Data) -> Finding:
    """Judge whether the share of regret that TSC saves vanishes as the best cluster grows to all arms."""
    x, ts = data.sweep("1e", "TS", "n_best")
    _, tsc = data.sweep("1e", "TSC", "n_best")
    n = len(x)
    gains = 1 - tsc.mean(axis=0) / ts.mean(axis=0)
    both = np.concatenate([ts, tsc], axis=1)  # (seeds, 2 settings)
    trend = jackknife(lambda means: float(slope_weights(x) @ (1 - means[n:] / means[:n])), both)
    at_end = mean(tsc[:, -1] - (1 - GONE) * ts[:, -1])
    checks = (
        Check(f"TSC has less regret than TS at A* = {x[0]:g}", mean(ts[:, 0] - tsc[:, 0])),
        Check("the share that TSC saves falls with A*", trend, above=False),
        Check(f"at A* = {x[-1]:g} TSC saves no more than {GONE:.0%}", at_end, proof=False),
    )
    facts = (
        f"TSC has {less_or_more(gains[0])} regret than TS at A* = {x[0]:g}, {less_or_more(gains[n // 2])} at A* = "
        f"{x[n // 2]:g} and {less_or_more(gains[-1])} at A* = {x[-1]:g}"
    )
    return Finding(checks, facts, by_setting("gain", "n_best", x, gains), len(ts), data.horizon("1e"))


def less_or_more(saved: float, digits: int = 0) -> str:
    """Put the share of regret that is saved into words.

    >>> less_or_more(0.25), less_or_more(-0.125, digits=1)
    ('25% less', '12.5% more')
    """
    return f"{abs(saved):.{digits}%} {'less' if saved >= 0 else 'more'}"


def by_setting(name: str, key: str, x: Floats, values: Sequence[float] | Floats) -> dict[str, float]:
    """Name the values of a sweep by the parameter."""
    return {f"{name} at {key}={at:g}": float(value) for at, value in zip(x, values, strict=True)}


def _shape_words(policy: str, symbol: str) -> str:
    return (
        f"Mean regret of {policy} at T over the grid of {symbol}: (1) its least-squares slope on {symbol} is above 0; "
        f"(2) a straight line in {symbol} leaves a smaller residual sum of squares than one in log {symbol}, and (3) "
        f"than one in the square of {symbol}, each as (r_other - r_line) / (r_other + r_line) > 0 with the standard "
        "error by the jackknife over seeds; (4) unless refuted, the line has R² >= 0.9. None of them is a part of "
        "the claim by itself."
    )


DOMINANCE = (
    Claim(
        "d-falls",
        "Regret falls as clusters move apart",
        QUALITY,
        ("1a",),
        "(1) The least-squares slope of the regret of TSC at T on d, one slope per seed, is below 0; (2) regret is "
        "lower at the last d than at the first; (3) unless refuted, it does not rise from any d to a larger one.",
        trend("1a", "distance", "d", rising=False),
    ),
    Claim(
        "w-rises",
        "Regret rises with the width of the best cluster",
        QUALITY,
        ("1b",),
        "(1) The least-squares slope of the regret of TSC at T on w*, one slope per seed, is above 0; (2) regret is "
        "higher at the last w* than at the first; (3) unless refuted, it does not fall from any w* to a larger one.",
        trend("1b", "width", "w*", rising=True),
    ),
    Claim(
        "ts-linear-in-n",
        "TS: regret grows in proportion to the number of arms",
        LINEAR,
        ("1c",),
        _shape_words("TS", "N"),
        straight("1c", "TS", "n_arms", "N"),
    ),
    Claim(
        "tsc-linear-in-k",
        "TSC: regret grows in proportion to the number of clusters",
        LINEAR,
        ("1d",),
        _shape_words("TSC", "K"),
        straight("1d", "TSC", "n_clusters", "K"),
    ),
    Claim(
        "tsc-linear-in-a",
        "TSC: regret grows in proportion to the size of the best cluster",
        LINEAR,
        ("1e",),
        _shape_words("TSC", "A*"),
        straight("1e", "TSC", "n_best", "A*"),
    ),
    Claim(
        "great-reduction",
        "TSC saves more as problems grow",
        "which greatly reduces the regret of TSC compared to TS as the size of the problem instance increases.",
        ("1c",),
        "(1) The slope on log N of the regret of TS minus that of TSC is above 0; (2) so is that of log(mean regret "
        f"of TS / mean regret of TSC) (jackknife over seeds); (3) at the largest N, regret of TS minus {BIG:g} times "
        "that of TSC, paired by seed, is above 0.",
        great_reduction,
    ),
    Claim(
        "gain-vanishes",
        "The gain from clusters vanishes when most arms are in the best one",
        "as the number of arms in the optimal cluster, A*, increases to be a substantial amount of the total number "
        "of arms, the gain from using TSC compared to TS vanishes.",
        ("1e",),
        "(1) At the smallest A* the regret of TS minus that of TSC, paired by seed, is above 0; (2) the slope on A* "
        "of the share saved, 1 - TSC / TS, is below 0 (jackknife over seeds); (3) unless refuted, at the largest A* "
        f"TSC saves at most {GONE:.0%}.",
        gain_vanishes,
    ),
)
