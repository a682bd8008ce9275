"""A claim of the paper, the runs that it reads, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.paper.claims.checks import NOT_JUDGED, OPEN, Check, Finding, Missing, needed_errors
from banditree.paper.figures import DEFAULT
from banditree.simulation.runs import Runs
from banditree.tree.shape import Floats


class Source(Protocol):
    """The results of a reproduction: the runs of a figure under a variant, by setting."""

    def __contains__(self, key: object, /) -> bool: ...

    def runs(self, figure: str, variant: str = DEFAULT) -> Mapping[str, Runs]: ...


@dataclass(frozen=True)
class Data:
    """A view of results. ``half=True`` sees the runs only up to half their horizon, to show the effect of T."""

    results: Source
    variant: str = DEFAULT
    half: bool = False
    jobs: int | None = -1  # workers, for claims that simulate something themselves

    def settings(self, figure: str) -> Mapping[str, Runs]:
        if (figure, self.variant) not in self.results:
            raise Missing(figure if self.variant == DEFAULT else f"{figure} ({self.variant})")
        return self.results.runs(figure, self.variant)

    def single(self, figure: str) -> Runs:
        """Return the runs of a figure that has a single setting."""
        (runs,) = self.settings(figure).values()
        return runs

    def time_index(self, runs: Runs) -> int:
        """Return the index of the time at which regret is read."""
        if not self.half:
            return len(runs.times) - 1
        first_half = np.flatnonzero(2 * runs.times <= runs.times[-1])
        if len(first_half) == 0:
            raise Missing("regret at half the horizon")
        return int(first_half[-1])

    def horizon(self, figure: str) -> int:
        """Return the time at which regret is read; the same in all settings of a figure."""
        runs = next(iter(self.settings(figure).values()))
        return int(runs.times[self.time_index(runs)])

    def final(self, figure: str, policy: str) -> Floats:
        """Return regret at the end in a figure with a single setting: (seeds,)."""
        return self._final(self.single(figure), policy, figure)

    def sweep(self, figure: str, policy: str, key: str) -> tuple[Floats, Floats]:
        """Return the values of the parameter, ascending, and regret at the end: (settings,), (seeds, settings)."""
        labels = sorted((parameter(label, key), label) for label in self.settings(figure))
        if len(labels) < 3:
            raise Missing(f"three settings of {figure}")
        columns = [self._final(self.settings(figure)[label], policy, figure) for _, label in labels]
        return np.array([value for value, _ in labels]), np.stack(columns, axis=1)

    def depths(self, figure: str) -> tuple[Floats, list[Floats]]:
        """Return numbers of arms, ascending, and regret of HTS at the end: (sizes,), and (seeds, depths) per size."""
        regret: dict[float, dict[float, Floats]] = {}
        for label, runs in self.settings(figure).items():
            by_depth = regret.setdefault(parameter(label, "n_arms"), {})
            by_depth[parameter(label, "depth")] = self._final(runs, "HTS", figure)
        if len(regret) < 3:
            raise Missing(f"three settings of {figure}")
        sizes = sorted(regret)
        return np.array(sizes), [np.stack([regret[n][depth] for depth in sorted(regret[n])], axis=1) for n in sizes]

    def curve(self, figure: str, policy: str) -> tuple[NDArray[np.int64], Floats]:
        """Return times and regret in a figure with a single setting: (times,), (seeds, times)."""
        runs = self.single(figure)
        end = self.time_index(runs) + 1
        return runs.times[:end], self._regret(runs, policy, figure)[:, :end]

    def policies(self, figure: str) -> tuple[str, ...]:
        return next(iter(self.settings(figure).values())).policies

    def _final(self, runs: Runs, policy: str, figure: str) -> Floats:
        return self._regret(runs, policy, figure)[:, self.time_index(runs)]

    @staticmethod
    def _regret(runs: Runs, policy: str, figure: str) -> Floats:
        if policy not in runs.regret:
            raise Missing(f"{policy} in {figure}")
        return runs.regret[policy]


def parameter(label: str, key: str) -> float:
    """Return the value of a key in the label of a setting, such as "n_arms=64 depth=2".

    >>> parameter("n_arms=64 depth=2", "depth")
    2.0
    """
    return float(dict(part.split("=") for part in label.split())[key])


# ---------------------------------------------------------------- claims and verdicts


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
        verdicts = {name: finding.verdict for name, finding in self.variants.items()}
        return {name: verdict for name, verdict in verdicts.items() if verdict not in (OPEN, self.verdict)}

    @property
    def sentence(self) -> str:
        """The verdict in words, made from the numbers."""
        if self.finding is None:
            return f"Not judged: there are no runs of {self.missing}."
        sentence = self.finding.sentence
        others = ", ".join(f"with the reading {name!r} it {verdict}" for name, verdict in self.otherwise.items())
        if self.reading_decides:
            sentence += f" The reading decides: {others}."
        elif others:
            sentence += f" {others[0].upper()}{others[1:]}."
        return sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the content of claims.json, with None for numbers that are not finite."""
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
            **({} if self.finding is None else _describe_finding(self.finding)),
            "variants": {
                name: {"verdict": finding.verdict, "sentence": finding.sentence, **_describe_finding(finding)}
                for name, finding in self.variants.items()
            },
        }


def _describe_finding(finding: Finding) -> dict[str, object]:
    return {
        "margin": _finite(finding.margin),
        "needed": _finite(needed_errors(finding.seeds)),
        "seeds": finding.seeds,
        "horizon": finding.horizon,
        "numbers": {name: _finite(value) for name, value in finding.numbers.items()},
        "checks": [_describe_check(check) for check in finding.checks],
    }


def _describe_check(check: Check) -> dict[str, object]:
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
