"""The libraries one could pick instead, each by its own documented calls, with equal settings where it has them.

Every function imports its library itself, so that any Python can read this file.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants import Agent, C, Library, Offer, Setting, V

# ---------------------------------------------------------------- mabwiser
# MABWiser: fit once, then predict and partial_fit. It needs a first fit, which gets one failure of arm 0.


def _mabwiser_flat(setting: Setting, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]

    mab = MAB(setting.arms, getattr(LearningPolicy, policy)(**settings), seed=setting.seed)
    mab.fit([0], [0])
    # UCB1's index of an arm never seen is 0 there, so it plays each arm once before it is asked.
    untried = setting.arms if policy == "UCB1" else []

    def choose() -> int:
        return untried.pop() if untried else int(mab.predict())

    return Agent(choose, lambda arm, reward: mab.partial_fit([arm], [reward]))


def _mabwiser_linear(setting: Setting, *, policy: str, alpha: float) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(setting.arms, getattr(LearningPolicy, policy)(alpha=alpha), seed=setting.seed)
    mab.fit([0], [0], np.zeros((1, setting.dim or 1)))

    def update(arm: int, reward: float, x: Any) -> None:
        mab.partial_fit([arm], [reward], x)

    return Agent(mab.predict, update, context=lambda x: x[None])


mabwiser = Library(
    imports="from mabwiser.mab import MAB, LearningPolicy",
    first="""
from mabwiser.mab import MAB, LearningPolicy
mab = MAB(list(range(100)), LearningPolicy.ThompsonSampling(), seed=0)
mab.fit([0], [0])
mab.partial_fit([mab.predict()], [1])
""",
    offers={
        "TS": Offer("ThompsonSampling()", partial(_mabwiser_flat, policy="ThompsonSampling")),
        "UCB1": Offer("UCB1(alpha=1), each arm once first", partial(_mabwiser_flat, policy="UCB1", alpha=1)),
        "LinTS": Offer(f"LinTS(alpha={math.sqrt(V):g})", partial(_mabwiser_linear, policy="LinTS", alpha=math.sqrt(V))),
        "LinUCB": Offer(f"LinUCB(alpha={C:g})", partial(_mabwiser_linear, policy="LinUCB", alpha=C)),
    },
)


# ---------------------------------------------------------------- river
# River: pull and update.


def _river_ts(setting: Setting) -> Agent:
    from river import bandit, proba

    policy: Any = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=setting.seed)
    arms = setting.arms
    return Agent(lambda: int(policy.pull(arms)), lambda arm, reward: policy.update(arm, bool(reward)))


def _river_ucb(setting: Setting) -> Agent:
    from river import bandit

    policy: Any = bandit.UCB(delta=1, seed=setting.seed)
    arms = setting.arms
    return Agent(lambda: int(policy.pull(arms)), policy.update)


def _river_linucb(setting: Setting) -> Agent:
    from river import bandit

    policy: Any = bandit.LinUCBDisjoint(alpha=C, seed=setting.seed)
    arms = setting.arms

    def update(arm: int, reward: float, x: Any) -> None:
        policy.update(arm, x, reward)

    return Agent(lambda x: int(policy.pull(arms, context=x)), update, context=_river_features)


def _river_features(x: NDArray[np.float64]) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


river = Library(
    imports="from river import bandit",
    first="""
from river import bandit, proba
policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=0)
policy.update(policy.pull(range(100)), True)
""",
    offers={
        "TS": Offer("ThompsonSampling(proba.Beta())", _river_ts),
        "UCB1": Offer("UCB(delta=1)", _river_ucb),
        "LinUCB": Offer(f"LinUCBDisjoint(alpha={C:g})", _river_linucb),
    },
)


# ---------------------------------------------------------------- contextualbandits
# contextualbandits: predict and partial_fit of batches, here of one row. It has no bandits without contexts.


def _contextual_linear(setting: Setting, *, policy: str, **settings: Any) -> Agent:
    from contextualbandits import online  # type: ignore[import-not-found]

    built = getattr(online, policy)(
        nchoices=setting.n_arms, fit_intercept=False, random_state=setting.seed + 1, **settings
    )
    built.partial_fit(np.zeros((1, setting.dim or 1)), np.zeros(1, int), np.zeros(1))  # it wants to know the length

    def update(arm: int, reward: float, x: Any) -> None:
        built.partial_fit(x, np.array([arm]), np.array([reward], float))

    return Agent(lambda x: int(built.predict(x)[0]), update, context=lambda x: x[None])


contextualbandits = Library(
    imports="from contextualbandits.online import LinTS, LinUCB",
    first="""
import numpy as np
from contextualbandits.online import LinTS
policy = LinTS(nchoices=100, random_state=1)
x = np.ones((1, 5))
policy.partial_fit(x, policy.predict(x), np.ones(1))
""",
    offers={
        "LinTS": Offer(f"LinTS(v_sq={V:g})", partial(_contextual_linear, policy="LinTS", v_sq=V)),
        "LinUCB": Offer(f"LinUCB(alpha={C:g})", partial(_contextual_linear, policy="LinUCB", alpha=C)),
    },
)


# ---------------------------------------------------------------- coba
# Coba: predict and learn. Its linear learners are one model over features of arms, so arms are given one-hot.


def _coba_ucb(setting: Setting) -> Agent:
    from coba.learners import BanditUCBLearner

    learner, arms = BanditUCBLearner(seed=setting.seed + 1), setting.arms
    return Agent(lambda: int(learner.predict(None, arms)[0]), lambda arm, reward: learner.learn(None, arm, reward, 1))


def _coba_linear(setting: Setting, *, learner: str, **settings: Any) -> Agent:
    from coba import learners

    built = getattr(learners, learner)(features=["ax"], seed=setting.seed + 1, **settings)
    arms = [tuple(int(i == arm) for i in range(setting.n_arms)) for arm in range(setting.n_arms)]

    def choose(x: Any) -> int:
        action: tuple[int, ...] = built.predict(x, arms)[0]
        return action.index(1)

    def update(arm: int, reward: float, x: Any) -> None:
        built.learn(x, arms[arm], reward, 1)

    return Agent(choose, update, context=lambda x: x.tolist())


coba = Library(
    imports="from coba.learners import BanditUCBLearner",
    first="""
