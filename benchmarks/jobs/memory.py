"""Memory of many arms: how much the process grows when an agent is built and has decided once."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.contestants.agent import Setting


def run(contestant: ModuleType, *, n_arms: int) -> dict[str, Any]:
    algorithm = next(iter(contestant.OFFERS))
    _decide(contestant, algorithm, 10)  # whatever the library loads late is in memory now
    before = resident()
    kept = _decide(contestant, algorithm, n_arms)
    grown = resident() - before
    return {"algorithm": algorithm, "bytes": grown / n_arms, "kept": len(kept)}


def _decide(contestant: ModuleType, algorithm: str, n_arms: int) -> list[Any]:
    dim = 5 if algorithm.startswith("Lin") else None
    labels = np.arange(n_arms) // max(1, round(n_arms**0.5))
    agent = contestant.OFFERS[algorithm].make(Setting(n_arms, dim, labels, 0))
    x = [agent.context(np.ones(dim))] if dim else []
    agent.update(agent.choose(*x), 1, *x)
    return [agent]


def resident() -> int:
    """Bytes of this process in memory now; where that is not told, the most it ever had."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
