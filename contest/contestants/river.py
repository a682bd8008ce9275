"""river: pull and update."""

from __future__ import annotations

from functools import partial
from typing import Any

from contest.contestants import Agent, Offer
from contest.world import Floats, World

PACKAGE = "river"
REQUIRES = ("river", "numpy")


def offers(world: World) -> list[Offer]:
    if world.dim:
        return [Offer("river LinUCBDisjoint", _linear, "default")]
    return [
        Offer(
            "river ThompsonSampling", partial(_flat, policy="ThompsonSampling", beta=True), "Beta, its example's choice"
        ),
        Offer("river UCB", partial(_flat, policy="UCB", delta=1), "delta=1, its example's choice"),
        Offer("river BayesUCB", partial(_flat, policy="BayesUCB"), "default"),
    ]


def _flat(world: World, seed: int, *, policy: str, beta: bool = False, **settings: Any) -> Agent:
    from river import bandit, proba

    prior = {"reward_obj": proba.Beta()} if beta else {}
    built = getattr(bandit, policy)(seed=seed, **prior, **settings)
    arms: Any = range(world.n_arms)

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.update(arm, bool(reward) if beta else reward)

    return Agent(lambda x: (int(built.pull(arms)), None), learn)


def _linear(world: World, seed: int) -> Agent:
    from river import bandit

    built: Any = bandit.LinUCBDisjoint(seed=seed)
    arms: Any = range(world.n_arms)

    def seen(x: Floats) -> dict[int, float]:
        return dict(enumerate([1.0, *x.tolist()]))

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.update(arm, seen(x), reward)

    return Agent(lambda x: (int(built.pull(arms, context=seen(x))), None), learn)
