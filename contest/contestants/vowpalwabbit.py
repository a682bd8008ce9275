"""Vowpal Wabbit: predict a distribution over the actions, draw one, learn its cost.

An action has its id and its category as features. "Crossed" adds the interactions of the context with both (-q CA -q
CG), as its tutorial on contextual bandits does: without them no action can be better in one context than in another.
"""

from __future__ import annotations

import random
from functools import partial

from contest.contestants import Agent, Offer
from contest.world import Floats, World

PACKAGE = "vowpalwabbit"
REQUIRES = ("vowpalwabbit", "numpy")
CROSSED = " -q CA -q CG"


def offers(world: World) -> list[Offer]:
    explorations = ("--squarecb", "--cover 4", "--bag 5", f"--first {max(100, 2 * world.n_arms)}", "--epsilon 0.05")
    plain = [Offer(f"VW {how}", partial(_agent, how=how), "default") for how in explorations]
    if not world.dim:
        return plain
    return plain + [Offer(f"VW {how}", partial(_agent, how=how + CROSSED), "crossed") for how in explorations]


def _agent(world: World, seed: int, *, how: str) -> Agent:
    import vowpalwabbit

    vw = vowpalwabbit.Workspace(f"--cb_explore_adf {how} --quiet --random_seed {seed + 1}")
    lines = [f"|A a{arm} |G g{label}" for arm, label in enumerate(world.labels.tolist())]
    numbers = range(world.n_arms)
    rng = random.Random(seed)

    def shared(x: Floats) -> list[str]:
        return ["shared |C " + " ".join(f"x{i}:{value:.6f}" for i, value in enumerate(x.tolist()))] if len(x) else []

    def choose(x: Floats) -> tuple[int, float]:
        chances = vw.predict([*shared(x), *lines])
        arm = rng.choices(numbers, chances)[0]
        return arm, chances[arm]

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        played = f"0:{-reward}:{probability} {lines[arm]}"
        vw.learn([*shared(x), *lines[:arm], played, *lines[arm + 1 :]])

    return Agent(choose, learn)
