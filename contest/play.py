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
    offers: Callable[[World], list[Offer]], *, offer: list[str], world: str, seed: int, at_most: float, n_probes: int
) -> dict[str, Any]:
    """Play one world; one that takes longer than ``at_most`` seconds is stopped.

    Returns the regret, the seconds spent choosing and learning, the round reached if it was stopped, and with
    ``n_probes`` the verdict on the stated probabilities and the seconds of a decision.
    """
    played = World.load(Path(world))
    chosen = next((one for one in offers(played) if [one.label, one.note] == offer), None)
    if chosen is None:
        raise LookupError(f"it offers no {offer[0]} in the world of seed {seed}")
    agent = chosen.make(played, seed)
    regret, seconds, reached = _played(played, agent, at_most)
    answer: dict[str, Any] = {"regret": regret, "seconds": seconds, "reached": reached}
    if n_probes and reached is None:
        verdict, stating = probed(agent, played.context(played.horizon // 2), n_probes, limit=5.0)
        answer |= {"probability": verdict, "stating": stating}
    return answer


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
