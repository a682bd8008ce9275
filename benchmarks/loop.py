"""The loop that is timed: choose, play, update, the same for every contestant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants.agent import Agent

CHUNK = 10  # steps between two looks at the clock


@dataclass(frozen=True)
class Case:
    """A problem on disk: expected rewards, and what chance will bring. The same for every contestant."""

    labels: NDArray[np.int64]  # (arms,)
    expected: list[list[float]]  # (1, arms) means, or (steps, arms) theta.x
    best: list[float]  # (1,) or (steps,)
    contexts: NDArray[np.float64] | None  # (steps, dim)
    coins: NDArray[np.float64]  # (rounds, steps) a reward is 1 where the coin is below the expected reward

    @classmethod
    def read(cls, path: Path) -> Case:
        with np.load(path) as arrays:
            contexts = arrays["contexts"] if "contexts" in arrays else None
            expected = arrays["means"][None] if contexts is None else contexts @ arrays["theta"].T
            return cls(arrays["labels"], expected.tolist(), expected.max(axis=1).tolist(), contexts, arrays["coins"])

    def regret(self, played: list[int]) -> float:
        """Expected regret of the arms played."""
        if self.contexts is None:
            return sum(self.best[0] - self.expected[0][arm] for arm in played)
        return sum(self.best[step] - self.expected[step][arm] for step, arm in enumerate(played))


def run(agent: Agent, case: Case, round_: int, limit: float) -> dict[str, Any]:
    """Steps until the case's horizon, or until ``limit`` seconds are over."""
    coins = case.coins[round_].tolist()
    steps = flat(agent, case, coins, limit) if case.contexts is None else contextual(agent, case, coins, limit)
    seconds, played = steps
    return {"seconds": seconds, "steps": len(played), "regret": case.regret(played)}


def flat(agent: Agent, case: Case, coins: list[float], limit: float) -> tuple[float, list[int]]:
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
