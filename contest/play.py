"""Play: one offer of one contestant on the worlds of one environment. Runs in the contestant's own process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import comb
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer
from contest.worlds import World

RIGHT, WRONG, NONE = "right", "wrong", "none"
WIDEST = 4.5  # standard errors that a share may be away from a probability that is right
SEVERAL = 5  # times that an arm is expected, for its share to be tested on its own


def play(
    offers: Callable[[World], list[Offer]],
    *,
    offer: int,
    worlds: list[str],
    allowance: float,
    at_least: int,
    patience_of_world: float,
    n_probes: int,
) -> dict[str, Any]:
    """Play one world after the other until the allowance is used up, the first ``at_least`` in any case.

    A world that takes longer than ``patience_of_world`` seconds is stopped.

    Returns the regret of each world played to its end, the seconds of a world, the verdict on the stated probabilities,
    and for a contestant that was stopped the round that it had reached.
    """
    regrets: list[float] = []
    seconds: list[float] = []
    verdict, reached, stating = NONE, None, 0.0
    for seed, path in enumerate(worlds):
        if seed >= at_least and sum(seconds) + float(np.mean(seconds)) > allowance:
            break
        world = World.load(Path(path))
        chosen = offers(world)[offer]
        agent = chosen.make(world, seed)
        regret, spent, reached = _played(world, agent, patience_of_world)
        if reached is not None:
            break
        regrets.append(regret)
        seconds.append(spent)
        if seed == 0:
            verdict, stating = probed(agent, world.context(world.horizon // 2), n_probes, limit=min(allowance, 5.0))
    answer = {"regrets": regrets, "seconds": seconds, "probability": verdict, "reached": reached}
    return {**answer, "stating": stating}


def _played(world: World, agent: Agent, patience: float) -> tuple[float, float, int | None]:
    """The regret, the seconds of choosing and learning, and the round reached if it was stopped.

    It is stopped when it takes longer than ``patience``, or soon if it clearly would.
    """
    regret = spent = 0.0
    for t in range(world.horizon):
        x, means = world.context(t), world.means(t)
        before = process_time()
        arm, probability = agent.choose(x)
        spent += process_time() - before
        reward = world.reward(t, float(means[arm]))
        before = process_time()
        agent.learn(x, arm, reward, probability)
        spent += process_time() - before
        regret += float(means.max() - means[arm])
        if spent > patience or (spent > patience / 20 and spent / (t + 1) * world.horizon > 1.5 * patience):
            return regret, spent, t + 1
    return regret, spent, None


def probed(agent: Agent, x: Any, n_probes: int, limit: float) -> tuple[str, float]:
    """Decide again and again without learning: are arms chosen as often as the stated probabilities say?

    Returns the verdict, and the seconds of a decision.
    """
    decide = agent.decide or agent.choose
    counts: Counter[int] = Counter()
    stated: dict[int, float] = {}
    before, n = process_time(), 0
    while n < n_probes and process_time() - before < limit:
        arm, probability = decide(x)
        if probability is None:
            return NONE, 0.0
        counts[arm] += 1
        stated[arm] = probability
        n += 1
    return (RIGHT if are_right(counts, stated) else WRONG), (process_time() - before) / n


def are_right(counts: Mapping[int, int], stated: Mapping[int, float]) -> bool:
    """Say whether shares agree with probabilities; of the arms that were chosen, how often and with which probability.

    The probabilities of different arms cannot sum to more than 1. The share of an arm that is expected several times is
    within `WIDEST` standard errors of its probability, and so is that of all other arms together. An arm that is
    expected less often cannot come as often as only one arm in 100,000 would.
    """
    n = sum(counts.values())
    common = {arm: p for arm, p in stated.items() if n * p >= SEVERAL}
    rest = max(0.0, 1 - sum(common.values()))
    shares = [(counts[arm], p) for arm, p in common.items()]
    shares.append((sum(count for arm, count in counts.items() if arm not in common), rest))
    return (
        sum(stated.values()) < 1 + 1e-3
        and all(abs(count - n * p) <= WIDEST * np.sqrt(n * p * (1 - p)) + 0.5 for count, p in shares)
        and all(comb(n, counts[arm]) * p ** (counts[arm] - 1) > 1e-5 for arm, p in stated.items() if arm not in common)
    )