from coba.learners import BanditUCBLearner
learner, arms = BanditUCBLearner(seed=0), list(range(100))
arm, probability = learner.predict(None, arms)[:2]
learner.learn(None, arm, 1, probability)
""",
    offers={
        "UCB1": Offer("BanditUCBLearner() (UCB1-Tuned)", _coba_ucb),
        "LinTS": Offer(f"LinTSLearner(v={V:g}), arms one-hot", partial(_coba_linear, learner="LinTSLearner", v=V)),
        "LinUCB": Offer(
            f"LinUCBLearner(alpha={C:g}), arms one-hot", partial(_coba_linear, learner="LinUCBLearner", alpha=C)
        ),
    },
)


# ---------------------------------------------------------------- bayesianbandits
# bayesianbandits: pull and update. Its documentation advises one shared estimator where there are many arms: it tells
# them apart by a column of their numbers, or by a block of columns each. One estimator per arm is 6 to 30 times
# slower.


def _bayesian_ts(setting: Setting) -> Agent:
    import bayesianbandits as bb  # type: ignore[import-not-found]

    agent = bb.LipschitzContextualAgent(
        arms=[bb.Arm(arm, _bayesian_success, learner=None) for arm in setting.arms],
        policy=bb.ThompsonSampling(),
        arm_featurizer=bb.FunctionArmFeaturizer(_bayesian_number),
        learner=bb.DirichletClassifier({0: 1.0, 1: 1.0}),
        random_seed=setting.seed,
    )
    nothing = np.ones((1, 1))

    def update(arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(nothing, np.array([reward]))

    return Agent(lambda: int(agent.pull(nothing)[0]), update)


def _bayesian_success(samples: Any) -> Any:
    """The probability of class 1."""
    return samples[..., 1]


def _bayesian_number(x: Any, tokens: Sequence[int]) -> Any:
    """The arms' numbers: (contexts, 1, arms)."""
    return np.broadcast_to(np.array(tokens, float), (len(x), 1, len(tokens)))


def _bayesian_lints(setting: Setting) -> Agent:
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


bayesianbandits = Library(
    imports="from bayesianbandits import Agent, Arm",
    first="""
import numpy as np
from bayesianbandits import Agent, Arm, DirichletClassifier, ThompsonSampling
arms = [Arm(i, lambda p: p[..., 1], learner=DirichletClassifier({0: 1.0, 1: 1.0})) for i in range(100)]
agent = Agent(arms, ThompsonSampling(), random_seed=0)
agent.select_for_update(agent.pull()[0]).update(np.array([1]))
""",
    offers={
        "TS": Offer("one DirichletClassifier, ThompsonSampling()", _bayesian_ts),
        "LinTS": Offer("one sparse NormalRegressor, ThompsonSampling()", _bayesian_lints),
    },
)


# ---------------------------------------------------------------- vowpalwabbit
# Vowpal Wabbit: predict a distribution over the arms, draw one, learn its cost. It has neither TS nor UCB of its own;
# what stands nearest is SquareCB, on arms as one-hot features crossed with the context.


def _vw_squarecb(setting: Setting) -> Agent:
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

    return Agent(choose, update, context=_vw_shared)


def _vw_shared(x: NDArray[np.float64]) -> Any:
    return "shared |C " + " ".join(f"x{i}:{value:.6f}" for i, value in enumerate(x))


vowpalwabbit = Library(
    imports="import vowpalwabbit",
    first="""
import vowpalwabbit
vw = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
arms = [f"|A a{i}" for i in range(100)]
p = vw.predict(arms)
vw.learn([f"0:-1:{p[0]} |A a0", *arms[1:]])
""",
    offers={
        "TS": Offer("--cb_explore_adf --squarecb, in place of TS", _vw_squarecb),
        "LinTS": Offer("--cb_explore_adf --squarecb -q CA, in place of LinTS", _vw_squarecb),
    },
)


# ---------------------------------------------------------------- pybandits
# PyBandits: predict and update of batches, here of one. Its contextual bandit fits one Bayesian network per arm by
# variational inference at every update, which is another algorithm than ours, so it is not in the linear cases.


def _pybandits_ts(setting: Setting) -> Agent:
    from pybandits.smab import SmabBernoulli  # type: ignore[import-not-found]

    names = [f"a{arm}" for arm in setting.arms]
    number = {name: arm for arm, name in enumerate(names)}
    mab = SmabBernoulli.cold_start(action_ids=set(names))

    def update(arm: int, reward: float) -> None:
        mab.update(actions=[names[arm]], rewards=[int(reward)])

    return Agent(lambda: number[mab.predict(n_samples=1)[0][0]], update)


pybandits = Library(
    imports="from pybandits.smab import SmabBernoulli",
    first="""
from pybandits.smab import SmabBernoulli
mab = SmabBernoulli.cold_start(action_ids={f"a{i}" for i in range(100)})
chosen = mab.predict(n_samples=1)[0]
mab.update(actions=chosen, rewards=[1])
""",
    offers={"TS": Offer("SmabBernoulli.cold_start()", _pybandits_ts)},
)
