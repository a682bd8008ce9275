"""What was measured: one row per offer and environment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

OURS = "banditree"
TOLD = "meTS"  # told how the world was made, which no user could: shown, and left out of the ranking


@dataclass(frozen=True)
class Row:
    """An offer on an environment: the regret of each seed, in the order of the seeds."""

    environment: str
    package: str
    label: str
    note: str
    horizon: int  # rounds of a world
    regrets: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    probability: str = "none"
    reached: int | None = None  # the round at which it was stopped, None if it was not
    stating: float = 0.0  # seconds of a decision with its probability
    failure: str = ""

    @property
    def name(self) -> str:
        return f"{self.label} ({self.note})" if self.note else self.label

    @property
    def mean(self) -> float:
        return float(np.mean(self.regrets)) if self.regrets else float("nan")

    @property
    def se(self) -> float:
        """Standard error of the mean, NaN for one seed."""
        n = len(self.regrets)
        return float(np.std(self.regrets, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    @property
    def is_ours(self) -> bool:
        return self.package == OURS

    @property
    def is_default_of_ours(self) -> bool:
        """LinATS, or ATS where there are no contexts: what banditree advises without knowing the world."""
        return self.is_ours and self.note == "default" and self.label in ("LinATS", "ATS")


@dataclass(frozen=True)
class Standing:
    """How our default does in one environment beside the best of the others' offers."""

    ours: Row
    best: Row | None  # of the other packages
    difference: float  # ours minus theirs over the seeds that both played
    se: float

    @property
    def ratio(self) -> float:
        """Our regret over theirs, over the seeds that both played."""
        return float("nan") if self.best is None else self.ours.mean / max(self.ours.mean - self.difference, 1e-12)

    @property
    def wins(self) -> bool:
        return self.best is None or self.difference <= 0

    @property
    def verdict(self) -> str:
        """In words, by two standard errors of the paired difference."""
        if self.best is None:
            return "no other finished"
        if not np.isfinite(self.se):
            return "lower" if self.wins else "higher"
        if abs(self.difference) <= 2 * self.se:
            return "a tie"
        return "clearly lower" if self.wins else "clearly higher"


def default_of(rows: list[Row]) -> Row | None:
    """Our default on one environment, None if it did not finish."""
    return next((row for row in rows if row.is_default_of_ours and row.regrets), None)


def difference(row: Row, ours: Row) -> tuple[float, float]:
    """A row's regret minus that of ours over the seeds that both played, and its standard error."""
    n = min(len(row.regrets), len(ours.regrets))
    differences = np.subtract(row.regrets[:n], ours.regrets[:n])
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def comparable(row: Row, ours: Row | None) -> float:
    """The mean regret to rank by: a row with fewer seeds is placed by those that it has in common with ours."""
    return row.mean if ours is None else ours.mean + difference(row, ours)[0]


def standing(rows: list[Row]) -> Standing | None:
    """Compare our default with the others on one environment; None if our default did not finish."""
    ours = default_of(rows)
    if ours is None:
        return None
    others = [row for row in rows if not row.is_ours and row.label != TOLD and row.regrets]
    if not others:
        return Standing(ours, None, float("nan"), float("nan"))
    best = min(others, key=lambda row: comparable(row, ours))
    theirs, se = difference(best, ours)
    return Standing(ours, best, -theirs, se)
