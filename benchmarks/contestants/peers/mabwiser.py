"""MABWiser: fit once, then predict and partial_fit. It needs a first fit, which gets one failure of arm 0."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contestants.agent import Agent, C, Offer, Setting, V

PACKAGE = "mabwiser"
REQUIRES = ("mabwiser", "numpy")
IMPORT = "from mabwiser.mab import MAB, LearningPolicy"
FIRST = """
from mabwiser.mab import MAB, LearningPolicy
mab = MAB(list(range(100)), LearningPolicy.ThompsonSampling(), seed=0)
mab.fit([0], [0])
mab.partial_fit([mab.predict()], [1])
"""


def _flat(setting: Setting, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]

    mab = MAB(setting.arms, getattr(LearningPolicy, policy)(**settings), seed=setting.seed)
    mab.fit([0], [0])
    # UCB1's index of an arm never seen is 0 there, so it plays each arm once before it is asked.
    untried = setting.arms if policy == "UCB1" else []

    def choose() -> int:
        return untried.pop() if untried else int(mab.predict())

    return Agent(choose, lambda arm, reward: mab.partial_fit([arm], [reward]))


def _linear(setting: Setting, *, policy: str, alpha: float) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(setting.arms, getattr(LearningPolicy, policy)(alpha=alpha), seed=setting.seed)
    mab.fit([0], [0], np.zeros((1, setting.dim or 1)))

    def update(arm: int, reward: float, x: Any) -> None:
        mab.partial_fit([arm], [reward], x)

    return Agent(mab.predict, update, context=lambda x: x[None])


OFFERS = {
    "TS": Offer("ThompsonSampling()", partial(_flat, policy="ThompsonSampling")),
    "UCB1": Offer("UCB1(alpha=1), each arm once first", partial(_flat, policy="UCB1", alpha=1)),
    "LinTS": Offer(f"LinTS(alpha={math.sqrt(V):g})", partial(_linear, policy="LinTS", alpha=math.sqrt(V))),
    "LinUCB": Offer(f"LinUCB(alpha={C:g})", partial(_linear, policy="LinUCB", alpha=C)),
}
