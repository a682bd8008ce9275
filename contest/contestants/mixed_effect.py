"""Mixed-effect Thompson sampling, written from the paper: Aouali, Kveton and Katariya, AISTATS 2023.

An arm's coefficients are a weighted sum of effects plus a deviation of its own. A round samples the effects from their
posterior, then each arm's coefficients given the effects. The algorithm is told the weights, all covariances, the prior
mean (0) and the noise, which a user would not know.
"""

from __future__ import annotations

import numpy as np

from contest.contestants import Agent, Offer
from contest.world import Floats, World

NAME = "mixed-effect paper"
PACKAGE = "numpy"
REQUIRES: tuple[str, ...] = ()


def offers(world: World) -> list[Offer]:
    is_known = world.theta is not None and not world.clicks and "cluster_sd" in world.told
    return [Offer("meTS", _agent, "told the weights, covariances and noise")] if is_known else []


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


def _agent(world: World, seed: int) -> Agent:
    rng, told = np.random.default_rng(seed), world.told
    labels = world.labels
    weights = np.array(told["weights"]) if "weights" in told else np.eye(int(labels.max()) + 1)[labels]
    (level, slope), (arm_level, arm_slope) = told["cluster_sd"], told["arm_sd"]
    effect_sd = np.array([level, *[slope] * world.dim])
    algorithm = MixedEffectTS(weights, effect_sd, np.array([arm_level, *[arm_slope] * world.dim]), world.noise)

    def choose(x: Floats) -> tuple[int, None]:
        theta = algorithm.draw(rng)
        return int(np.argmax(theta[:, 0] + theta[:, 1:] @ x)), None

    def learn(x: Floats, arm: int, reward: float, probability: float | None) -> None:
        algorithm.learn(arm, np.concatenate([[1.0], x]), reward)

    return Agent(choose, learn)
