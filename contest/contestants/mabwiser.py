"""MABWiser: predict and partial_fit. It needs a first fit, which gets one failure of arm 0."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer, noise_of, unlike_default
from contest.world import Floats, World

PACKAGE = "mabwiser"
REQUIRES = ("mabwiser", "numpy")


def offers(world: World) -> list[Offer]:
    if not world.dim:
        return [
            Offer("MABWiser TS", partial(_flat, policy="ThompsonSampling"), "default"),
            Offer("MABWiser UCB1", partial(_flat, policy="UCB1", alpha=1), "default, each arm once first"),
            Offer("MABWiser UCB1", partial(_flat, policy="UCB1", alpha=0.1), "alpha=0.1, told the noise"),
        ]
    offered = []
    for policy in ("LinTS", "LinUCB"):
        told = Offer(f"MABWiser {policy}", partial(_linear, policy=policy, alpha=noise_of(world)), "told the noise")
        offered += [
            Offer(f"MABWiser {policy}", partial(_linear, policy=policy), "default"),
            *unlike_default(told, world),
        ]
    return offered


def _flat(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]

    mab = MAB(list(range(world.n_arms)), getattr(LearningPolicy, policy)(**settings), seed=seed)
    mab.fit([0], [0])
    untried = list(range(world.n_arms)) if policy == "UCB1" else []  # its index of an arm never seen is 0

    def choose(x: Floats) -> tuple[int, None]:
        return (untried.pop() if untried else int(mab.predict())), None

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        mab.partial_fit([arm], [reward])

    return Agent(choose, learn)


def _linear(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(list(range(world.n_arms)), getattr(LearningPolicy, policy)(**settings), seed=seed)
    mab.fit([0], [0], np.zeros((1, 1 + world.dim)))

    def seen(x: Floats) -> Floats:
        return np.concatenate([[1.0], x])[None]

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        mab.partial_fit([arm], [reward], seen(x))

    return Agent(lambda x: (int(mab.predict(seen(x))), None), learn)
