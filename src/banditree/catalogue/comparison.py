"""Compare policies over simulated worlds: mean regret, its interval by a bootstrap over worlds, where curves cross."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.intervals import student
from banditree.base.tables import Table
from banditree.simulation.runs import Runs

RESAMPLES = 4_000


@dataclass(frozen=True)
class Lead:
    """How much less regret one policy has than another at the horizon."""

    policy: str
    rival: str
    saving: float  # mean over worlds
    interval: tuple[float, float]  # 95% interval of that mean
    share: float  # the saving as a share of the rival's regret
    wins: float  # share of the worlds in which the policy has less regret; ties count half
    crossing: int | None  # decisions after which the order of the mean curves stays as it is at the end

    @property
    def is_decisive(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval[0] > 0 or self.interval[1] < 0


def compare(runs: Runs, policy: str, rival: str) -> Lead:
    """Compare two policies, which met the same worlds."""
    saved = runs.regret[rival][:, -1] - runs.regret[policy][:, -1]  # (worlds,)
    mean, lost = float(saved.mean()), float(runs.regret[rival][:, -1].mean())
    return Lead(
        policy=policy,
        rival=rival,
        saving=mean,
        interval=bootstrap(saved),
        share=mean / lost if lost > 0 else 0.0,
        wins=float((saved > 0).mean() + 0.5 * (saved == 0).mean()),
        crossing=crossing(runs, policy, rival),
    )


def bootstrap(values: Floats) -> tuple[float, float]:
    """Return a 95% interval for the mean of values, one per world, by resampling the worlds.

    The percentiles are moved out, by as much as makes them those of Student's t for normal values: with few worlds,
    plain percentiles are too close together (Hesterberg 2015, "What teachers should know about the bootstrap").

    >>> bootstrap(np.array([2.0, 2.0, 2.0]))
    (2.0, 2.0)
    """
    n = len(values)
    if n < 2:
        return float(values[0]), float(values[0])
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student(n))
    means = values[np.random.default_rng(0).integers(n, size=(RESAMPLES, n))].mean(axis=1)
    low, high = np.quantile(means, [tail, 1 - tail]).tolist()
    return low, high


def crossing(runs: Runs, policy: str, rival: str) -> int | None:
    """Find where the mean curves cross for the last time; None if they do not, or in the first hundredth of the run."""
    ahead = np.sign(runs.regret[rival].mean(axis=0) - runs.regret[policy].mean(axis=0))  # (times,)
    others = np.flatnonzero((ahead == -ahead[-1]) & (ahead != 0) & (100 * runs.times >= runs.times[-1]))
    return int(runs.times[others[-1] + 1]) if len(others) else None


def tabulate(runs: Runs) -> Table:
    """Tabulate each policy's regret at the horizon, the best first.

    ``bad`` is exceeded in one world of twenty, and ``best`` is the share of the worlds in which no other policy has
    less.
    """
    final = {name: regret[:, -1] for name, regret in runs.regret.items()}  # (worlds,) each
    least = np.min(list(final.values()), axis=0)
    rows = [
        (name, float(lost.mean()), bootstrap(lost), float(np.quantile(lost, 0.95)), float((lost == least).mean()))
        for name, lost in final.items()
    ]
    return Table(("policy", "regret", "interval", "bad", "best"), sorted(rows, key=lambda row: row[1]))
