"""Coba: predict and learn. Its linear learners are one model over features of arms, so arms are given one-hot."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.contestants.agent import Agent, C, Offer, Setting, V

PACKAGE = "coba"
REQUIRES = ("coba", "numpy")
IMPORT = "from coba.learners import BanditUCBLearner"
FIRST = """
from coba.learners import BanditUCBLearner
learner, arms = BanditUCBLearner(seed=0), list(range(100))
arm, probability = learner.predict(None, arms)[:2]
learner.learn(None, arm, 1, probability)
"""


def _ucb(setting: Setting) -> Agent:
    from coba.learners import BanditUCBLearner

    learner, arms = BanditUCBLearner(seed=setting.seed + 1), setting.arms
    return Agent(lambda: int(learner.predict(None, arms)[0]), lambda arm, reward: learner.learn(None, arm, reward, 1))


def _linear(setting: Setting, *, learner: str, **settings: Any) -> Agent:
    from coba import learners

    built = getattr(learners, learner)(features=["ax"], seed=setting.seed + 1, **settings)
    arms = [tuple(int(i == arm) for i in range(setting.n_arms)) for arm in range(setting.n_arms)]

    def choose(x: Any) -> int:
        action: tuple[int, ...] = built.predict(x, arms)[0]
        return action.index(1)

    def update(arm: int, reward: float, x: Any) -> None:
        built.learn(x, arms[arm], reward, 1)

    return Agent(choose, update, context=lambda x: x.tolist())


OFFERS = {
    "UCB1": Offer("BanditUCBLearner() (UCB1-Tuned)", _ucb),
    "LinTS": Offer(f"LinTSLearner(v={V:g}), arms one-hot", partial(_linear, learner="LinTSLearner", v=V)),
    "LinUCB": Offer(f"LinUCBLearner(alpha={C:g}), arms one-hot", partial(_linear, learner="LinUCBLearner", alpha=C)),
}
