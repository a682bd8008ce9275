"""Vowpal Wabbit: predict a distribution over the arms, draw one, learn its cost. It has neither TS nor UCB of its own;
what stands nearest is SquareCB, on arms as one-hot features crossed with the context.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants.agent import Agent, Offer, Setting

PACKAGE = "vowpalwabbit"
REQUIRES = ("vowpalwabbit", "numpy")
IMPORT = "import vowpalwabbit"
FIRST = """
import vowpalwabbit
vw = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
arms = [f"|A a{i}" for i in range(100)]
p = vw.predict(arms)
vw.learn([f"0:-1:{p[0]} |A a0", *arms[1:]])
"""


def _squarecb(setting: Setting) -> Agent:
    import vowpalwabbit

    crossed = " -q CA" if setting.dim else ""
    vw = vowpalwabbit.Workspace(f"--cb_explore_adf --squarecb --quiet --random_seed {setting.seed}{crossed}")
    lines = [f"|A a{arm}" for arm in setting.arms]
    rng = random.Random(setting.seed)
    probability = [0.0]  # of the arm last drawn, which learning needs

    def choose(*shared: str) -> int:
        chances = vw.predict([*shared, *lines])
        arm = rng.choices(range(len(chances)), chances)[0]
        probability[0] = chances[arm]
        return arm

    def update(arm: int, reward: float, *shared: str) -> None:
        played = f"0:{-reward}:{probability[0]} {lines[arm]}"
        vw.learn([*shared, *lines[:arm], played, *lines[arm + 1 :]])

    return Agent(choose, update, context=_shared)


def _shared(x: NDArray[np.float64]) -> Any:
    return "shared |C " + " ".join(f"x{i}:{value:.6f}" for i, value in enumerate(x))


OFFERS = {
    "TS": Offer("--cb_explore_adf --squarecb, in place of TS", _squarecb),
    "LinTS": Offer("--cb_explore_adf --squarecb -q CA, in place of LinTS", _squarecb),
}
