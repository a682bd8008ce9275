"""The verdict in one sentence: better than the logging policy, worse, or what would tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from banditree.output.words import count

UNSUPPORTED = 0.05  # of the target's probability: more than this cannot be judged from the log
FEW = 30  # rows of equal weight: with fewer, an interval by the normal distribution is not to be trusted
CARRIERS = 10  # rows that carry the error: with fewer, as where few rewards are not 0, the error itself is not known
POWER = NormalDist().inv_cdf(0.8)  # rows are counted so that a difference as large as the estimate shows 4 times in 5
SMALL = 0.01  # a difference below this share of the logging policy's value is not worth more rows
NAMED = 5


@dataclass(frozen=True)
class Difference:
    """Target minus logging policy."""

    value: float
    se: float
    confidence: float = 0.95
    carriers: float = math.inf  # rows of equal deviation that would have the same variance and kurtosis

    @property
    def interval(self) -> tuple[float, float]:
        reach = self.reach * self.se
        return self.value - reach, self.value + reach

    @property
    def reach(self) -> float:
        return 1.96 if self.confidence == 0.95 else NormalDist().inv_cdf((1 + self.confidence) / 2)


@dataclass(frozen=True)
class Judgement:
    """The sentence, and the same for machines."""

    answer: str
    sentence: str
    difference: Difference | None


def difference(estimate: Any, logging: Any, *, adaptive: bool, confidence: float = 0.95) -> Difference:
    """Target minus logging policy, row by row, so that what both share cancels; with adaptive weights it does not."""
    apart = estimate.scores - logging.scores
    squares = (apart - apart.mean()) ** 2
    carriers = float(squares.sum() ** 2 / (squares @ squares)) if squares.any() else math.inf
    if adaptive or math.isnan(estimate.se):
        return Difference(estimate.value - logging.value, math.hypot(estimate.se, logging.se), confidence, carriers)
    se = float(apart.std(ddof=1)) / math.sqrt(len(apart)) if len(apart) > 1 else math.nan
    return Difference(float(np.mean(apart)), se, confidence, carriers)


def judge(evaluation: Any, *, name: str = "The target", confidence: float = 0.95) -> Judgement:
    """Judge the target of an `Evaluation` by the estimate that it trusts most."""
    estimate, logging, n = evaluation.trusted, evaluation.logging, evaluation.rows
    unsupported, missing = evaluation.unsupported, evaluation.missing
    adaptive, estimated = evaluation.adaptive, evaluation.estimated
    found = difference(estimate, logging, adaptive=adaptive, confidence=confidence)
    low, high = found.interval
    tail = f" ({estimate.estimator.name}; propensities are estimated)" if estimated else f" ({estimate.estimator.name})"
    against = f"{estimate.value:.4g} per decision against {logging.value:.4g}"
    reach = f"a difference of {found.value:+.3g}, {100 * confidence:.3g}% interval {low:+.3g} to {high:+.3g}{tail}"
    if unsupported > UNSUPPORTED:
        arms = ", ".join(map(repr, missing[:NAMED])) + (", ..." if len(missing) > NAMED else "")
        why = f"{100 * unsupported:.3g}% of its probability is on {count(len(missing), 'arm')} that the log never shows"
        return _cannot(name, f"{why} ({arms}); show {'it' if len(missing) == 1 else 'them'} now and then", found)
    if math.isnan(found.se):
        return _cannot(name, f"{estimate.estimator.name} has no standard error here; ask for dr, snips or ips", None)
    if found.se == 0 and found.value == 0:
        return Judgement(
            "same", f"{name} earns the same as the logging policy: {logging.value:.4g} per decision.", found
        )
    if estimate.ess < FEW:
        why = f"its weights leave the worth of {estimate.ess:.3g} rows of {n:,} (the largest is {estimate.largest:.3g})"
        return _cannot(name, f"{why}; log with a policy that is more like it, or that explores more", found)
    carried = n * max(CARRIERS / found.carriers, 1)
    if (low > 0 or high < 0) and carried > n:
        why = f"{against}, but that rests on the worth of {found.carriers:.2g} rows, with great weights or rare rewards"
        return _cannot(name, f"{why}; about {_round(carried - n):,} more rows like these would carry a verdict", found)
    if low > 0 or high < 0:
        word = "better" if low > 0 else "worse"
        return Judgement(word, f"{name} is {word} than the logging policy: {against}, {reach}.", found)
    if abs(found.value) < SMALL * abs(logging.value):
        why = f"{against}, {reach}; if there is a difference, it is too small to tell from none"
        return _cannot(name, why, found)
    needed = max(n * ((found.reach + POWER) * found.se / found.value) ** 2, carried)
    more = f"about {_round(max(needed - n, 0.1 * n)):,} more rows like these would tell a difference as large as this"
    return _cannot(name, f"{against}, {reach}; {more}", found)


def _cannot(name: str, why: str, found: Difference | None) -> Judgement:
    return Judgement("cannot tell", f"The log cannot tell whether {_inside(name)} is better: {why}.", found)


def _round(rows: float) -> int:
    """Two digits are enough."""
    size = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return int(math.ceil(rows / size) * size)


def _inside(name: str) -> str:
    """The name inside a sentence."""
    return f"t{name[1:]}" if name.startswith("The ") else name
