"""Jobs of any contestant, inside its worker: the loop that is timed, and the memory of many arms."""

from __future__ import annotations

import resource
import sys
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contestants import Agent, Library, Setting
from benchmarks.problems import Case

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
