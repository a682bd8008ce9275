"""River: pull and update."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants.agent import Agent, C, Offer, Setting

PACKAGE = "river"
REQUIRES = ("river", "numpy")
IMPORT = "from river import bandit"
FIRST = """
from river import bandit, proba
policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=0)
policy.update(policy.pull(range(100)), True)
"""


def _ts(setting: Setting) -> Agent:
    from river import bandit, proba

    policy: Any = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=setting.seed)
    arms = setting.arms
    return Agent(lambda: int(policy.pull(arms)), lambda arm, reward: policy.update(arm, bool(reward)))


def _ucb(setting: Setting) -> Agent:
    from river import bandit

    policy: Any = bandit.UCB(delta=1, seed=setting.seed)
    arms = setting.arms
    return Agent(lambda: int(policy.pull(arms)), policy.update)


def _linucb(setting: Setting) -> Agent:
    from river import bandit

    policy: Any = bandit.LinUCBDisjoint(alpha=C, seed=setting.seed)
    arms = setting.arms

    def update(arm: int, reward: float, x: Any) -> None:
        policy.update(arm, x, reward)

    return Agent(lambda x: int(policy.pull(arms, context=x)), update, context=_features)


def _features(x: NDArray[np.float64]) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


OFFERS = {
    "TS": Offer("ThompsonSampling(proba.Beta())", _ts),
    "UCB1": Offer("UCB(delta=1)", _ucb),
    "LinUCB": Offer(f"LinUCBDisjoint(alpha={C:g})", _linucb),
}
