"""The problems that all contestants meet, as files, and the jobs of their workers: the loop that is timed, and memory.

Every environment of a peer reads this file, so it needs NumPy alone.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants import Agent, Library, Setting

if TYPE_CHECKING:
    from banditree.base.arrays import Floats

# ---------------------------------------------------------------- problems


DIM = 5


def write(folder: Path, *, horizon: int, contextual_horizon: int) -> dict[str, Path]:
    """One file a problem: {title: path}."""
    files = {
        "100 arms in 10 clusters": _strong(folder / "strong-100.npz", 100, 10, horizon),
        "1,000 arms in 32 clusters": _strong(folder / "strong-1000.npz", 1000, 32, horizon),
        "400 arms in 20 clusters, 5 features": _linear(folder / "linear-400.npz", 400, 20, contextual_horizon),
    }
    return files


def _strong(path: Path, n_arms: int, n_clusters: int, horizon: int) -> Path:
    """The paper's strong dominance: the best cluster has means 0.5 to 0.6, the others 0.3 to 0.4."""
    import banditree as bt

    instance = bt.problems.strong_dominance(n_arms=n_arms, n_clusters=n_clusters, n_best=n_clusters).instance(0)
    labels = [instance.tree.path(arm)[0] for arm in instance.arms]
    np.savez(path, horizon=horizon, labels=np.array(labels, np.int64), means=np.asarray(instance.means))
    return path


def _linear(path: Path, n_arms: int, n_clusters: int, horizon: int) -> Path:
    """The paper's contextual clusters with rewards of 0 or 1, which every peer takes.

    Contexts are shares that add up to 1 and coefficients are in [0, 1], so that theta.x is a probability.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(n_clusters, size=n_arms)
    centres = rng.random((n_clusters, DIM))
    theta = np.clip(centres[labels] + 0.1 * rng.standard_normal((n_arms, DIM)), 0.0, 1.0)  # (arms, dim)
    contexts = rng.dirichlet(np.full(DIM, 0.5), size=horizon)
    np.savez(path, horizon=horizon, labels=labels, theta=theta, contexts=contexts)
    return path


@dataclass(frozen=True)
class Case:
    """Bernoulli arms in clusters; their expected rewards are fixed, or linear in contexts that are the same for all."""

    horizon: int
    labels: NDArray[np.int64]  # (arms,)
    expected: list[list[float]]  # (1, arms) means, or (steps, arms) theta.x
    best: list[float]  # (1,) or (steps,)
    contexts: Floats | None  # (steps, dim)

    @property
    def n_arms(self) -> int:
        return len(self.labels)

    @property
    def dim(self) -> int | None:
        return None if self.contexts is None else self.contexts.shape[1]

    @classmethod
    def read(cls, path: str) -> Case:
        with np.load(path) as arrays:
            contexts = arrays.get("contexts")
            expected = arrays["means"][None] if contexts is None else contexts @ arrays["theta"].T
            horizon = int(arrays["horizon"])
            return cls(horizon, arrays["labels"], expected.tolist(), expected.max(axis=1).tolist(), contexts)

    def regret(self, played: list[int]) -> float:
        """Expected regret of the arms played."""
        if self.contexts is None:
            return sum(self.best[0] - self.expected[0][arm] for arm in played)
        return sum(self.best[step] - self.expected[step][arm] for step, arm in enumerate(played))

    def blind_regret(self) -> float:
        """Expected regret of choosing arms uniformly."""
        a_step = float(np.mean(self.best) - np.mean(self.expected))
        return a_step * self.horizon


# ---------------------------------------------------------------- jobs


CHUNK = 10  # steps between two looks at the clock

read = lru_cache(maxsize=None)(Case.read)


def steps(
    contestant: Library, *, algorithm: str, case: str, seed: int, limit: float, at_least: float
) -> dict[str, Any]:
    """Whole runs, each with a fresh agent, until the clock has counted ``at_least`` seconds.

    A run that takes more than ``limit`` seconds is stopped; then ``steps`` is short of the case's horizon.
    """
    problem = read(case)
    seconds, steps = 0.0, 0
    regrets: list[float] = []
    tried: list[int] = []  # arms that a run played at least once
    while seconds < at_least:
        again = len(regrets)
        agent = contestant.offers[algorithm].make(
            Setting(problem.n_arms, problem.dim, problem.labels, 1000 * seed + again)
        )
        coins = np.random.default_rng((seed, again)).random(problem.horizon).tolist()
        took, played = (flat if problem.contexts is None else contextual)(agent, problem, coins, limit)
        seconds, steps = seconds + took, steps + len(played)
        regrets.append(problem.regret(played))
        tried.append(len(set(played)))
    whole = steps == len(regrets) * problem.horizon
    return {"seconds": seconds, "steps": steps, "regrets": regrets, "tried": tried, "whole": whole}


def flat(agent: Agent, case: Case, coins: list[float], limit: float) -> tuple[float, list[int]]:
    """Seconds and the arms played; the reward is 1 where the coin is below the arm's expected reward."""
    choose, update, means = agent.choose, agent.update, case.expected[0]
    played: list[int] = []
    begin = now = perf_counter()
    for at in range(0, len(coins), CHUNK):
        for coin in coins[at : at + CHUNK]:
            arm = choose()
            update(arm, 1 if coin < means[arm] else 0)
            played.append(arm)
        now = perf_counter()
        if now - begin > limit:
            break
    return now - begin, played


def contextual(agent: Agent, case: Case, coins: list[float], limit: float) -> tuple[float, list[int]]:
    """The same with one context per step."""
    choose, update, expected = agent.choose, agent.update, case.expected
    assert case.contexts is not None
    contexts = [agent.context(x) for x in case.contexts]
    played: list[int] = []
    begin = now = perf_counter()
    for at in range(0, len(coins), CHUNK):
        for step in range(at, min(at + CHUNK, len(coins))):
            x = contexts[step]
            arm = choose(x)
            update(arm, 1 if coins[step] < expected[step][arm] else 0, x)
            played.append(arm)
        now = perf_counter()
        if now - begin > limit:
            break
    return now - begin, played


def memory(contestant: Library, *, n_arms: int) -> dict[str, Any]:
    algorithm = next(iter(contestant.offers))
    _decide(contestant, algorithm, 10)  # whatever the library loads late is in memory now
    before = resident()
    kept = _decide(contestant, algorithm, n_arms)
    grown = resident() - before
    return {"algorithm": algorithm, "bytes": grown / n_arms, "kept": len(kept)}


def _decide(contestant: Library, algorithm: str, n_arms: int) -> list[Any]:
    dim = 5 if algorithm.startswith("Lin") else None
    labels = np.arange(n_arms) // max(1, round(n_arms**0.5))
    agent = contestant.offers[algorithm].make(Setting(n_arms, dim, labels, 0))
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
