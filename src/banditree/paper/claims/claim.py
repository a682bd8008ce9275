"""A claim of the paper, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from banditree.paper.claims.checks import NOT_JUDGED, OPEN, Check, Finding, needed
from banditree.paper.claims.data import Data

Evaluate = Callable[[Data], Finding]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it. ``statistic`` says in words what ``evaluate`` computes."""

    id: str
    title: str  # the claim in a few plain words
    quote: str
    figures: tuple[str, ...]
    statistic: str
    evaluate: Evaluate
    over_time: bool = True  # whether it can be judged at half the horizon too
    of_instances: bool = False  # whether it is about instances rather than runs; its seeds are then instances


@dataclass(frozen=True)
class Verdict:
    """What the data say about a claim, under the default readings and under each variant that was run."""

    claim: Claim
    finding: Finding | None  # None where data are missing
    missing: str = ""
    half: str | None = None  # the verdict at half the horizon, if there is one
    variants: dict[str, Finding] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def verdict(self) -> str:
        """One of the four verdicts, or "not judged"."""
        return NOT_JUDGED if self.finding is None else self.finding.verdict

    @property
    def margin(self) -> float | None:
        return None if self.finding is None else self.finding.margin

    @property
    def reading_decides(self) -> bool:
        """Whether another reading of the paper gives a different verdict, both of them decided."""
        return self.verdict not in (NOT_JUDGED, OPEN) and bool(self.otherwise)

    @property
    def otherwise(self) -> dict[str, str]:
        """The decided verdicts of other readings that differ from this verdict: {variant: verdict}."""
        verdicts = {name: found.verdict for name, found in self.variants.items()}
        return {name: verdict for name, verdict in verdicts.items() if verdict not in (OPEN, self.verdict)}

    @property
    def sentence(self) -> str:
        """The verdict in words, made from the numbers."""
        if self.finding is None:
            return f"Not judged: there are no runs of {self.missing}."
        said = self.finding.sentence
        others = ", ".join(f"with the reading {name!r} it {verdict}" for name, verdict in self.otherwise.items())
        if self.reading_decides:
            said += f" The reading decides: {others}."
        elif others:
            said += f" {others[0].upper()}{others[1:]}."
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the content of claims.json, with None for numbers that are not finite."""
        found = self.finding
        return {
            "id": self.claim.id,
            "title": self.claim.title,
            "quote": self.claim.quote,
            "figures": list(self.claim.figures),
            "statistic": self.claim.statistic,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "missing": self.missing or None,
            "verdict_at_half_horizon": self.half,
            "reading_decides": self.reading_decides,
            "other_readings": self.otherwise,
            **({} if found is None else _finding(found)),
            "variants": {
                name: {"verdict": each.verdict, "sentence": each.sentence, **_finding(each)}
                for name, each in self.variants.items()
            },
        }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "margin": _finite(found.margin),
        "needed": _finite(needed(found.seeds)),
        "seeds": found.seeds,
        "horizon": found.horizon,
        "numbers": {name: _finite(value) for name, value in found.numbers.items()},
        "checks": [_check(check) for check in found.checks],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "what": check.what,
        "result": check.result,
        "estimate": _finite(check.estimate.value),
        "se": _finite(check.estimate.se),
        "seeds": check.estimate.seeds,
        "threshold": check.threshold,
        "side": "above" if check.above else "below",
        "passes": "when shown" if check.proof else "unless refuted",
        "core": check.core,
        "margin": _finite(check.margin),
        "count": check.estimate.se == 0,
    }


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
