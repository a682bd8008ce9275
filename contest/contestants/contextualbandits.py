"""contextualbandits: predict and partial_fit of one row. It has no bandits without contexts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer, noise_of, unlike_default
from contest.world import Floats, World

PACKAGE = "contextualbandits"
REQUIRES = ("contextualbandits", "numpy")


def offers(world: World) -> list[Offer]:
    if not world.dim:
        return []
    told = Offer(
        "contextualbandits LinTS", partial(_agent, policy="LinTS", v_sq=noise_of(world) ** 2), "told the noise"
    )
    return [
        Offer("contextualbandits LinUCB", partial(_agent, policy="LinUCB"), "default"),
        Offer("contextualbandits LinUCB", partial(_agent, policy="LinUCB", alpha=0.1), "alpha=0.1, as in its examples"),
        Offer("contextualbandits LinTS", partial(_agent, policy="LinTS"), "default"),
        *unlike_default(told, world),
    ]


def _agent(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from contextualbandits import online  # type: ignore[import-not-found]

    built = getattr(online, policy)(nchoices=world.n_arms, random_state=seed + 1, **settings)
    built.partial_fit(np.zeros((1, world.dim)), np.zeros(1, int), np.zeros(1))  # it wants to know the length

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.partial_fit(x[None], np.array([arm]), np.array([reward], float))

    return Agent(lambda x: (int(built.predict(x[None])[0]), None), learn)
