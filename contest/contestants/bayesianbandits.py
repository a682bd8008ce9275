"""bayesianbandits: pull and update, with one shared estimator, as its guide advises where there are many arms.

"Disjoint" gives every arm columns of its own. "Hybrid" is its guide's model: the context for all arms, the context by
category, and a level for each arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from contest.contestants import Agent, Offer, has_groups, noise_of, unlike_default
from contest.world import Floats, World

PACKAGE = "bayesianbandits"
REQUIRES = ("bayesianbandits", "numpy")


def offers(world: World) -> list[Offer]:
    if not world.dim:
        return [Offer("bayesianbandits Dirichlet TS", _dirichlet, "default")]
    offered = []
    for name, columns in (
        (("disjoint", _disjoint), ("hybrid", _hybrid)) if has_groups(world) else (("disjoint", _disjoint),)
    ):
        build, label = partial(_linear, columns=columns), f"bayesianbandits {name} TS"
        told = Offer(label, partial(build, beta=noise_of(world) ** -2.0), "told the noise")
        offered += [Offer(label, build, "alpha=1, beta=1, as in its guide"), *unlike_default(told, world)]
    return offered


def _disjoint(world: World, z: Floats) -> tuple[Any, Any, int]:
    """Column numbers and values of every arm's row, (arms, entries) each, and the number of columns."""
    n, d = world.n_arms, len(z)
    columns = np.arange(n)[:, None] * d + np.arange(d)
    return columns, np.broadcast_to(z, (n, d)), n * d


def _hybrid(world: World, z: Floats) -> tuple[Any, Any, int]:
    n, d, n_labels = world.n_arms, len(z), int(world.labels.max()) + 1
    shared = np.broadcast_to(np.arange(d), (n, d))
    by_category = d + world.labels[:, None] * d + np.arange(d)
    own = d + n_labels * d + np.arange(n)[:, None]
    values = np.hstack([np.broadcast_to(z, (n, d)), np.broadcast_to(z, (n, d)), np.ones((n, 1))])
    return np.hstack([shared, by_category, own]), values, d + n_labels * d + n


def _linear(world: World, seed: int, *, columns: Any, alpha: float = 1.0, beta: float = 1.0) -> Agent:
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


def _dirichlet(world: World, seed: int) -> Agent:
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
