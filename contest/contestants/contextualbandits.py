"""contextualbandits: predict and partial_fit of one row. It has no bandits without contexts.

With updates of one row, LinTS hardly learns by its default way of sampling; sample_from="ci" is its other one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer, noise_of
from contest.world import Floats, World

PACKAGE = "contextualbandits"
REQUIRES = ("contextualbandits", "numpy")


def offers(world: World) -> list[Offer]:
    if not world.dim:
        return []
    by_interval = partial(_agent, policy="LinTS", sample_from="ci", v_sq=noise_of(world) ** 2)
    return [
        Offer("contextualbandits LinUCB", partial(_agent, policy="LinUCB"), "default"),
        Offer("contextualbandits LinUCB", partial(_agent, policy="LinUCB", alpha=0.1), "alpha=0.1, as in its examples"),
        Offer("contextualbandits LinTS", partial(_agent, policy="LinTS"), "default"),
        Offer("contextualbandits LinTS", by_interval, 'sample_from="ci", told the noise'),
    ]


def _agent(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from contextualbandits import online  # type: ignore[import-not-found]

    built = getattr(online, policy)(nchoices=world.n_arms, random_state=seed + 1, **settings)
    built.partial_fit(np.zeros((1, world.dim)), np.zeros(1, int), np.zeros(1))  # it wants to know the length

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.partial_fit(x[None], np.array([arm]), np.array([reward], float))

    return Agent(lambda x: (int(built.predict(x[None])[0]), None), learn)
