"""Hold the outcome of one run: one policy on one instance, for one seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Run:
    """What one policy did on the instance of one seed."""

    engine: str
    regret: Floats  # (times,) cumulative
    plays: NDArray[np.int64]  # (arms,) in the order of the instance's arms
    evaluations: float = np.nan  # children sampled or scored per step, in a plain walk
    seconds: float = 0.0
    clusters: Mapping[Any, float] = field(default_factory=dict)  # plays of each top cluster
    replicates: Floats | None = None  # (replicates, times) regret of each, if this is the mean of several runs

    @classmethod
    def empty(cls, engine: str, n_times: int, n_arms: int) -> Run:
        # np.full and not np.zeros, which would leave it to the first steps to allocate a large array.
        return cls(engine, np.zeros(n_times), np.full(n_arms, 0, np.int64))

    @classmethod
    def mean(cls, runs: Sequence[Run]) -> Run:
        """Average several runs of a policy on the same instance; plays per arm are left out."""
        regret = np.array([run.regret for run in runs])
        return cls(
            engine=one_engine(run.engine for run in runs),
            regret=regret.mean(axis=0),
            plays=runs[0].plays[:0],
            evaluations=float(np.mean([run.evaluations for run in runs])),
            seconds=sum(run.seconds for run in runs) / len(runs),
            clusters={key: sum(run.clusters[key] for run in runs) / len(runs) for key in runs[0].clusters},
            replicates=regret,
        )


def one_engine(engines: Iterable[str]) -> str:
    """Return the engine of several runs: "native" only if all of them were."""
    return "native" if all(engine == "native" for engine in engines) else "readable"
