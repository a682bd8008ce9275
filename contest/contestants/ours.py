"""banditree: the tree is the world's; LinATS and ATS have nothing to set."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer, has_groups, in_unit_interval, noise_of, unlike_default
from contest.world import Floats, World

PACKAGE = "banditree"
REQUIRES: tuple[str, ...] = ()


def offers(world: World) -> list[Offer]:
    import banditree as bt

    if not world.dim:
        return [Offer(name, partial(_agent, policy=getattr(bt, name)), "default") for name in ("ATS", "TSC", "TS")]
    without: dict[str, Any] = {} if in_unit_interval(world) else {"prior": bt.Gaussian()}
    offered = [
        Offer("LinATS", partial(_agent, policy=bt.LinATS, dim=world.dim), "default"),
        Offer("ATS", partial(_agent, policy=bt.ATS, **without), "ignores contexts"),
    ]
    for name in ("LinTSC", "LinTS") if has_groups(world) else ("LinTS",):
        build = partial(_agent, policy=getattr(bt, name), constant=True, dim=world.dim + 1)
        told = Offer(name, partial(build, v=noise_of(world) ** 2), "told the noise")
        offered += [Offer(name, build, "v=1"), *unlike_default(told, world)]
    return offered


def _agent(world: World, seed: int, *, policy: Any, constant: bool = False, **settings: Any) -> Agent:
    import banditree as bt

    built = policy(_tree(bt, world), rng=seed, **settings)

    def seen(x: Floats) -> Any:
        return None if built.dim is None else np.concatenate([[1.0], x]) if constant else x

    def choose(x: Floats) -> tuple[int, None]:
        return int(built.choose(seen(x))), None

    def decide(x: Floats) -> tuple[int, float]:
        decision = built.decide(seen(x))
        return int(decision.arm), decision.propensity

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.update(arm, reward, context=seen(x))

    return Agent(choose, learn, decide)


def _tree(bt: Any, world: World) -> Any:
    """The tree of the world's clusters; those that hold all arms say nothing and are left out."""
    levels = [level for level in world.paths.T if len(set(level.tolist())) > 1]
    paths = zip(*levels, strict=True) if levels else [()] * world.n_arms
    return bt.Tree.from_paths([(*map(int, path), arm) for arm, path in enumerate(paths)])
