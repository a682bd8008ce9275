"""bayesianbandits: an agent of arms, each with its own estimator; pull and update."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.agent import Agent, Offer, Setting, V

PACKAGE = "bayesianbandits"
REQUIRES = ("bayesianbandits", "numpy")
IMPORT = "from bayesianbandits import Agent, Arm"
FIRST = """
import numpy as np
from bayesianbandits import Agent, Arm, DirichletClassifier, ThompsonSampling
arms = [Arm(i, lambda p: p[..., 1], learner=DirichletClassifier({0: 1.0, 1: 1.0})) for i in range(100)]
agent = Agent(arms, ThompsonSampling(), random_seed=0)
agent.select_for_update(agent.pull()[0]).update(np.array([1]))
"""


def _chance(samples: Any) -> Any:
    """The probability of a success, class 1."""
    return samples[..., 1]


def _ts(setting: Setting) -> Agent:
    import bayesianbandits as bb  # type: ignore[import-not-found]

    arms = [bb.Arm(arm, _chance, learner=bb.DirichletClassifier({0: 1.0, 1: 1.0})) for arm in setting.arms]
    agent = bb.Agent(arms, bb.ThompsonSampling(), random_seed=setting.seed)

    def update(arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(np.array([reward]))

    return Agent(lambda: int(agent.pull()[0]), update)


def _lints(setting: Setting) -> Agent:
    import bayesianbandits as bb

    # Noise precision beta = 1/V and prior precision alpha = 1/V give theta the covariance V B^-1, B starting at 1.
    arms = [bb.Arm(arm, learner=bb.NormalRegressor(alpha=1 / V, beta=1 / V)) for arm in setting.arms]
    agent = bb.ContextualAgent(arms, bb.ThompsonSampling(), random_seed=setting.seed)

    def update(arm: int, reward: float, x: Any) -> None:
        agent.select_for_update(arm).update(x, np.array([reward], float))

    return Agent(lambda x: int(agent.pull(x)[0]), update, context=lambda x: x[None])


OFFERS = {
    "TS": Offer("Agent of DirichletClassifier arms, ThompsonSampling()", _ts),
    "LinTS": Offer("ContextualAgent of NormalRegressor arms, ThompsonSampling()", _lints),
}
