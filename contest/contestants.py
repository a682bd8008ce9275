"""Who takes part in the contest, and how: per package a function ``..._offers(world)``, and a line in ``CONTESTANTS``.

A package is imported only where it is used, so that every Python can read this file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import Contestant
from contest.worlds import World

if TYPE_CHECKING:
    from banditree.base.arrays import Floats


@dataclass(frozen=True)
class Agent:
    """``choose(x)`` returns an arm and the probability that the library states for it, None if it states none.

    ``decide`` is the same for a library that states a probability only on request.
    """

    choose: Callable[[Floats], tuple[int, float | None]]
    learn: Callable[[Floats, int, float, float | None], Any]
    decide: Callable[[Floats], tuple[int, float | None]] | None = None


@dataclass(frozen=True)
class Offer:
    """An algorithm with its settings: in the library's own words, and in code."""

    label: str
    make: Callable[[World, int], Agent]  # of a world, of which it may use what users know, and a seed
    note: str = ""  # "default", or what was set and why


def noise_of(world: World) -> float:
    """The noise that an algorithm is told, at least 0.1: none explores without any."""
    return max(world.noise, 0.1)


def in_unit_interval(world: World) -> bool:
    """Say whether all rewards are in [0, 1]."""
    table = world.table
    return world.clicks or bool(table is not None and not world.noise and table.min() >= 0 and table.max() <= 1)


def has_groups(world: World) -> bool:
    """Say whether arms have different categories."""
    return len(set(world.labels.tolist())) > 1


def unlike_default(offer: Offer, world: World) -> list[Offer]:
    """The offer that is told the noise, unless the noise is 1, for which the defaults are made."""
    return [offer] if noise_of(world) != 1 else []


# ---------------------------------------------------------------- ours
# banditree: the tree is the world's; LinATS and ATS have nothing to set.


NO_TREE, ADDED = "without its tree", "of another package"


def ours_offers(world: World) -> list[Offer]:
    import banditree as bt

    if not world.dim:
        named = [
            Offer(name, partial(_ours_agent, policy=getattr(bt, name)), "default") for name in ("ATS", "TSC", "TS")
        ]
        named.append(Offer("ATS", partial(_ours_agent, policy=bt.ATS, tree=False), NO_TREE))
        named += [Offer(name, partial(_ours_agent, policy=kind), ADDED) for name, kind in added_policies(False)]
        if has_groups(world) and (hier := vars(bt).get("HierTS")):
            named.append(Offer("HierTS", partial(_ours_agent, policy=hier), "variances learned"))
            named.append(Offer("HierTS", partial(_ours_agent, policy=hier, **spreads(world)), "told its variances"))
        return named
    without: dict[str, Any] = {} if in_unit_interval(world) else {"prior": bt.Gaussian()}
    offered = [
        Offer("LinATS", partial(_ours_agent, policy=bt.LinATS, dim=world.dim), "default"),
        Offer("ATS", partial(_ours_agent, policy=bt.ATS, **without), "ignores contexts"),
    ]
    if has_groups(world):
        offered.insert(1, Offer("LinATS", partial(_ours_agent, policy=bt.LinATS, tree=False, dim=world.dim), NO_TREE))
    for name in ("LinTSC", "LinTS") if has_groups(world) else ("LinTS",):
        build = partial(_ours_agent, policy=getattr(bt, name), constant=True, dim=world.dim + 1)
        told = Offer(name, partial(build, v=noise_of(world) ** 2), "told the noise")
        offered += [Offer(name, build, "v=1"), *unlike_default(told, world)]
    added = [(name, partial(_ours_agent, policy=kind, dim=world.dim)) for name, kind in added_policies(True)]
    return offered + [Offer(name, build, ADDED) for name, build in added]


