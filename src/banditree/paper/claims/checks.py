"""Decide a claim: compare numbers, with standard errors over seeds, with thresholds that were set beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from banditree.report.intervals import student
from banditree.simulation.statistics import over_seeds

Floats = NDArray[np.float64]

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be decided with these seeds"
NOT_JUDGED = "not judged"
VERDICTS = (HOLDS, PART, FAILS, OPEN)

MANY = 10_000  # more seeds than anybody will run
SURE = 0.9973  # two-sided confidence that decides: three standard errors of a normal distribution


def needed(seeds: int, among: int = 1) -> float:
    """Return how many standard errors decide with this many seeds: by Student's t, three as their number grows.

    A number that is the most extreme ``among`` several needs more (Bonferroni).

    >>> [round(needed(seeds), 2) for seeds in (5, 25, 50, 100, 10_000)]
    [6.62, 3.34, 3.16, 3.08, 3.0]
    """
    return student(seeds, 1 - (1 - SURE) / among) if seeds > 1 else inf


@dataclass(frozen=True)
class Measured:
    """A number, its standard error over seeds, and the number of seeds."""

    value: float
    se: float
    seeds: int
    among: int = 1  # how many numbers it is the most extreme of

    def __sub__(self, other: Measured) -> Measured:
        """Subtract a number that comes from independent runs."""
        return Measured(self.value - other.value, sqrt(self.se**2 + other.se**2), min(self.seeds, other.seeds))


def mean(sample: Floats) -> Measured:
    """Return the mean over seeds: (seeds,)."""
    found = over_seeds(sample)
    return Measured(found.mean, found.se, found.seeds)


def jackknife(function: Callable[[Floats], float], samples: Floats) -> Measured:
    """Measure a smooth function of means over seeds by the jackknife; ``samples`` is (seeds, numbers).

    For a linear function this gives the mean and its usual standard error.

    >>> samples = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 5.0]])
    >>> found, usual = jackknife(lambda means: float(means[0] - means[1]), samples), mean(samples[:, 0] - samples[:, 1])
    >>> bool(np.isclose(found.se, usual.se)), round(found.value, 6) == round(usual.value, 6)
    (True, True)
    """
    n = len(samples)
    value = function(samples.mean(axis=0))
    if n < 2:
        return Measured(value, nan, n)
    without = (samples.sum(axis=0) - samples) / (n - 1)  # (seeds, numbers)
    found = np.array([function(means) for means in without])
    return Measured(value, float(np.sqrt((n - 1) * found.var())), n)


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
        return max(self.estimate.seeds + 1.0, self.estimate.seeds * (needed(MANY) / self.margin) ** 2)

    @property
    def result(self) -> str:
        """ "yes", "no" or "open"."""
        need = needed(self.estimate.seeds, self.estimate.among)
        if self.margin <= -need:
            return "no"
        if not self.proof and self.estimate.seeds > 1:
            return "yes"
        return "yes" if self.margin >= need else "open"


def conclude(checks: Iterable[Check]) -> str:
    """Return the verdict that these checks give, by the rules in the docstring of this package."""
    checks = list(checks)
    results = {check.result for check in checks}
    if results == {"yes"}:
        return HOLDS
    if "no" in results:
        return PART if any(check.core and check.proof and check.result == "yes" for check in checks) else FAILS
    return OPEN


def weakest(checks: Iterable[Check]) -> Check:
    """Return the check that decides: of those that need proof or failed, the one farthest on the wrong side."""
    decisive = [check for check in checks if check.proof or check.result == "no"]
    return min(decisive, key=lambda check: -inf if np.isnan(check.margin) else check.margin)


@dataclass(frozen=True)
class Finding:
    """The outcome for a claim: the checks, the facts in a sentence, and the numbers behind it."""

    checks: tuple[Check, ...]
    facts: str
    numbers: Mapping[str, float]
    seeds: int
    horizon: int

    @property
    def verdict(self) -> str:
        return conclude(self.checks)

    @property
    def margin(self) -> float:
        return weakest(self.checks).margin

    @property
    def sentence(self) -> str:
        """The facts, and what contradicts the claim or is left open."""
        failed = [check.what for check in self.checks if check.result == "no"]
        unclear = [check for check in self.checks if check.result == "open"]
        said = self.facts
        if failed:
            said += f"; it is not true that {', nor that '.join(failed)}"
        if unclear:
            what = ", and whether ".join(check.what for check in unclear)
            said += f"; these seeds do not decide whether {what} ({_would_decide(unclear)})"
        return said + "."


def _would_decide(unclear: list[Check]) -> str:
    """Say how many seeds would decide these checks, if the numbers stayed as they are."""
    if any(check.estimate.seeds == 1 for check in unclear):
        return "one seed cannot"
    seeds = max(check.seeds_to_decide for check in unclear)
    return f"about {seeds:,.0f} would" if seeds <= MANY else "no feasible number of seeds would"
