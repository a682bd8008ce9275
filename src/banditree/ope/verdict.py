"""Write the verdict in one sentence: better than the logging policy, worse, or what it would take to tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from banditree.ope.estimators import mean_and_error
from banditree.report.words import count

UNSUPPORTED = 0.05  # with more of its probability on arms without rows, a target cannot be judged
FEW = 30  # with fewer effective rows, a normal interval cannot be trusted
CARRIERS = 10  # if fewer rows determine the standard error, such as rare rewards, it cannot be trusted either
POWER = NormalDist().inv_cdf(0.8)  # enough rows to detect the estimated difference 4 times in 5
SMALL = 0.01  # a difference below this share of the logging policy's value is not worth more rows
NAMED = 5  # arms named in the sentence, at most


@dataclass(frozen=True)
class Difference:
    """Target minus logging policy."""

    value: float
    se: float
    confidence: float = 0.95
    carriers: float = math.inf  # effective number of rows that determine the standard error

    @property
    def interval(self) -> tuple[float, float]:
        reach = self.reach * self.se
        return self.value - reach, self.value + reach

    @property
    def reach(self) -> float:
        return 1.96 if self.confidence == 0.95 else NormalDist().inv_cdf((1 + self.confidence) / 2)


@dataclass(frozen=True)
class Judgement:
    """A verdict, as a word for programs and as a sentence for people."""

    answer: str
    sentence: str
    difference: Difference | None


def difference(estimate: Any, logging: Any, *, adaptive: bool, confidence: float = 0.95) -> Difference:
    """Compute target minus logging policy row by row, so that shared noise cancels (not with adaptive weights)."""
    apart = estimate.scores - logging.scores
    squares = (apart - apart.mean()) ** 2
    carriers = float(squares.sum() ** 2 / (squares @ squares)) if squares.any() else math.inf
    if adaptive or math.isnan(estimate.se):
        return Difference(estimate.value - logging.value, math.hypot(estimate.se, logging.se), confidence, carriers)
    return Difference(*mean_and_error(apart), confidence, carriers)


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
        return _cannot_tell(name, f"{why} ({arms}); show {'it' if len(missing) == 1 else 'them'} occasionally", found)
    if math.isnan(found.se):
        return _cannot_tell(
            name, f"{estimate.estimator.name} has no standard error here; ask for dr, snips or ips", None
        )
    if found.se == 0 and found.value == 0:
        return Judgement(
            "same", f"{name} earns the same as the logging policy: {logging.value:.4g} per decision.", found
        )
    if estimate.ess < FEW:
        why = (
            f"its weights reduce {n:,} rows to the worth of {estimate.ess:.3g} (the largest is {estimate.largest:.3g})"
        )
        return _cannot_tell(name, f"{why}; log with a policy that is more similar to it, or that explores more", found)
    carried = n * max(CARRIERS / found.carriers, 1)
    if (low > 0 or high < 0) and carried > n:
        why = f"{against}, but that depends on about {found.carriers:.2g} rows with large weights or rare rewards"
        return _cannot_tell(
            name, f"{why}; about {_round(carried - n):,} more rows like these would allow a verdict", found
        )
    if low > 0 or high < 0:
        word = "better" if low > 0 else "worse"
        return Judgement(word, f"{name} is {word} than the logging policy: {against}, {reach}.", found)
    if abs(found.value) < SMALL * abs(logging.value):
        why = f"{against}, {reach}; if there is a difference, it is too small to detect"
        return _cannot_tell(name, why, found)
    needed = max(n * ((found.reach + POWER) * found.se / found.value) ** 2, carried)
    more = f"about {_round(max(needed - n, 0.1 * n)):,} more rows like these would show a difference as large as this"
    return _cannot_tell(name, f"{against}, {reach}; {more}", found)


def _cannot_tell(name: str, why: str, found: Difference | None) -> Judgement:
    return Judgement("cannot tell", f"The log cannot tell whether {_mid_sentence(name)} is better: {why}.", found)


def _round(rows: float) -> int:
    """Round up to two digits."""
    size = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return int(math.ceil(rows / size) * size)


def _mid_sentence(name: str) -> str:
    """Write a name as it appears inside a sentence."""
    return f"t{name[1:]}" if name.startswith("The ") else name