def added_policies(takes_contexts: bool) -> list[tuple[str, Any]]:
    """The policies that packages of this Python add by an entry point."""
    from banditree.policy.algorithms import ALGORITHMS, known_policies

    known = known_policies().items()
    return [(n, kind) for n, kind in known if n not in ALGORITHMS and kind.about.takes_contexts == takes_contexts]


def spreads(world: World) -> dict[str, Any]:
    """What hierarchical Thompson sampling is told: how far clusters and the arms in them differ, and the noise."""
    means = world.means(0)
    centres = {label: means[world.labels == label].mean() for label in set(world.labels.tolist())}
    inside = means - np.array([centres[label] for label in world.labels.tolist()])
    noise = float(np.sqrt((means * (1 - means)).mean())) if world.clicks else noise_of(world)
    return {"cluster_sd": float(np.std(list(centres.values()))), "arm_sd": float(inside.std()), "noise": noise}


def _ours_agent(
    world: World, seed: int, *, policy: Any, constant: bool = False, tree: bool = True, **settings: Any
) -> Agent:
    import banditree as bt

    built = policy(_ours_tree(bt, world) if tree else bt.Tree(world.n_arms), rng=seed, **settings)

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


def _ours_tree(bt: Any, world: World) -> Any:
    """The tree of the world's clusters; those that hold all arms say nothing and are left out."""
    levels = [level for level in world.paths.T if len(set(level.tolist())) > 1]
    paths = zip(*levels, strict=True) if levels else [()] * world.n_arms
    return bt.Tree.from_paths([(*map(int, path), arm) for arm, path in enumerate(paths)])


# ---------------------------------------------------------------- mixed_effect
# Mixed-effect Thompson sampling, written from the paper: Aouali, Kveton and Katariya, AISTATS 2023. An arm's
# coefficients are a weighted sum of effects plus a deviation of its own. A round samples the effects from their
# posterior, then each arm's coefficients given the effects. The algorithm is told the weights, all covariances, the
# prior mean (0) and the noise, which a user would not know.


TOLD_ALL = "told the weights, covariances and noise"


def mixed_offers(world: World) -> list[Offer]:
    is_known = world.theta is not None and not world.clicks and "cluster_sd" in world.told
    told = Offer("meTS", _mixed_agent, TOLD_ALL)
    return (
        [
            told,
            Offer("meTS", partial(_mixed_agent, is_told=False), "clusters as effects, covariances 1, told the noise"),
        ]
        if is_known
        else []
    )


class MixedEffectTS:
    """Posterior of effects and arms, for coefficients of z = (1, x).

    Parameters
    ----------
    weights
        How much each effect counts for each arm, (arms, effects).
    effect_sd, arm_sd
        Standard deviations of the coefficients: of effects around 0, and of arms around their weighted sum, (d,).
    noise
        Standard deviation of rewards.
    """

    def __init__(self, weights: Floats, effect_sd: Floats, arm_sd: Floats, noise: float) -> None:
        n_arms, n_effects = weights.shape
        d = len(arm_sd)
        self.weights, self.noise = weights, noise
        self.own = np.diag(arm_sd**-2.0)  # precision of an arm around its effects
        self.gram = np.zeros((n_arms, d, d))  # sum of z z' / noise^2
        self.moment = np.zeros((n_arms, d))  # sum of r z / noise^2
        self.covariance = np.broadcast_to(np.diag(arm_sd**2.0), (n_arms, d, d)).copy()  # of an arm given its effects
        self.factor = np.linalg.cholesky(self.covariance)
        self.precision = np.kron(np.eye(n_effects), np.diag(effect_sd**-2.0))  # of all effects
        self.linear = np.zeros(n_effects * d)  # precision times mean

    def effects(self) -> Floats:
        """Posterior mean of the effects, (effects, d)."""
        return np.linalg.solve(self.precision, self.linear).reshape(-1, len(self.own))

    def arms(self, effects: Floats) -> Floats:
        """Mean of the arms' coefficients given the effects, (arms, d)."""
        centres = self.weights @ effects @ self.own + self.moment
        return np.asarray(np.einsum("aij,aj->ai", self.covariance, centres))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Sample the effects, then the arms' coefficients given them, (arms, d)."""
        root = np.linalg.cholesky(self.precision)
        shift = np.linalg.solve(root.T, rng.standard_normal(len(root))).reshape(-1, len(self.own))
        deviation = np.einsum("aij,aj->ai", self.factor, rng.standard_normal(self.moment.shape))
        return np.asarray(self.arms(self.effects() + shift) + deviation)

    def learn(self, arm: int, z: Floats, reward: float) -> None:
        before = self._message(arm)
        self.gram[arm] += np.outer(z, z) / self.noise**2
        self.moment[arm] += reward * z / self.noise**2
        self.covariance[arm] = np.linalg.inv(self.own + self.gram[arm])
        self.factor[arm] = np.linalg.cholesky(self.covariance[arm])
        after = self._message(arm)
        b = self.weights[arm]
        self.precision = self.precision + np.kron(np.outer(b, b), after[0] - before[0])
        self.linear = self.linear + np.kron(b, after[1] - before[1])

    def _message(self, arm: int) -> tuple[Floats, Floats]:
        """What an arm says about its effects: precision, and precision times mean."""
        gain = self.own @ self.covariance[arm]
        return self.own - gain @ self.own, gain @ self.moment[arm]


