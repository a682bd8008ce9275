"""What normal rewards say about the true means: `posterior` with normal in place of Beta distributions.

A node's mean, given the mean m of its parent, is N(m, sd^2 phi), and the mean y of an arm's n rewards is
N(mu, sd^2 / n), so that given its cluster's mean Var(y) = sd^2 c with c = phi + 1 / n. All else is as for counts:
weights 1 / c on the way up, and on the way down N((m k + y n) / (k + n), sd^2 / (k + n)) with k = 1 / phi. One sd
stands for the rewards of all arms, as in `bt.Gaussian`; an arm whose own rewards spread more than that counts for
fewer plays, one whose rewards spread less for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Gaussian
from banditree.catalogue.posterior import EDGE, Posterior
from banditree.problems import rewards as families
from banditree.problems.problem import Rng
from banditree.tree import Tree

Floats = NDArray[np.float64]
COMMON = 10.0  # plays that the common spread counts for in what is believed of an arm's own


@dataclass(frozen=True, eq=False, repr=False)
class NormalPosterior(Posterior):
    """Draws the true means of all arms, given their effective plays and the sums of as many rewards."""

    WIDEST = np.inf

    sd: float  # of the rewards around their arm's mean

    @classmethod
    def of(cls, tree: Tree, plays: Floats, mean: Floats, sd: Floats) -> NormalPosterior:
        """From what was seen of each arm: plays, mean and standard deviation of rewards, NaN where there is none."""
        degrees = np.where(np.isnan(sd), 0.0, np.maximum(plays - 1, 0))  # (arms,)
        squares = degrees * np.nan_to_num(sd) ** 2
        common = squares.sum() / degrees.sum()
        own = (squares + COMMON * common) / (degrees + COMMON)  # (arms,) variances
        effective = plays * common / own
        return cls(tree, effective, effective * np.nan_to_num(mean), float(np.sqrt(common)))

    @property
    def rewards(self) -> families.Gaussian:
        """How rewards fall around their means."""
        return families.Gaussian(self.sd)

    @cached_property
    def prior(self) -> Gaussian:
        """What a policy may believe of every node beforehand: the mean and the spread of all arms."""
        seen = self.plays > 0
        weight = 1 / self._noise(self._scale**2, self.plays[seen])
        mean = float(weight @ (self.totals[seen] / self.plays[seen]) / weight.sum())
        return Gaussian(sd=self.sd, mean=mean, prior_sd=self.sd * self._scale)

    @cached_property
    def overall(self) -> float:
        """The mean of all rewards together."""
        return float(self.totals.sum() / self.plays.sum())

    def _root(self, n: float, y: float, rng: Rng) -> float:
        return float(y + self.sd / np.sqrt(n) * rng.standard_normal())

    def _given_parent(self, parent: Floats, phi: Floats, n: Floats, y: Floats, rng: Rng) -> Floats:
        # As shares of the whole, so that a spread of 0 and no plays at all need no case of their own.
        own = phi * n / (1 + phi * n)  # n / (k + n)
        unsure = np.sqrt(phi / (1 + phi * n))  # 1 / sqrt(k + n)
        drawn: Floats = parent + own * (y - parent) + self.sd * unsure * rng.standard_normal(len(n))
        return drawn

    def _unit(self, mean: Floats) -> Floats:
        return np.full(np.shape(mean), self.sd**2)

    @staticmethod
    def _noise(phi: Any, n: Any) -> Any:
        return phi + 1 / n

    @staticmethod
    def _beyond(variance: float, noise: float) -> float:
        return variance - noise

    def evidence(self, arm: int, mean: Floats, unsure: Floats, phi: float) -> Floats:
        n = max(self.plays[arm], EDGE)
        variance = self.sd**2 * self._noise(phi, n) + unsure
        found: Floats = -0.5 * ((self.totals[arm] / n - mean) ** 2 / variance + np.log(variance))
        return found
