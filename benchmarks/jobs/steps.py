"""The loop that is timed: choose, play, update, the same for every contestant."""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.contestants.agent import Agent, Setting
from benchmarks.jobs.case import Case

CHUNK = 10  # steps between two looks at the clock

read = lru_cache(maxsize=None)(Case.read)


def run(
    contestant: ModuleType, *, algorithm: str, case: str, seed: int, limit: float, at_least: float
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
        agent = contestant.OFFERS[algorithm].make(
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