def _mixed_agent(world: World, seed: int, *, is_told: bool = True) -> Agent:
    rng, told = np.random.default_rng(seed), world.told
    labels = world.labels
    weights = np.array(told["weights"]) if is_told and "weights" in told else np.eye(int(labels.max()) + 1)[labels]
    (level, slope), (arm_level, arm_slope) = (told["cluster_sd"], told["arm_sd"]) if is_told else ((1.0, 1.0),) * 2
    effect_sd = np.array([level, *[slope] * world.dim])
    algorithm = MixedEffectTS(weights, effect_sd, np.array([arm_level, *[arm_slope] * world.dim]), world.noise)

    def choose(x: Floats) -> tuple[int, None]:
        theta = algorithm.draw(rng)
        return int(np.argmax(theta[:, 0] + theta[:, 1:] @ x)), None

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        algorithm.learn(arm, np.concatenate([[1.0], x]), reward)

    return Agent(choose, learn)


# ---------------------------------------------------------------- vowpalwabbit
# Vowpal Wabbit: predict a distribution over the actions, draw one, learn its cost. An action has its id and its
# category as features. "Crossed" adds the interactions of the context with both (-q CA -q CG), as its tutorial on
# contextual bandits does: without them no action can be better in one context than in another. Left out is --cover,
# which takes longest and was best of its explorations nowhere.


CROSSED = " -q CA -q CG"


def vw_offers(world: World) -> list[Offer]:
    how, note = (CROSSED, "crossed") if world.dim else ("", "default")
    explorations = ("--squarecb", "--bag 5", f"--first {max(100, 2 * world.n_arms)}", "--epsilon 0.05")
    return [Offer(f"VW {each}", partial(_vw_agent, how=each + how), note) for each in explorations]


def _vw_agent(world: World, seed: int, *, how: str) -> Agent:
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


# ---------------------------------------------------------------- coba
# coba's learners: predict and learn. Actions are one-hot, with their category one-hot beside it.


LARGEST = 5000  # features: its linear learners keep a matrix with this many rows and columns


def coba_offers(world: World) -> list[Offer]:
    flat = [
        Offer("coba BanditUCB", partial(_coba_agent, learner="BanditUCBLearner"), "default; ignores contexts"),
        Offer("coba BanditEpsilon", partial(_coba_agent, learner="BanditEpsilonLearner"), "default; ignores contexts"),
    ]
    if not world.dim:
        return flat
    noise = noise_of(world)
    ucb, ts = (partial(_coba_agent, learner=learner) for learner in ("LinUCBLearner", "LinTSLearner"))
    return [
        Offer("coba LinUCB", ucb, "default"),
        *unlike_default(Offer("coba LinUCB", partial(ucb, alpha=noise), "told the noise"), world),
        Offer("coba LinTS", ts, "default"),
        *unlike_default(Offer("coba LinTS", partial(ts, v=noise**2), "told the noise"), world),
        *flat,
    ]


