"""One run: a policy on an instance, for one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.tree import Tree

Floats = NDArray[np.float64]


@dataclass
class Run:
    """One policy, one seed."""

    engine: str
    regret: Floats  # (times,) cumulative
    plays: NDArray[np.int64]  # (arms,) in the order of the instance's arms
    evaluations: float = np.nan  # children drawn or scored a step, by a plain walk
    seconds: float = 0.0
    clusters: Mapping[Any, float] = field(default_factory=dict)  # plays by top cluster
    replicates: Floats | None = None  # (replicates, times) regret of each, where this is the mean of several runs

    @classmethod
    def empty(cls, engine: str, n_times: int, n_arms: int) -> Run:
        # Not np.zeros, which leaves getting the memory of a large array to the first steps.
        return cls(engine, np.zeros(n_times), np.full(n_arms, 0, np.int64))

    @classmethod
    def mean(cls, runs: Sequence[Run]) -> Run:
        """Several runs of a policy on the same instance as one; plays per arm are left out."""
        regret = np.array([run.regret for run in runs])
        return cls(
            engine=one_engine(runs),
            regret=regret.mean(axis=0),
            plays=runs[0].plays[:0],
            evaluations=float(np.mean([run.evaluations for run in runs])),
            seconds=sum(run.seconds for run in runs) / len(runs),
            clusters={key: sum(run.clusters[key] for run in runs) / len(runs) for key in runs[0].clusters},
            replicates=regret,
        )

    def by_cluster(self, tree: Tree) -> None:
        """Add up the plays of each top cluster."""
        self.clusters = {name: int(plays) for name, plays in tree.sums_by_cluster(self.plays).items()}


def one_engine(runs: Sequence[Run]) -> str:
    """The engine of several runs: native only if all were."""
    return "native" if all(run.engine == "native" for run in runs) else "readable"
