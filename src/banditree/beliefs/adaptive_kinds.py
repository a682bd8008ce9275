"""The kinds of adaptive beliefs: for rewards in [0, 1], and for normal rewards. `bt.ATS` makes them of its prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.adaptive import AdaptiveRows, Arms, or_none
from banditree.beliefs.base import Belief, Floats, Nodes, Rows
from banditree.beliefs.beta import Beta, BetaRows
from banditree.beliefs.gaussian import Gaussian, GaussianRows
from banditree.beliefs.priors import Prior
from banditree.beliefs.winning import log_beta
from banditree.errors import InvalidType
from banditree.report.intervals import normal_interval
from banditree.stream import beta_log_odds

OWN = 2.0  # an arm that does not follow its cluster starts at Beta(2, 2)
LEAST_STRENGTH = 0.01  # of a belief that is drawn from; a weaker one would draw 0 or 1 in any case
EDGE = 1e-12  # how close to 0 and 1 the mean of a cluster may come


@dataclass(frozen=True)
class AdaptiveBeta(Beta):
    """Beta(a, b) for the root; for another node, a successes and b failures known beforehand."""

    a: float = 0.5
    b: float = 0.5

    def prior_from_siblings(self, rows: Rows, leaves: NDArray[Any]) -> None:
        """Return nothing: a new arm starts from its cluster by itself."""

    def like(self, prior: Belief) -> Belief:
        return adaptive(prior) if type(prior) is Beta else super().like(prior)

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> AdaptiveBetaRows:
        return AdaptiveBetaRows(*_evidence(self, n_nodes, own, "a", "b"))


class AdaptiveBetaRows(AdaptiveRows, BetaRows):
    """For rewards in [0, 1]: concentrations and strengths are those of Beta distributions."""

    native = "AdaptiveBeta"
    ONE = 1.0
    unit = 1.0

    def native_arrays(self) -> list[NDArray[Any]]:
        return [self._table, self.a, self.b, *self.settings()]

    def known(self) -> tuple[Floats, Floats]:
        leaf, faded = self.shape.content >= 0, self.faded()
        successes = np.where(leaf, or_none(self.a + self.successes * faded), self.a)
        return successes + np.where(leaf, or_none(self.b + self.failures * faded), self.b), successes

    def earned(self) -> float:
        return float(self.successes[0] * self.faded())

    def reward_variance(self, mean: Floats) -> Floats:
        mean = np.clip(mean, EDGE, 1 - EDGE)
        return mean * (1 - mean)

    def log_factor(self, plays: Floats, total: Floats, k: Floats, around: Floats) -> Floats:
        """Compare Beta(2, 2) with the beta-binomial around the cluster's mean, by a formula of Laplace's kind."""
        n, s, f = plays, total, np.maximum(plays - total, 0.0)
        x = s / np.maximum(n, 1e-300)
        best = _times_log(s, x) + _times_log(f, 1 - x)
        around = np.clip(around, EDGE, 1 - EDGE)
        tree = best - k / (n + k) * (best - s * np.log(around) - f * np.log1p(-around)) - 0.5 * np.log1p(n / k)
        return np.asarray(log_beta(OWN + s, OWN + f) - log_beta(np.array(OWN), np.array(OWN)) - tree)

    def components(self, nodes: Nodes, arms: Arms) -> tuple[Floats, Floats, Floats, Floats]:
        plays, total = (x[nodes] for x in self.known())
        sharpness, alone = self.sharpness()
        strength = sharpness * np.maximum(1 / arms.variance - 1, LEAST_STRENGTH)
        own, failures = OWN + total, OWN + np.maximum(plays - total, 0.0)
        mean = np.clip(arms.mean, EDGE, 1 - EDGE)
        return strength * mean, strength * (1 - mean), alone * own, alone * failures

    def draws(self, x: Floats, y: Floats, rng: Any) -> Floats:
        return np.asarray(beta_log_odds(rng, x, y))

    def as_reward(self, draws: Floats) -> Floats:
        return np.exp(-np.logaddexp(0, -draws))

    def mixed_wins(self, x: Floats, y: Floats, u: Floats, v: Floats, share: Floats, size: Floats) -> Floats:
        return np.asarray(self.winning.beta_mixed_wins(x, y, u, v, share, size))

    def ends(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        mean = np.clip(mean, EDGE, 1 - EDGE)
        strength = np.maximum(mean * (1 - mean) / np.maximum(sd**2, 1e-300) - 1, 1.0)
        low, high = self._ends((mean * strength)[:, None], ((1 - mean) * strength)[:, None]).T
        return np.where(low < EDGE, 0.0, low), np.where(high > 1 - EDGE, 1.0, high)


@dataclass(frozen=True)
class AdaptiveGaussian(Gaussian):
    """N(mean, prior_sd^2) for the root; for another node, rewards known beforehand that such a prior is worth."""

    def prior_from_siblings(self, rows: Rows, leaves: NDArray[Any]) -> None:
        """Return nothing: a new arm starts from its cluster by itself."""

    def like(self, prior: Belief) -> Belief:
        return adaptive(prior) if type(prior) is Gaussian else super().like(prior)

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> AdaptiveGaussianRows:
        plays, means = _evidence(self, n_nodes, own, "prior_plays", "mean")
        return AdaptiveGaussianRows(np.full(n_nodes, float(self.sd or 1.0)), plays, plays * means)


class AdaptiveGaussianRows(AdaptiveRows, GaussianRows):
    """For normal rewards: the recursion gives the exact posterior of a tree of normal variables."""

    native = "AdaptiveGaussian"
    ONE = 0.0

    def __init__(self, sd: Floats, prior_plays: Floats, prior_total: Floats) -> None:
        super().__init__(sd, prior_plays, prior_total)
        self.unit, self.sd_unit = float(prior_plays[0]), float(sd[0])
        self.centre = float(prior_total[0]) / self.unit

    def native_arrays(self) -> list[NDArray[Any]]:
        return [self.count, self.total, self.sd, self.prior_plays, self.prior_total, *self.settings()]

    def known(self) -> tuple[Floats, Floats]:
        leaf, faded = self.shape.content >= 0, self.faded()
        plays = np.where(leaf, or_none(self.prior_plays + self.count * faded), self.prior_plays)
        total = np.where(leaf & (plays > 0), self.total * faded, 0.0)
        return plays, self.prior_total + total

    def earned(self) -> float:
        return float(self.count[0] * self.faded())

    def reward_variance(self, mean: Floats) -> Floats:
        return np.ones_like(mean)

    def log_factor(self, plays: Floats, total: Floats, k: Floats, around: Floats) -> Floats:
        """Compare the root's prior with the cluster's as the prior of the mean of these rewards."""
        n = np.maximum(plays, 1e-300)
        x, noise = total / n, 1 / n

        def log_density(mean: Any, variance: Any) -> Any:
            return -0.5 * (self.in_units(x - mean) ** 2 / variance + np.log(variance))

        own = log_density(self.centre, noise + 1 / self.unit)
        return np.asarray(own - log_density(around, noise + 1 / k))

    def components(self, nodes: Nodes, arms: Arms) -> tuple[Floats, Floats, Floats, Floats]:
        plays, total = (x[nodes] for x in self.known())
        n = self.unit + plays
        sd, stray_sd = (self.sd[0] / np.sqrt(sharpness) for sharpness in self.sharpness())
        return arms.mean, sd * np.sqrt(arms.variance), (self.prior_total[0] + total) / n, stray_sd / np.sqrt(n)

    def draws(self, x: Floats, y: Floats, rng: Any) -> Floats:
        return np.asarray(x + y * rng.standard_normal(len(x)))

    def mixed_wins(self, x: Floats, y: Floats, u: Floats, v: Floats, share: Floats, size: Floats) -> Floats:
        return np.asarray(self.winning.normal_mixed_wins(x, y, u, v, share, size))

    def ends(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        return normal_interval(mean, sd)


ADAPTIVE: dict[type[Belief], type[Belief]] = {Beta: AdaptiveBeta, Gaussian: AdaptiveGaussian}


def adaptive(prior: Prior | None) -> Any:
    """Return the adaptive prior that a plain one, or a mapping of plain ones, stands for."""
    if prior is None:
        return AdaptiveBeta()
    if isinstance(prior, Mapping):
        return {key: adaptive(belief) for key, belief in prior.items()}
    if type(prior) in ADAPTIVE.values():
        return prior
    if type(prior) not in ADAPTIVE:
        raise InvalidType(
            f"prior={prior!r} must be a bt.Beta or a bt.Gaussian, or a mapping from clusters or arms to them"
        )
    options = asdict(prior)
    if isinstance(prior, Gaussian) and prior.sd is None:
        options |= {"sd": 1.0, "prior_sd": 1.0}
    return ADAPTIVE[type(prior)](**options)


def _evidence(prior: Any, n_nodes: int, own: Mapping[int, Any], *fields: str) -> list[Floats]:
    """Return parameters of each node's prior: the root's, those of ``own``, and 0 for all others: (nodes,) each."""
    found = []
    for field in fields:
        values = np.zeros(n_nodes)
        for node, belief in {0: prior, **own}.items():
            values[node] = getattr(belief, field)
        found.append(values)
    return found


def _times_log(x: Floats, y: Floats) -> Floats:
    """Return x ln y, 0 for x = 0."""
    return np.where(x > 0, x * np.log(np.where(x > 0, y, 1.0)), 0.0)