def _coba_agent(world: World, seed: int, *, learner: str, **settings: Any) -> Agent:
    from coba import learners

    if learner.startswith("Bandit"):
        return _coba_of(world, getattr(learners, learner)(seed=seed + 1), list(range(world.n_arms)))
    n_labels = int(world.labels.max()) + 1 if has_groups(world) else 0
    size = 1 + (world.n_arms + n_labels) * (1 + world.dim)
    if size > LARGEST:
        raise ValueError(f"its one model would need a matrix of {size:,} x {size:,} numbers")
    return _coba_of(world, getattr(learners, learner)(seed=seed + 1, **settings), _coba_features(world))


def _coba_features(world: World) -> list[tuple[int, ...]]:
    """Actions: the arm one-hot, and its category one-hot."""
    n_labels = int(world.labels.max()) + 1 if has_groups(world) else 0
    return [
        (*(int(i == arm) for i in range(world.n_arms)), *(int(i == label) for i in range(n_labels)))
        for arm, label in enumerate(world.labels.tolist())
    ]


def _coba_of(world: World, learner: Any, actions: list[Any]) -> Agent:
    numbers = {action: arm for arm, action in enumerate(actions)}
    kwargs: dict[str, Any] = {}  # what a learner wants to have back with the reward

    def choose(x: Floats) -> tuple[int, float]:
        action, probability, *more = learner.predict(x.tolist() or None, actions)
        kwargs.clear()
        kwargs.update(more[0] if more else {})
        return numbers[action], probability

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        learner.learn(x.tolist() or None, actions[arm], reward, probability, **kwargs)

    return Agent(choose, learn)


# ---------------------------------------------------------------- bayesianbandits
# bayesianbandits: pull and update, with one shared estimator, as its guide advises where there are many arms.
# "Disjoint" gives every arm columns of its own. "Hybrid" is its guide's model: the context for all arms, the context
# by category, and a level for each arm.


def bayesian_offers(world: World) -> list[Offer]:
    if not world.dim:
        return [Offer("bayesianbandits Dirichlet TS", _bayesian_dirichlet, "default")]
    offered = []
    for name, columns in (
        (("disjoint", _bayesian_disjoint), ("hybrid", _bayesian_hybrid))
        if has_groups(world)
        else (("disjoint", _bayesian_disjoint),)
    ):
        build, label = partial(_bayesian_linear, columns=columns), f"bayesianbandits {name} TS"
        told = Offer(label, partial(build, beta=noise_of(world) ** -2.0), "told the noise")
        offered += [Offer(label, build, "alpha=1, beta=1, as in its guide"), *unlike_default(told, world)]
    return offered


def _bayesian_disjoint(world: World, z: Floats) -> tuple[Any, Any, int]:
    """Column numbers and values of every arm's row, (arms, entries) each, and the number of columns."""
    n, d = world.n_arms, len(z)
    columns = np.arange(n)[:, None] * d + np.arange(d)
    return columns, np.broadcast_to(z, (n, d)), n * d


def _bayesian_hybrid(world: World, z: Floats) -> tuple[Any, Any, int]:
    n, d, n_labels = world.n_arms, len(z), int(world.labels.max()) + 1
    shared = np.broadcast_to(np.arange(d), (n, d))
    by_category = d + world.labels[:, None] * d + np.arange(d)
    own = d + n_labels * d + np.arange(n)[:, None]
    values = np.hstack([np.broadcast_to(z, (n, d)), np.broadcast_to(z, (n, d)), np.ones((n, 1))])
    return np.hstack([shared, by_category, own]), values, d + n_labels * d + n


