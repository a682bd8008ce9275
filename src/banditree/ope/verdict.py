"""The verdict in one sentence: better than the logging policy, worse, or what it would take to tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from banditree.ope.estimators import mean_and_error
from banditree.report.intervals import Z95
from banditree.report.words import count

if TYPE_CHECKING:
    from banditree.ope.evaluation import Estimate, Evaluation

MAX_UNSUPPORTED = 0.05  # with more of its probability on arms without rows, a target cannot be judged
MIN_EFFECTIVE_ROWS = 30  # with fewer effective rows, a normal interval cannot be trusted
MIN_EFFECTIVE_CONTRIBUTIONS = 10  # rows that determine the standard error, without which it cannot be trusted either
POWER = NormalDist().inv_cdf(0.8)  # enough rows to detect the estimated difference 4 times in 5
SMALLEST_SHARE = 0.01  # a difference below this share of the logging policy's value is not worth more rows
MAX_ARMS_NAMED = 5  # arms named in the sentence, at most


@dataclass(frozen=True)
class Difference:
    """Target minus logging policy."""

    value: float
    se: float
    confidence: float = 0.95
    contributions: float = math.inf  # effective number of rows that determine the standard error

    @property
    def interval(self) -> tuple[float, float]:
        reach = self.reach * self.se
        return self.value - reach, self.value + reach

    @property
    def reach(self) -> float:
        return Z95 if self.confidence == 0.95 else NormalDist().inv_cdf((1 + self.confidence) / 2)


@dataclass(frozen=True)
class Judgement:
    """A verdict, as a word for programs and as a sentence for people."""

    answer: str
    sentence: str
    difference: Difference | None


def compare(estimate: Estimate, other: Estimate, *, adaptive: bool, confidence: float = 0.95) -> Difference:
    """Compute one estimate minus another row by row, so that shared noise cancels (not with adaptive weights)."""
    by_row = estimate.scores - other.scores
    squares = (by_row - by_row.mean()) ** 2
    contributions = float(squares.sum() ** 2 / (squares @ squares)) if squares.any() else math.inf
    is_logged = math.isclose(estimate.largest, 1) and math.isclose(other.largest, 1)  # both show what the log shows
    if adaptive or math.isnan(estimate.se):
        return Difference(estimate.value - other.value, math.hypot(estimate.se, other.se), confidence, contributions)
    value, se = mean_and_error(by_row)
    return Difference(value, se if is_logged else max(se, estimate.least, other.least), confidence, contributions)


def judge(evaluation: Evaluation, *, name: str = "The target", confidence: float = 0.95) -> Judgement:
    """Judge the target of an `Evaluation` by the estimate that it trusts most."""
    estimate, logging, n = evaluation.trusted, evaluation.logging, evaluation.rows
    unsupported, missing = evaluation.unsupported, evaluation.missing
    adaptive, estimated = evaluation.adaptive, evaluation.estimated
    apart = compare(estimate, logging, adaptive=adaptive, confidence=confidence)
    low, high = apart.interval
    tail = f" ({estimate.estimator.name}; propensities are estimated)" if estimated else f" ({estimate.estimator.name})"
    against = f"{estimate.value:.4g} per decision against {logging.value:.4g}"
    reach = f"a difference of {apart.value:+.3g}, {100 * confidence:.3g}% interval {low:+.3g} to {high:+.3g}{tail}"
    if unsupported > MAX_UNSUPPORTED:
        arms = ", ".join(map(repr, missing[:MAX_ARMS_NAMED])) + (", ..." if len(missing) > MAX_ARMS_NAMED else "")
        why = f"{100 * unsupported:.3g}% of its probability is on {count(len(missing), 'arm')} that the log never shows"
        return _cannot_tell(name, f"{why} ({arms}); show {'it' if len(missing) == 1 else 'them'} occasionally", apart)
    if math.isnan(apart.se):
        return _cannot_tell(
            name, f"{estimate.estimator.name} has no standard error here; ask for dr, snips or ips", None
        )
    if apart.se == 0 and apart.value == 0:
        return Judgement(
            "same", f"{name} earns the same as the logging policy: {logging.value:.4g} per decision.", apart
        )
    if estimate.ess < MIN_EFFECTIVE_ROWS:
        why = (
            f"its weights reduce {n:,} rows to the worth of {estimate.ess:.3g} (the largest is {estimate.largest:.3g})"
        )
        return _cannot_tell(name, f"{why}; log with a policy that is more similar to it, or that explores more", apart)
    enough = n * max(MIN_EFFECTIVE_CONTRIBUTIONS / apart.contributions, 1)
    if (low > 0 or high < 0) and enough > n:
        why = f"{against}, but that depends on about {apart.contributions:.2g} rows with large weights or rare rewards"
        return _cannot_tell(
            name, f"{why}; about {_round(enough - n):,} more rows like these would allow a verdict", apart
        )
    if low > 0 or high < 0:
        word = "better" if low > 0 else "worse"
        return Judgement(word, f"{name} is {word} than the logging policy: {against}, {reach}.", apart)
    if abs(apart.value) <= SMALLEST_SHARE * abs(logging.value):
        why = f"{against}, {reach}; if there is a difference, it is too small to detect"
        return _cannot_tell(name, why, apart)
    needed = max(n * ((apart.reach + POWER) * apart.se / apart.value) ** 2, enough)
    more = f"about {_round(max(needed - n, 0.1 * n)):,} more rows like these would show a difference as large as this"
    return _cannot_tell(name, f"{against}, {reach}; {more}", apart)


def _cannot_tell(name: str, why: str, apart: Difference | None) -> Judgement:
    return Judgement("cannot tell", f"The log cannot tell whether {_mid_sentence(name)} is better: {why}.", apart)


def _round(rows: float) -> int:
    """Round up to two digits."""
    size = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return int(math.ceil(rows / size) * size)


def _mid_sentence(name: str) -> str:
    """Write a name as it appears inside a sentence."""
    return f"t{name[1:]}" if name.startswith("The ") else name
