"""Reward distributions, given the expected value. Each draw is one call of the stream, the same in both engines."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from banditree.errors.checks import MAX_REWARD, positive, real
from banditree.stream import Rng

MAX_MEAN = MAX_REWARD / 1e10  # also of coefficients and standard deviations, so that rewards stay below MAX_REWARD


@dataclass(frozen=True)
class Rewards(ABC):
    """A family of reward distributions, one for each expected value."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)  # range of rewards, and so of expected values
    links: ClassVar[bool] = False  # whether `expected` maps every number into the support

    def expected(self, score: float) -> float:
        """Return the expected reward where theta.x is ``score``; it rises with the score."""
        return score

    @abstractmethod
    def draw(self, mean: float, rng: Rng) -> float:
        """Draw one reward with this expected value."""


@dataclass(frozen=True)
class Bernoulli(Rewards):
    """1 with probability ``mean``, else 0."""

    support = (0.0, 1.0)

    def draw(self, mean: float, rng: Rng) -> float:
        return 1.0 if rng.random() < mean else 0.0


@dataclass(frozen=True)
class Bounded(Rewards):
    """Beta(mean c, (1 - mean) c) with concentration c: fractions in [0, 1]; constant for a mean of 0 or 1."""

    concentration: float
    support = (0.0, 1.0)

    def __post_init__(self) -> None:
        real("concentration", positive("concentration", self.concentration), 1e-6, 1e12)

    def draw(self, mean: float, rng: Rng) -> float:
        if mean in (0.0, 1.0):
            return mean
        return float(rng.beta(mean * self.concentration, (1 - mean) * self.concentration))


@dataclass(frozen=True)
class Gaussian(Rewards):
    """N(mean, sd^2)."""

    sd: float = 1.0

    def __post_init__(self) -> None:
        real("sd", positive("sd", self.sd), high=MAX_MEAN)

    def draw(self, mean: float, rng: Rng) -> float:
        return mean + self.sd * float(rng.standard_normal())


@dataclass(frozen=True)
class Uniform(Rewards):
    """U(0, 2 mean); for a negative mean this is U(2 mean, 0)."""

    def draw(self, mean: float, rng: Rng) -> float:
        return 2 * mean * float(rng.random())


@dataclass(frozen=True)
class Clicks(Bernoulli):
    """1 with probability 1 / (1 + exp(-theta.x)), else 0: a logistic truth, for contexts."""

    links = True

    def expected(self, score: float) -> float:
        return 1.0 / (1.0 + math.exp(-max(score, -700.0)))
