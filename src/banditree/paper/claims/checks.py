"""Decide a claim: measure numbers, with standard errors over seeds, and compare them with thresholds set in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.base.intervals import student
from banditree.simulation.statistics import over_seeds

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be decided with these seeds"
NOT_JUDGED = "not judged"
VERDICTS = (HOLDS, PART, FAILS, OPEN)

MAX_SEEDS = 10_000  # more seeds than anybody will run
CONFIDENCE = 0.9973  # two-sided confidence that decides: three standard errors of a normal distribution


def needed_errors(seeds: int, n_compared: int = 1) -> float:
    """Return how many standard errors decide with this many seeds: by Student's t, three as their number grows.

    A number that is the most extreme of ``n_compared`` needs more (Bonferroni).

    >>> [round(needed_errors(seeds), 2) for seeds in (5, 25, 50, 100, 10_000)]
    [6.62, 3.34, 3.16, 3.08, 3.0]
    """
    return student(seeds, 1 - (1 - CONFIDENCE) / n_compared) if seeds > 1 else inf


class Missing(Exception):
    """Raised when data that a claim needs were not run."""


@dataclass(frozen=True)
class Measured:
    """A number, its standard error over seeds, and the number of seeds."""

    value: float
    se: float
    seeds: int
    n_compared: int = 1  # how many numbers it is the most extreme of

    def __sub__(self, other: Measured) -> Measured:
        """Subtract a number that comes from independent runs."""
        return Measured(self.value - other.value, sqrt(self.se**2 + other.se**2), min(self.seeds, other.seeds))


def mean(sample: Floats) -> Measured:
    """Return the mean over seeds: (seeds,)."""
    summary = over_seeds(sample)
    return Measured(summary.mean, summary.se, summary.seeds)


def jackknife(function: Callable[[Floats], float], samples: Floats) -> Measured:
    """Measure a smooth function of means over seeds by the jackknife; ``samples`` is (seeds, numbers).

    For a linear function this gives the mean and its usual standard error.

    >>> samples = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 5.0]])
    >>> measured = jackknife(lambda means: float(means[0] - means[1]), samples)
    >>> usual = mean(samples[:, 0] - samples[:, 1])
    >>> bool(np.isclose(measured.se, usual.se)), round(measured.value, 6) == round(usual.value, 6)
    (True, True)
    """
    n = len(samples)
    value = function(samples.mean(axis=0))
    if n < 2:
        return Measured(value, nan, n)
    without = (samples.sum(axis=0) - samples) / (n - 1)  # (seeds, numbers)
    estimates = np.array([function(means) for means in without])
    return Measured(value, float(np.sqrt((n - 1) * estimates.var())), n)


@dataclass(frozen=True)
class Check:
    """One thing that a claim says about one number: it is ``above`` (or below) the threshold.

    A check with ``proof=True`` passes if the seeds show it. One with ``proof=False`` passes unless they show the
    opposite: it guards the words of a claim ("slightly", "vanishes") without asking for proof that a number is
    negligible. A check with ``core=False`` is not a part of the claim by itself, so passing it does not make a claim
    hold in part: a line must rise, but regret that rises is not partly a line.
    """

    what: str  # completes "the seeds show that ..."
    estimate: Measured
    threshold: float = 0.0
    above: bool = True
    proof: bool = True
    core: bool = True

    @property
    def margin(self) -> float:
        """Distance from the threshold in standard errors; positive on the paper's side."""
        distance = self.estimate.value - self.threshold
        distance = distance if self.above else -distance
        if self.estimate.se == 0:
            return inf if distance > 0 else -inf
        return distance / self.estimate.se

    @property
    def seeds_to_decide(self) -> float:
        """Seeds needed if the number stays as it is; the margin grows with their square root."""
        if not np.isfinite(self.margin) or self.margin == 0:
            return inf
        return max(self.estimate.seeds + 1.0, self.estimate.seeds * (needed_errors(MAX_SEEDS) / self.margin) ** 2)

    @property
    def result(self) -> str:
        """ "yes", "no" or "open"."""
        threshold = needed_errors(self.estimate.seeds, self.estimate.n_compared)
        if self.margin <= -threshold:
            return "no"
        if not self.proof and self.estimate.seeds > 1:
            return "yes"
        return "yes" if self.margin >= threshold else "open"

    def to_dict(self) -> dict[str, object]:
        """Return its part of claims.json."""
        return {
            "what": self.what,
            "result": self.result,
            "estimate": self.estimate.value,
            "se": self.estimate.se,
            "seeds": self.estimate.seeds,
            "threshold": self.threshold,
            "side": "above" if self.above else "below",
            "passes": "when shown" if self.proof else "unless refuted",
            "core": self.core,
            "margin": self.margin,
            "count": self.estimate.se == 0,
        }


def conclude(checks: Iterable[Check]) -> str:
    """Return the verdict that these checks give, by the rules that `HOW_JUDGED` of the report explains."""
    checks = list(checks)
    results = {check.result for check in checks}
    if results == {"yes"}:
        return HOLDS
    if "no" in results:
        return PART if any(check.core and check.proof and check.result == "yes" for check in checks) else FAILS
    return OPEN


