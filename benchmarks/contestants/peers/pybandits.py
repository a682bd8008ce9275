"""PyBandits: predict and update of batches, here of one. Its contextual bandit fits one Bayesian network per arm by
variational inference at every update, which is another algorithm than ours, so it is not in the linear cases.
"""

from __future__ import annotations

from benchmarks.contestants.agent import Agent, Offer, Setting

PACKAGE = "pybandits"
REQUIRES = ("pybandits", "numpy")
IMPORT = "from pybandits.smab import SmabBernoulli"
FIRST = """
from pybandits.smab import SmabBernoulli
mab = SmabBernoulli.cold_start(action_ids={f"a{i}" for i in range(100)})
chosen = mab.predict(n_samples=1)[0]
mab.update(actions=chosen, rewards=[1])
"""


def _ts(setting: Setting) -> Agent:
    from pybandits.smab import SmabBernoulli  # type: ignore[import-not-found]

    names = [f"a{arm}" for arm in setting.arms]
    number = {name: arm for arm, name in enumerate(names)}
    mab = SmabBernoulli.cold_start(action_ids=set(names))

    def update(arm: int, reward: float) -> None:
        mab.update(actions=[names[arm]], rewards=[int(reward)])

    return Agent(lambda: number[mab.predict(n_samples=1)[0][0]], update)


OFFERS = {"TS": Offer("SmabBernoulli.cold_start()", _ts)}
