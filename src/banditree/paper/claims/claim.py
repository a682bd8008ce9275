"""A claim of the paper, the runs that it reads, and the verdict on it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.result import jsonable
from banditree.paper.claims.checks import NOT_JUDGED, OPEN, Finding, Missing
from banditree.paper.figures import DEFAULT
from banditree.simulation.runs import Runs


class Source(Protocol):
    """The results of a reproduction: the runs of a figure under a variant, by setting."""

    def __contains__(self, key: object, /) -> bool: ...

    def runs(self, figure: str, variant: str = DEFAULT) -> Mapping[str, Runs]: ...


@dataclass(frozen=True)
class Data:
    """The runs that a claim reads. ``half=True`` shows them only up to half their horizon, to see the effect of T.

    Methods that take a figure use the first one of the claim if none is given.
    """

    results: Source
    figures: tuple[str, ...]  # of the claim
    variant: str = DEFAULT
    half: bool = False
    jobs: int | None = -1  # workers, for claims that simulate something themselves

    def settings(self, figure: str = "") -> Mapping[str, Runs]:
        """Return the runs of every setting by its label."""
        figure = figure or self.figures[0]
        if (figure, self.variant) not in self.results:
            raise Missing(figure if self.variant == DEFAULT else f"{figure} ({self.variant})")
        settings = self.results.runs(figure, self.variant)
        return {label: _first_half(runs) for label, runs in settings.items()} if self.half else settings

    def single(self, figure: str = "") -> Runs:
        """Return the runs of a figure that has a single setting."""
        (runs,) = self.settings(figure).values()
        return runs

    @property
    def horizon(self) -> int:
        """The time at which regret is read, in the first figure that was run; it is the same in all its settings."""
        ran = next(figure for figure in self.figures if (figure, self.variant) in self.results)
        return int(next(iter(self.settings(ran).values())).times[-1])

    def regret(self, runs: Runs, policy: str, figure: str = "") -> Floats:
        """Return the regret of a policy: (seeds, times)."""
        if policy not in runs.regret:
            raise Missing(f"{policy} in {figure or self.figures[0]}")
        return runs.regret[policy]

    def final(self, policy: str, figure: str = "") -> Floats:
        """Return regret at the end in a figure with a single setting: (seeds,)."""
        return self.regret(self.single(figure), policy, figure)[:, -1]

    def sweep(self, policy: str, key: str) -> tuple[Floats, Floats]:
        """Return the values of the parameter, ascending, and regret at the end: (settings,), (seeds, settings)."""
        settings = {parameter(label, key): runs for label, runs in self.settings().items()}
        values = sorted(settings)
        if len(values) < 3:
            raise Missing(f"three settings of {self.figures[0]}")
        return np.array(values), np.stack([self.regret(settings[x], policy)[:, -1] for x in values], axis=1)

    def depths(self) -> dict[float, list[Floats]]:
        """Return regret of HTS at the end by number of arms, ascending, and for each by depth: (seeds,) each."""
        regret: dict[float, dict[float, Floats]] = {}
        for label, runs in self.settings().items():
            by_depth = regret.setdefault(parameter(label, "n_arms"), {})
            by_depth[parameter(label, "depth")] = self.regret(runs, "HTS")[:, -1]
        if len(regret) < 3:
            raise Missing(f"three settings of {self.figures[0]}")
        return {n: [regret[n][depth] for depth in sorted(regret[n])] for n in sorted(regret)}


def _first_half(runs: Runs) -> Runs:
    """Return the runs up to the last time that is at most half the horizon."""
    n_times = int((2 * runs.times <= runs.times[-1]).sum())
    if n_times == 0:
        raise Missing("regret at half the horizon")
    regret = {name: regret[:, :n_times] for name, regret in runs.regret.items()}
    return replace(runs, times=runs.times[:n_times], regret=regret)


def parameter(label: str, key: str) -> float:
    """Return the value of a key in the label of a setting, such as "n_arms=64 depth=2".

    >>> parameter("n_arms=64 depth=2", "depth")
    2.0
    """
    return float(dict(part.split("=") for part in label.split())[key])


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it."""

    id: str
    title: str  # the claim in a few plain words
    quote: str
    figures: tuple[str, ...]
    evaluate: Callable[[Data], Finding]
    over_time: bool = True  # whether it can be judged at half the horizon too
    of_instances: bool = False  # whether it is about instances rather than runs; its seeds are then instances

    @property
    def statistic(self) -> str:
        """What ``evaluate`` computes, in words: its docstring, with its parameters in place of their names."""
        parameters = inspect.signature(self.evaluate).parameters
        words = inspect.getdoc(getattr(self.evaluate, "func", self.evaluate)) or ""
        return " ".join(words.split()).format(**{name: given.default for name, given in parameters.items()})

    def find(self, data: Data) -> Finding:
        """Evaluate the claim on these data."""
        return replace(self.evaluate(data), horizon=data.horizon)


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
        others = ", ".join(f"with the reading {name!r} it {verdict}" for name, verdict in self.otherwise.items())
        if not others:
            return self.finding.sentence
        if self.reading_decides:
            return f"{self.finding.sentence} The reading decides: {others}."
        return f"{self.finding.sentence} {others[0].upper()}{others[1:]}."

    def to_dict(self) -> dict[str, Any]:
        """Return the content of claims.json, with None for numbers that are not finite."""
        claim = self.claim
        content = {
            "id": claim.id,
            "title": claim.title,
            "quote": claim.quote,
            "figures": claim.figures,
            "statistic": claim.statistic,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "missing": self.missing or None,
            "verdict_at_half_horizon": self.half,
            "reading_decides": self.reading_decides,
            "other_readings": self.otherwise,
            **({} if self.finding is None else self.finding.to_dict()),
            "variants": {
                name: {"verdict": finding.verdict, "sentence": finding.sentence, **finding.to_dict()}
                for name, finding in self.variants.items()
            },
        }
        described: dict[str, Any] = jsonable(content)
        return described