def _bayesian_linear(world: World, seed: int, *, columns: Any, alpha: float = 1.0, beta: float = 1.0) -> Agent:
    import bayesianbandits as bb  # type: ignore[import-not-found]
    from scipy import sparse

    class Rows(bb.ArmFeaturizer):  # type: ignore[misc]
        """One row per arm: (contexts * arms, columns)."""

        def transform(self, X: Any, *, action_tokens: Sequence[int]) -> Any:
            places, values, width = columns(world, X[0])
            chosen = np.array(action_tokens)
            places, values = places[chosen], values[chosen]
            rows = np.repeat(np.arange(len(chosen)), places.shape[1])
            return sparse.csc_array((values.ravel(), (rows, places.ravel())), shape=(len(chosen), width))

    agent = bb.LipschitzContextualAgent(
        arms=[bb.Arm(arm, learner=None) for arm in range(world.n_arms)],
        policy=bb.ThompsonSampling(),
        arm_featurizer=Rows(),
        learner=bb.NormalRegressor(alpha=alpha, beta=beta, sparse=True),
        random_seed=seed,
    )

    def seen(x: Floats) -> Floats:
        return np.concatenate([[1.0], x])[None]

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        agent.select_for_update(arm).update(seen(x), np.array([reward], float))

    return Agent(lambda x: (int(agent.pull(seen(x))[0]), None), learn)


def _bayesian_dirichlet(world: World, seed: int) -> Agent:
    import bayesianbandits as bb

    agent = bb.LipschitzContextualAgent(
        arms=[bb.Arm(arm, lambda samples: samples[..., 1], learner=None) for arm in range(world.n_arms)],
        policy=bb.ThompsonSampling(),
        arm_featurizer=bb.FunctionArmFeaturizer(
            lambda x, tokens: np.broadcast_to(np.array(tokens, float), (len(x), 1, len(tokens)))
        ),
        learner=bb.DirichletClassifier({0: 1.0, 1: 1.0}),
        random_seed=seed,
    )
    nothing = np.ones((1, 1))

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        agent.select_for_update(arm).update(nothing, np.array([reward]))

    return Agent(lambda x: (int(agent.pull(nothing)[0]), None), learn)


# ---------------------------------------------------------------- contextualbandits
# contextualbandits: predict and partial_fit of one row. It has no bandits without contexts. With updates of one row,
# LinTS hardly learns by its default way of sampling (1.5 to 9 times the regret of the other way), so it is left out.


def contextual_offers(world: World) -> list[Offer]:
    if not world.dim:
        return []
    by_interval = partial(_contextual_agent, policy="LinTS", sample_from="ci", v_sq=noise_of(world) ** 2)
    return [
        Offer("contextualbandits LinUCB", partial(_contextual_agent, policy="LinUCB"), "default"),
        Offer(
            "contextualbandits LinUCB",
            partial(_contextual_agent, policy="LinUCB", alpha=0.1),
            "alpha=0.1, as in its examples",
        ),
        Offer("contextualbandits LinTS", by_interval, 'sample_from="ci", told the noise'),
    ]


