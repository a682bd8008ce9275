"""The kinds of adaptive beliefs: for rewards in [0, 1], and for normal rewards. `bt.ATS` makes them of its prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self, overload

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.base.intervals import normal_interval
from banditree.beliefs.adaptive import AdaptiveRows, Strays, zero_if_negligible
from banditree.beliefs.base import Belief, CountedRows, Rows
from banditree.beliefs.beta import Beta, BetaRows
from banditree.beliefs.gaussian import Gaussian, GaussianRows, LearnedGaussianRows
from banditree.beliefs.law import Law
from banditree.beliefs.priors import OwnPriors, Prior
from banditree.beliefs.winning import log_beta
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import positive, real
from banditree.tree.shape import Shape

EDGE = 1e-12  # how close to 0 and 1 the mean of a cluster may come
ODDS_STEP = 0.2  # between the log odds of the means around which arms are weighed
AROUND_STEP = 0.05  # and of those around which an arm is compared with the stray
NORMAL_AROUND_STEP = 0.1  # the same for normal rewards, in standard deviations of arms around their cluster
LINEAR_PART = 0.7  # of the scale on which rates compete
WIDER = 0.6  # a draw with variance v is wider by this much times v than the slope of that scale says
LEAST_VARIANCE = 1e-300  # of a reward
HIERARCHICAL = Law(strays=0.0, fall=0.0, fall_of_few=0.0)  # of hierarchical Bayes: nothing is assumed
UNSURE = 1e-6  # rewards that the prior mean of all arms is worth where nobody said how sure it is


@dataclass(frozen=True)
class AdaptiveBeta(Beta):
    """Beta(a, b) for the root; for another node, a successes and b failures known beforehand."""

    a: float = 0.5
    b: float = 0.5

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> None:
        """Return nothing: a new arm starts from its cluster by itself."""

    def like(self, prior: Belief) -> Belief:
        return AdaptiveBeta(**asdict(prior)) if type(prior) is Beta else super().like(prior)

    def rows(self, n_nodes: int, own: Mapping[int, object]) -> AdaptiveBetaRows:
        return AdaptiveBetaRows(*_evidence(self, n_nodes, own, "a", "b"))


class AdaptiveBetaRows(AdaptiveRows, BetaRows):
    """For rewards in [0, 1]: concentrations and strengths are those of Beta distributions."""

    native = "AdaptiveBeta"
    ONE = 1.0
    STEPS = np.arange(10)  # as if each arm started with 1 to 262,144 plays
    unit = 1.0

    def native_arrays(self) -> list[object]:
        return [self._table, self.a, self.b, self.settings()]

    def known(self) -> tuple[Floats, Floats]:
        leaf = self.shape.content >= 0
        successes = np.where(leaf, zero_if_negligible(self.a + self.successes), self.a)
        return successes + np.where(leaf, zero_if_negligible(self.b + self.failures), self.b), successes

    def reward_variance(self, mean: Floats) -> Floats:
        mean = np.clip(mean, EDGE, 1 - EDGE)
        return mean * (1 - mean)

    def arms_message(self, plays: Floats, total: Floats, first: Indices) -> tuple[Floats, ...]:
        """Weigh arms by the beta-binomial around a mean near their cluster's: a normal message would not do.

        Where rates are small, one lucky reward of a few plays is likely under any concentration, but a normal
        distribution takes it for a sign that arms differ widely. The mean is in steps, so that the sums need not be
        made anew at every reward; what the nearest step is off is made good to second order.
        """
        k = self.concentration[0][: self.n_steps]
        strength, weighted = (
            np.add.reduceat(x * (k + 1) / (plays + k), first, axis=0) for x in (plays, total)
        )  # (clusters, steps) each
        mean = np.clip((weighted + 0.5) / (strength + 1), EDGE, 1 - EDGE)
        odds = np.log(mean / (1 - mean))
        near = ODDS_STEP * np.floor(odds / ODDS_STEP + 0.5)
        a, b = k / (1 + np.exp(-near)), k / (1 + np.exp(near))
        size = np.diff(np.append(first, len(plays)))
        s, f = total, np.maximum(plays - total, 0.0)
        own = _best_fit(s, f)  # the same for all concentrations: without it the sums would lose digits
        likelihood = log_beta(np.repeat(a, size, axis=0) + s, np.repeat(b, size, axis=0) + f) - own
        fit = np.add.reduceat(likelihood, first, axis=0) - size[:, None] * log_beta(a, b)
        fit += 0.5 * strength * mean * (1 - mean) * (odds - near) ** 2
        return strength, weighted, weighted**2 / strength, np.zeros_like(fit), fit

    def level(self) -> float:
        """Return the typical rate of an arm, up to 1/2, in steps of the root of 2.

        In steps, because what derives from it need not be made anew at every reward then. An arm counts as one, but
        less if it has had few plays. Above 1/2 the level would say more about good arms than about the others.
        """
        plays, totals = self.known()
        weight = 1 / (plays + self.law.level_plays)
        successes, failures = (float((known * weight).sum()) for known in (totals, np.maximum(plays - totals, 0.0)))
        if successes > failures:
            return 0.5
        share = max(successes / (successes + failures), EDGE)
        return float(2.0 ** (-0.5 * np.floor(0.5 - 2 * np.log2(share))))

    def shift(self) -> float:
        """For the same spread s of their log odds, rarer rates p differ less: k = 1 / (p (1 - p) s^2)."""
        level = self.level()
        return float(np.log(4 * level * (1 - level)) / np.log(4))

    def expected_strays(self, root_mean: Floats, copies: Indices) -> Strays:
        """Return the typical rate, at most 1/2, with log odds spread by ``stray_spread``: Beta(2, 2) at 1/2."""
        level = self.level()
        plays = 1 / (level * (1 - level) * self.law.stray_spread**2)
        return Strays(np.full_like(root_mean, level), np.full_like(root_mean, plays))

    def log_factor(self, plays: Floats, total: Floats, k: Floats, around: Floats, strays: Strays) -> Floats:
        """Compare strays with the beta-binomial around the cluster's mean, by a formula of Laplace's kind."""
        n, s, f = plays, total, np.maximum(plays - total, 0.0)
        best = _best_fit(s, f)
        around = np.clip(around, EDGE, 1 - EDGE)
        odds = AROUND_STEP * np.floor(np.log(around / (1 - around)) / AROUND_STEP + 0.5)
        there = -s * np.log1p(np.exp(-odds)) - f * np.log1p(np.exp(odds))
        tree = best - k / (n + k) * (best - there) - 0.5 * np.log1p(n / k)
        a, b = np.array(strays.plays[0] * strays.mean[0]), np.array(strays.plays[0] * (1 - strays.mean[0]))
        return np.asarray(log_beta(a + s, b + f) - log_beta(a, b) - tree)

    def drawn(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Rates compete on a scale on which a Beta distribution is nearly normal, also far out in its tails.

        The skewness goes where the slope of the scale is (p (1 - p))^(-2/3); p^(-2/3) + (1 - p)^(-2/3) - 0.7 is within
        2% of it. Near 0 this is the cube root of Wilson and Hilferty.
        """
        least = np.clip(0.5 * variance, EDGE, 0.5)
        p = np.clip(mean, least, 1 - least)
        below, above = 1 / np.cbrt(p) ** 2, 1 / np.cbrt(1 - p) ** 2
        bend = ((1 - p) * below - p * above) * variance / 3
        slope = below + above - LINEAR_PART
        return _on_scale(p) - bend, slope * np.sqrt(variance * p * (1 - p)) * (1 + WIDER * variance)

    def as_reward(self, draws: Floats) -> Floats:
        end = _on_scale(np.array(1.0))
        below = -np.minimum(np.abs(draws), end)
        root = (below + end) / 3.4  # the cube root of the rate, or of 1 minus it, by Newton's method
        for _ in range(4):
            other = np.cbrt(1 - root**3)
            value = 3 * (root - other) - LINEAR_PART * (root**3 - 0.5) - below
            root = root - value / (3 + 3 * root**2 / other**2 - 3 * LINEAR_PART * root**2)
        return np.where(draws > 0, 1 - root**3, root**3)

    def ends(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        mean = np.clip(mean, EDGE, 1 - EDGE)
        strength = np.maximum(mean * (1 - mean) / np.maximum(sd**2, 1e-300) - 1, 1.0)
        low, high = self._ends((mean * strength)[:, None], ((1 - mean) * strength)[:, None]).T
        return np.where(low < EDGE, 0.0, low), np.where(high > 1 - EDGE, 1.0, high)


@dataclass(frozen=True)
class AdaptiveGaussian(Gaussian):
    """N(mean, prior_sd^2) for the root; for another node, rewards known beforehand that such a prior is worth."""

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> None:
        """Return nothing: a new arm starts from its cluster by itself."""

    def like(self, prior: Belief) -> Belief:
        return AdaptiveGaussian(**asdict(prior)) if type(prior) is Gaussian else super().like(prior)

    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> NormalRows:
        if any((belief.sd is None) != (self.sd is None) for belief in own.values()):
            raise InvalidValue("the sd of rewards is learned for the whole tree or for none of it; give it everywhere")
        plays, means = _evidence(self, n_nodes, own, "prior_plays", "mean")
        if self.prior_sd == self.sd or isinstance(self, Hierarchical):  # nobody said how sure the mean is
            plays[0] = UNSURE
        if self.sd is None:
            return AdaptiveLearnedGaussianRows(plays, plays * means, float(self.mean))
        return AdaptiveGaussianRows(np.full(n_nodes, float(self.sd)), plays, plays * means, self.prior_plays)


class NormalRows(AdaptiveRows, CountedRows):
    """For normal rewards: the recursion gives the exact posterior of a tree of normal variables."""

    ONE = 0.0
    STEPS = np.arange(-4, 6)  # arms differ by 16 standard deviations of a reward to a thirty-second of one
    prior_plays: Floats
    prior_total: Floats
    spreads: tuple[float, ...] = ()  # of arms, then of clusters from the lowest level up, where they are told

    def attach(self, shape: Shape) -> None:
        super().attach(shape)
        if self.spreads:
            up = np.arange(self.height[0] + 1)
            spreads = np.array(self.spreads)[np.minimum(up, len(self.spreads) - 1)]
            self.steps, self.n_steps = np.zeros(1), 1
            self.concentration = (self.sd_unit / spreads[:, None]) ** 2

    def known(self) -> tuple[Floats, Floats]:
        leaf = self.shape.content >= 0
        plays = np.where(leaf, zero_if_negligible(self.prior_plays + self.count), self.prior_plays)
        total = np.where(leaf & (plays > 0), self.total, 0.0)
        return plays, self.prior_total + total

    def arms_message(self, plays: Floats, total: Floats, first: Indices) -> tuple[Floats, ...]:
        k = self.concentration[0][: self.n_steps]
        w, x = plays * k / (plays + k), total / plays
        parts = (w, w * x, w * self.off_centre(x) ** 2, np.log(w))
        strength, weighted, squares, logs = (np.add.reduceat(part, first, axis=0) for part in parts)
        return strength, weighted, squares, logs, np.zeros_like(logs)

    def noise_variance(self) -> float:
        """Return the variance of a reward, in units of ``sd_unit`` squared."""
        return 1.0

    def reward_variance(self, mean: Floats) -> Floats:
        return np.full_like(mean, self.noise_variance())

    def shift(self) -> float:
        return 0.0

    def coarse_variance(self) -> float:
        """Return the noise with six binary digits, so that what follows from it need not change at every reward."""
        fraction, exponent = np.frexp(self.noise_variance())
        return float(np.ldexp(np.floor(64 * fraction) / 64, exponent))

    def expected_strays(self, root_mean: Floats, copies: Indices) -> Strays:
        """Return a mean that would be high among the arms: so a stray is either found or soon ruled out."""
        per_level = 1 / self.concentration[: max(self.height[0], 1), copies]
        spread = per_level.sum(axis=0)  # of arms around the root, in variances of a reward
        apart = self.sd_unit * np.sqrt(self.coarse_variance() * spread)
        mean = rounded(root_mean, NORMAL_AROUND_STEP * apart) + self.law.stray_lift * apart
        return Strays(mean, 1 / (self.law.stray_width**2 * spread))

    def log_factor(self, plays: Floats, total: Floats, k: Floats, around: Floats, strays: Strays) -> Floats:
        """Compare the mean of strays with that of the cluster as the prior of the mean of these rewards."""
        n, noise = np.maximum(plays, 1e-300), self.coarse_variance()
        x = total / n
        around = rounded(around, NORMAL_AROUND_STEP * self.sd_unit * np.sqrt(noise / k))

        def log_density(mean: Floats, variance: Floats) -> Floats:
            return -0.5 * (self.in_units(x - mean) ** 2 / (noise * variance) + np.log(variance))

        return np.asarray(log_density(strays.mean, 1 / n + 1 / strays.plays) - log_density(around, 1 / n + 1 / k))

    def drawn(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        return mean, self.sd_unit * np.sqrt(self.noise_variance() * variance)

    def ends(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        return normal_interval(mean, sd)


class AdaptiveGaussianRows(NormalRows, GaussianRows):
    """Normal rewards whose standard deviation is known."""

    native = "AdaptiveGaussian"

    def __init__(self, sd: Floats, prior_plays: Floats, prior_total: Floats, unit: float) -> None:
        super().__init__(sd, prior_plays, prior_total)
        self.unit, self.sd_unit = unit, float(sd[0])
        self.centre = float(prior_total[0]) / float(prior_plays[0])

    def native_arrays(self) -> list[object]:
        return [self.count, self.total, self.sd, self.prior_plays, self.prior_total, self.settings()]


class AdaptiveLearnedGaussianRows(NormalRows, LearnedGaussianRows):
    """Normal rewards whose standard deviation is learned, from how far the rewards of each arm are apart."""

    native = "AdaptiveLearnedGaussian"
    unit = 1.0

    def __init__(self, prior_plays: Floats, prior_total: Floats, centre: float) -> None:
        super().__init__(prior_total, centre)
        self.prior_plays = prior_plays

    def attach(self, shape: Shape) -> None:
        LearnedGaussianRows.attach(self, shape)
        super().attach(shape)

    def noise_variance(self) -> float:
        """Pool the variances within arms; the variance of all rewards counts as one degree of freedom more."""
        return self.remembered("noise", self._noise_variance)

    def _noise_variance(self) -> float:
        leaves = self.shape.node_of
        n, t, squares, rows = (x[leaves] for x in (self.count, self.total, self.squares, self.rows))
        played = n > 0
        n, t, squares, rows = (x[played] for x in (n, t - n * self.centre, squares, rows))
        if not len(n):
            return 1.0
        within = float(np.maximum(squares - t * t / n, 0.0).sum())
        degrees = float(np.maximum(rows - 1, 0.0).sum())
        overall = max(float(squares.sum() - t.sum() ** 2 / n.sum()) / float(rows.sum()), 0.0)
        if within + overall <= 0:
            overall = float(squares.sum() / rows.sum())  # all rewards are equal so far
        return max((within + overall) / (degrees + 1), LEAST_VARIANCE)

    def learned_sd(self) -> float:
        return float(np.sqrt(self.noise_variance()))

    def native_arrays(self) -> list[object]:
        evidence = [self.count, self.total, self.squares, self.rows]
        return [*evidence, self.prior_plays, self.prior_total, self.settings()]


@dataclass(frozen=True)
class Hierarchical(AdaptiveGaussian):
    """The prior of hierarchical Bayes: how far arms lie around their cluster, and clusters around theirs.

    Parameters
    ----------
    arm_sd, cluster_sd
        Standard deviations of arms and of clusters; one for each level of clusters, the top one first, or one for all.
        Without them and ``sd``, all are learned.
    """

    arm_sd: float | None = None
    cluster_sd: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        told = {"noise": self.sd, "arm_sd": self.arm_sd, "cluster_sd": self.cluster_sd}
        if missing := [name for name, value in told.items() if value is None]:
            if len(missing) < len(told):
                raise InvalidValue(f"give HierTS all of noise, arm_sd and cluster_sd, or none; {missing[0]} is missing")
            return super().__post_init__()
        levels = self.cluster_sd if isinstance(self.cluster_sd, Sequence | np.ndarray) else [self.cluster_sd]
        if not len(levels):
            raise InvalidValue("cluster_sd needs one number, or one for each level of clusters")
        for what, value in (("arm_sd", self.arm_sd), *(("cluster_sd", level) for level in levels)):
            ratio = positive(f"HierTS: {what}", value) / positive("HierTS: noise", self.sd)
            real(f"HierTS: {what} over the noise", ratio, 1e-50, 1e50)
        object.__setattr__(self, "cluster_sd", tuple(float(level) for level in levels if level is not None))
        return super().__post_init__()

    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> NormalRows:
        rows = super().rows(n_nodes, own)
        rows.law, rows.couples = HIERARCHICAL, False
        if self.arm_sd is not None:
            assert isinstance(self.cluster_sd, tuple)
            rows.spreads = (float(self.arm_sd), *self.cluster_sd[::-1])
        return rows


ADAPTIVE: dict[type[Belief], type[Belief]] = {Beta: AdaptiveBeta, Gaussian: AdaptiveGaussian}


@overload
def adaptive(prior: Belief | None) -> Belief: ...
@overload
def adaptive(prior: OwnPriors) -> OwnPriors: ...
def adaptive(prior: Prior | None) -> Prior:
    """Return the adaptive prior that a plain one, or a mapping of plain ones, stands for."""
    if prior is None:
        return AdaptiveBeta()
    if isinstance(prior, Mapping):
        if len({belief.sd for belief in prior.values() if type(belief) is Gaussian}) > 1:  # 0.2 saved such, and loads
            raise InvalidValue("arms of one tree share the sd of their rewards: give the same to all priors, or none")
        return {key: adaptive(belief) for key, belief in prior.items()}
    if type(prior) in ADAPTIVE.values():
        return prior
    if type(prior) not in ADAPTIVE:
        raise InvalidType(
            f"prior={prior!r} must be a bt.Beta or a bt.Gaussian, or a mapping from clusters or arms to them"
        )
    return ADAPTIVE[type(prior)](**asdict(prior))


def _evidence(prior: Belief, n_nodes: int, own: Mapping[int, object], *fields: str) -> list[Floats]:
    """Return parameters of each node's prior: the root's, those of ``own``, and 0 for all others: (nodes,) each."""
    parameters = []
    for field in fields:
        values = np.zeros(n_nodes)
        for node, belief in {0: prior, **own}.items():
            values[node] = getattr(belief, field)
        parameters.append(values)
    return parameters


def rounded(x: Floats, step: Floats) -> Floats:
    """Return the nearest multiples of a step; a number that is far too large for one is left as it is."""
    steps = x / step
    return np.where(np.abs(steps) < 1e15, step * np.floor(steps + 0.5), x)


def _on_scale(rate: Floats) -> Floats:
    return np.asarray(3 * (np.cbrt(rate) - np.cbrt(1 - rate)) - LINEAR_PART * (rate - 0.5))


def _best_fit(successes: Floats, failures: Floats) -> Floats:
    """Return the log likelihood of rewards at their own mean."""
    mean = successes / np.maximum(successes + failures, 1e-300)
    return _times_log(successes, mean) + _times_log(failures, 1 - mean)


def _times_log(x: Floats, y: Floats) -> Floats:
    """Return x ln y, 0 for x = 0."""
    return np.where(x > 0, x * np.log(np.where(x > 0, y, 1.0)), 0.0)