@dataclass(frozen=True)
class Finding:
    """The outcome for a claim: the checks, the facts in a sentence, and the numbers behind it."""

    checks: tuple[Check, ...]
    facts: str
    numbers: Mapping[str, float]
    seeds: int
    horizon: int = 0  # the time at which regret was read

    @property
    def verdict(self) -> str:
        return conclude(self.checks)

    @property
    def margin(self) -> float:
        """The margin of the weakest check: of those that need proof or failed, the one farthest on the wrong side."""
        margins = [check.margin for check in self.checks if check.proof or check.result == "no"]
        return nan if np.isnan(margins).any() else min(margins)

    @property
    def sentence(self) -> str:
        """The facts, and what contradicts the claim or is left open."""
        refuted = [check.what for check in self.checks if check.result == "no"]
        unclear = [check for check in self.checks if check.result == "open"]
        sentence = self.facts
        if refuted:
            sentence += f"; it is not true that {', nor that '.join(refuted)}"
        if unclear:
            what = ", and whether ".join(check.what for check in unclear)
            sentence += f"; these seeds do not decide whether {what} ({_would_decide(unclear)})"
        return sentence + "."

    def to_dict(self) -> dict[str, object]:
        """Return its part of claims.json."""
        return {
            "margin": self.margin,
            "needed": needed_errors(self.seeds),
            "seeds": self.seeds,
            "horizon": self.horizon,
            "numbers": self.numbers,
            "checks": [check.to_dict() for check in self.checks],
        }


def _would_decide(unclear: list[Check]) -> str:
    """Say how many seeds would decide these checks, if the numbers stayed as they are."""
    if any(check.estimate.seeds == 1 for check in unclear):
        return "one seed cannot"
    seeds = max(check.seeds_to_decide for check in unclear)
    return f"about {seeds:,.0f} would" if seeds <= MAX_SEEDS else "no feasible number of seeds would"


# ---------------------------------------------------------------- the shapes of regret


def slope_weights(x: Floats) -> Floats:
    """Return the weights whose weighted sum of numbers at x is their least-squares slope on x: (settings,) both."""
    centred = x - x.mean()
    weights: Floats = centred / (centred**2).sum()
    return weights


def slope(x: Floats, y: Floats) -> Measured:
    """Measure the least-squares slope of regret on a parameter, from x (settings,) and y (seeds, settings)."""
    return mean(y @ slope_weights(x))


def steps(y: Floats, *, rising: bool) -> Measured:
    """Measure the step from one setting to a later one that goes most clearly the wrong way: y is (seeds, settings).

    A step against the trend is positive.
    """
    pairs = list(combinations(range(y.shape[1]), 2))
    measured = [mean(y[:, i] - y[:, j] if rising else y[:, j] - y[:, i]) for i, j in pairs]
    worst = max(measured, key=lambda step: step.value / step.se if step.se > 0 else np.sign(step.value) * np.inf)
    return replace(worst, n_compared=len(pairs))


def residual(x: Floats, y: Floats) -> float:
    """Return the residual sum of squares of a straight line in x fitted to y: (settings,) both."""
    line = np.column_stack([np.ones_like(x), x])
    fitted = line @ np.linalg.lstsq(line, y, rcond=None)[0]
    return float(((y - fitted) ** 2).sum())


def straighter(x: Floats, than: Floats, y: Floats) -> Measured:
    """Measure whether regret is a line in x rather than in another scale, from -1 (exactly that) to 1 (exactly x).

    (r_than - r_x) / (r_than + r_x) of the residual sums of squares of the two fits, from x and ``than`` (settings,)
    and y (seeds, settings).
    """

    def score(means: Floats) -> float:
        ours, theirs = residual(x, means), residual(than, means)
        return (theirs - ours) / (ours + theirs) if ours + theirs > 0 else 0.0

    return jackknife(score, y)


def r_squared(x: Floats, y: Floats) -> Measured:
    """Measure R squared, the share of the variance between settings that a straight line in x explains."""

    def share(means: Floats) -> float:
        spread = float(((means - means.mean()) ** 2).sum())
        return 1.0 - residual(x, means) / spread if spread > 0 else 0.0

    return jackknife(share, y)


def log_ratio(a: Floats, b: Floats) -> Measured:
    """Measure the log of mean a over mean b, paired: (seeds,) both."""
    return jackknife(lambda means: float(np.log(means[0] / means[1])), np.stack([a, b], axis=1))


def ratio_slope(x: Floats, a: Floats, b: Floats) -> Measured:
    """Measure the slope on x of the log of mean a over mean b: x (settings,), a and b (seeds, settings), paired."""
    n = len(x)
    weights = slope_weights(x)
    both = np.concatenate([a, b], axis=1)  # (seeds, 2 settings)
    return jackknife(lambda means: float(weights @ np.log(means[:n] / means[n:])), both)


def quarters(times: NDArray[np.int64], regret: Floats) -> tuple[Floats, Floats]:
    """Return regret gained from T/4 to T/2 and from T/2 to T: (seeds,) each, from regret (seeds, times)."""
    end = times[-1]
    indices = []
    for part in (4, 2):
        before = np.flatnonzero(part * times <= end)
        if len(before) == 0 or part * times[before[-1]] < 0.95 * end:
            raise Missing(f"regret at T/{part}")
        indices.append(int(before[-1]))
    quarter, half = indices
    return regret[:, half] - regret[:, quarter], regret[:, -1] - regret[:, half]


def bending(times: NDArray[np.int64], regret: Floats, exponent: float) -> Measured:
    """Measure how much more regret the second half of a run adds than growth like t^exponent would.

    Regret that grows like a + b t^exponent gains 2^exponent times as much from T/2 to T as from T/4 to T/2, whatever a
    and b are, so that regret from the start of the run does not count.
    """
    before, after = quarters(times, regret)
    return mean(after - 2**exponent * before)


def exponent(times: NDArray[np.int64], regret: Floats) -> float:
    """Estimate that exponent: log2 of the ratio of the gains, minus infinity if either is not positive."""
    before, after = (float(gain.mean()) for gain in quarters(times, regret))
    return float(np.log2(after / before)) if before > 0 and after > 0 else -np.inf
