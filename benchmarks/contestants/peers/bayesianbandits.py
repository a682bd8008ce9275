"""bayesianbandits: pull and update. Its documentation advises one shared estimator where there are many arms: it tells
them apart by a column of their numbers, or by a block of columns each. One estimator per arm is 6 to 30 times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _ts(setting: Setting) -> Agent:
    import bayesianbandits as bb  # type: ignore[import-not-found]

    agent = bb.LipschitzContextualAgent(
        arms=[bb.Arm(arm, _success, learner=None) for arm in setting.arms],
        policy=bb.ThompsonSampling(),
        arm_featurizer=bb.FunctionArmFeaturizer(_number),
        learner=bb.DirichletClassifier({0: 1.0, 1: 1.0}),
        random_seed=setting.seed,
    )
    nothing = np.ones((1, 1))

    def update(arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(nothing, np.array([reward]))

    return Agent(lambda: int(agent.pull(nothing)[0]), update)


def _success(samples: Any) -> Any:
    """The probability of class 1."""
    return samples[..., 1]


def _number(x: Any, tokens: Sequence[int]) -> Any:
    """The arms' numbers: (contexts, 1, arms)."""
    return np.broadcast_to(np.array(tokens, float), (len(x), 1, len(tokens)))


def _lints(setting: Setting) -> Agent:
    import bayesianbandits as bb
    from scipy import sparse

    class Blocks(bb.ArmFeaturizer):  # type: ignore[misc]
        """The context in the arm's own columns: (contexts * arms, arms * dim)."""

        def transform(self, X: Any, *, action_tokens: Sequence[int]) -> Any:
            (m, dim), k = X.shape, len(action_tokens)
            rows = np.repeat(np.arange(k * m), dim)
            columns = np.repeat(np.array(action_tokens), m)[:, None] * dim + np.arange(dim)
            cells = (np.tile(X, (k, 1)).ravel(), (rows, columns.ravel()))
            return sparse.csc_array(cells, shape=(k * m, setting.n_arms * dim))

    # Noise precision beta = 1/V and prior precision alpha = 1/V give theta the covariance V B^-1, B starting at 1.
    agent = bb.LipschitzContextualAgent(
        arms=[bb.Arm(arm, learner=None) for arm in setting.arms],
        policy=bb.ThompsonSampling(),
        arm_featurizer=Blocks(),
        learner=bb.NormalRegressor(alpha=1 / V, beta=1 / V, sparse=True),
        random_seed=setting.seed,
    )

    def update(arm: int, reward: float, x: Any) -> None:
        agent.select_for_update(arm).update(x, np.array([reward], float))

    return Agent(lambda x: int(agent.pull(x)[0]), update, context=lambda x: x[None])


OFFERS = {
    "TS": Offer("one DirichletClassifier, ThompsonSampling()", _ts),
    "LinTS": Offer("one sparse NormalRegressor, ThompsonSampling()", _lints),
}