def _contextual_agent(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from contextualbandits import online  # type: ignore[import-not-found]

    built = getattr(online, policy)(nchoices=world.n_arms, random_state=seed + 1, **settings)
    built.partial_fit(np.zeros((1, world.dim)), np.zeros(1, int), np.zeros(1))  # it wants to know the length

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.partial_fit(x[None], np.array([arm]), np.array([reward], float))

    return Agent(lambda x: (int(built.predict(x[None])[0]), None), learn)


# ---------------------------------------------------------------- mabwiser
# MABWiser: predict and partial_fit. It needs a first fit, which gets one failure of arm 0.


def mabwiser_offers(world: World) -> list[Offer]:
    if not world.dim:
        return [
            Offer("MABWiser TS", partial(_mabwiser_flat, policy="ThompsonSampling"), "default"),
            Offer("MABWiser UCB1", partial(_mabwiser_flat, policy="UCB1", alpha=1), "default, each arm once first"),
            Offer("MABWiser UCB1", partial(_mabwiser_flat, policy="UCB1", alpha=0.1), "alpha=0.1, told the noise"),
        ]
    offered = []
    for policy in ("LinUCB", "LinTS"):
        build, label = partial(_mabwiser_linear, policy=policy), f"MABWiser {policy}"
        told = Offer(label, partial(build, alpha=noise_of(world)), "told the noise")
        offered += [Offer(label, build, "default"), *unlike_default(told, world)]
    return offered


def _mabwiser_flat(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]

    mab = MAB(list(range(world.n_arms)), getattr(LearningPolicy, policy)(**settings), seed=seed)
    mab.fit([0], [0])
    untried = list(range(world.n_arms)) if policy == "UCB1" else []  # its index of an arm never seen is 0

    def choose(x: Floats) -> tuple[int, None]:
        return (untried.pop() if untried else int(mab.predict())), None

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        mab.partial_fit([arm], [reward])

    return Agent(choose, learn)


def _mabwiser_linear(world: World, seed: int, *, policy: str, **settings: Any) -> Agent:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(list(range(world.n_arms)), getattr(LearningPolicy, policy)(**settings), seed=seed)
    mab.fit([0], [0], np.zeros((1, 1 + world.dim)))

    def seen(x: Floats) -> Floats:
        return np.concatenate([[1.0], x])[None]

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        mab.partial_fit([arm], [reward], seen(x))

    return Agent(lambda x: (int(mab.predict(seen(x))), None), learn)


# ---------------------------------------------------------------- river
# river: pull and update.


def river_offers(world: World) -> list[Offer]:
    if world.dim:
        return [Offer("river LinUCBDisjoint", _river_linear, "default")]
    return [
        Offer(
            "river ThompsonSampling",
            partial(_river_flat, policy="ThompsonSampling", beta=True),
            "Beta, its example's choice",
        ),
        Offer("river UCB", partial(_river_flat, policy="UCB", delta=1), "delta=1, its example's choice"),
        Offer("river BayesUCB", partial(_river_flat, policy="BayesUCB"), "default"),
    ]


def _river_flat(world: World, seed: int, *, policy: str, beta: bool = False, **settings: Any) -> Agent:
    from river import bandit, proba

    prior = {"reward_obj": proba.Beta()} if beta else {}
    built = getattr(bandit, policy)(seed=seed, **prior, **settings)
    arms: Any = range(world.n_arms)

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.update(arm, bool(reward) if beta else reward)

    return Agent(lambda x: (int(built.pull(arms)), None), learn)


def _river_linear(world: World, seed: int) -> Agent:
    from river import bandit

    built: Any = bandit.LinUCBDisjoint(seed=seed)
    arms: Any = range(world.n_arms)

    def seen(x: Floats) -> dict[int, float]:
        return dict(enumerate([1.0, *x.tolist()]))

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        built.update(arm, seen(x), reward)

    return Agent(lambda x: (int(built.pull(arms, context=seen(x))), None), learn)


CONTESTANTS = (
    Contestant("banditree", "contest.contestants:ours_offers", "banditree"),
    Contestant("mixed-effect paper", "contest.contestants:mixed_offers", "numpy"),
    *(
        Contestant(package, f"contest.contestants:{name}_offers", package, (package, "numpy"))
        for name, package in (
            ("vw", "vowpalwabbit"),
            ("coba", "coba"),
            ("bayesian", "bayesianbandits"),
            ("contextual", "contextualbandits"),
            ("mabwiser", "mabwiser"),
            ("river", "river"),
        )
    ),
)
