"""Draw the true means of arms whose rewards are normal: `posterior` with normal in place of Beta distributions.

A node's mean, given the mean m of its parent, is N(m, sd^2 phi), and the mean y of an arm's n rewards is
N(mu, sd^2 / n), so that, given its cluster's mean, Var(y) = sd^2 c with c = phi + 1 / n. The rest is as for counts:
weights 1 / c on the way up, and on the way down N((m k + y n) / (k + n), sd^2 / (k + n)) with k = 1 / phi. One sd
is used for the rewards of all arms, as in `bt.Gaussian`; an arm whose own rewards vary more than that counts as having
fewer plays, and one whose rewards vary less as having more.
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
from banditree.stream import Rng
from banditree.tree import Tree

Floats = NDArray[np.float64]
COMMON = 10.0  # plays that the pooled variance counts for in the estimate of an arm's own variance


@dataclass(frozen=True, eq=False, repr=False)
class NormalPosterior(Posterior):
    """Draws the true means of all arms, given their effective plays and the corresponding sums of rewards."""

    WIDEST = np.inf

    sd: float  # of the rewards around their arm's mean

    @classmethod
    def of(cls, tree: Tree, plays: Floats, mean: Floats, sd: Floats) -> NormalPosterior:
        """Make one from each arm's plays and the mean and standard deviation of its rewards (NaN if unknown)."""
        degrees = np.where(np.isnan(sd), 0.0, np.maximum(plays - 1, 0))  # (arms,)
        squares = degrees * np.nan_to_num(sd) ** 2
        common = squares.sum() / degrees.sum()
        variance = (squares + COMMON * common) / (degrees + COMMON)  # (arms,)
        effective = plays * common / variance
        return cls(tree, effective, effective * np.nan_to_num(mean), float(np.sqrt(common)))

    @property
    def rewards(self) -> families.Gaussian:
        """The distribution of rewards around their means."""
        return families.Gaussian(self.sd)

    @cached_property
    def prior(self) -> Gaussian:
        """A prior for every node of a policy: the mean and the spread of all arms."""
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
        # Written with phi n, so that a spread of 0 and an arm without plays need no special case.
        weight = phi * n / (1 + phi * n)  # n / (k + n)
        sd = np.sqrt(phi / (1 + phi * n))  # 1 / sqrt(k + n)
        drawn: Floats = parent + weight * (y - parent) + self.sd * sd * rng.standard_normal(len(n))
        return drawn

    def _unit(self, mean: Floats) -> Floats:
        return np.full(np.shape(mean), self.sd**2)

    @staticmethod
    def _noise(phi: Any, n: Any) -> Any:
        return phi + 1 / n

    @staticmethod
    def _beyond(variance: float, noise: float) -> float:
        return variance - noise

    def evidence(self, arm: int, mean: Floats, variance: Floats, phi: float) -> Floats:
        n = max(self.plays[arm], EDGE)
        total = self.sd**2 * self._noise(phi, n) + variance
        found: Floats = -0.5 * ((self.totals[arm] / n - mean) ** 2 / total + np.log(total))
        return found
