"""Gaussian beliefs, for unbounded rewards, whose standard deviation is known or learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.beliefs.base import Batch, Belief, CountedRows, Nodes, Rows, per_node
from banditree.beliefs.priors import siblings
from banditree.errors import InvalidValue
from banditree.errors.checks import MAX_REWARD, positive, real
from banditree.stream import Rng
from banditree.tree.shape import Shape

MAX_SD = 1e300  # largest standard deviation: intervals around it stay finite


@dataclass(frozen=True)
class Gaussian(Belief):
    """Rewards of standard deviation ``sd`` around a mean believed to be N(mean, prior_sd^2).

    Parameters
    ----------
    sd
        Standard deviation of a reward around the mean of its arm. Without it, it is learned from the rewards of all
        arms together, and so is the mean around which arms lie, as in `LearnedGaussianRows`.
    mean
        What the mean of an arm is believed to be before any reward; where ``sd`` is learned, only until the first one.
    prior_sd
        Standard deviation of that belief; by default ``sd``, also where that is learned. With the defaults the
        posterior is that of Agrawal and Goyal (2017): N(sum of rewards / (n + 1), sd^2 / (n + 1)).

    >>> Gaussian(sd=2.0)
    Gaussian(sd=2.0, mean=0.0, prior_sd=2.0)
    """

    common = ("sd",)
    without_common: ClassVar[Mapping[str, float]] = {"sd": 1.0}

    sd: float | None = None
    mean: float = 0.0
    prior_sd: float | None = None

    def __post_init__(self) -> None:
        real("Gaussian: mean", self.mean, -MAX_REWARD, MAX_REWARD)
        if self.sd is None:
            if self.prior_sd is not None:
                raise InvalidValue(f"Gaussian: prior_sd={self.prior_sd} needs sd too; where sd is learned, it follows")
            object.__setattr__(self, "learns_noise", True)
            return
        if self.prior_sd is None:
            object.__setattr__(self, "prior_sd", self.sd)
        for what, value in {"sd": self.sd, "prior_sd": self.prior_sd}.items():
            real(f"Gaussian: {what}", positive(f"Gaussian: {what}", value), 1 / MAX_SD, MAX_SD)
        if not 1e-50 < float(self.sd) / float(self.prior_sd) < 1e50:  # type: ignore[arg-type]
            raise InvalidValue(f"Gaussian: sd={self.sd} and prior_sd={self.prior_sd} are too far apart to compute with")

    @property
    def prior_plays(self) -> float:
        """How many rewards the prior is worth."""
        return 1.0 if self.sd is None or self.prior_sd is None else (self.sd / self.prior_sd) ** 2

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> Gaussian | None:
        assert isinstance(rows, GaussianRows)
        estimate = siblings(rows.plays(leaves), rows.rewards(leaves), float(rows.noise(leaves)[0]) ** 2)
        if estimate is None:
            return None
        if self.sd is None:
            return Gaussian(mean=estimate.mean)
        return Gaussian(sd=self.sd, mean=estimate.mean, prior_sd=self.sd * float(np.sqrt(estimate.of_another)))

    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> CountedRows:
        if any((belief.sd is None) != (self.sd is None) for belief in own.values()):
            raise InvalidValue("the sd of rewards is learned for the whole tree or for none of it; give it everywhere")
        mean, prior_plays = (per_node(n_nodes, getattr(self, f), own, f) for f in ("mean", "prior_plays"))
        if self.sd is None:
            return LearnedGaussianRows(mean, float(self.mean), list(own))
        return GaussianRows(per_node(n_nodes, self.sd, own, "sd"), prior_plays, prior_plays * mean)


class GaussianRows(CountedRows):
    """Posterior of node i: N(t / n, sd[i]^2 / n) with n = prior_plays[i] + count[i], t = prior_total[i] + total[i]."""

    native = "Gaussian"
    PRIOR: ClassVar[tuple[str, ...]] = ("sd", "prior_plays", "prior_total")
    wins = CountedRows.normal_wins

    def __init__(self, sd: Floats, prior_plays: Floats, prior_total: Floats) -> None:
        self.sd, self.prior_plays, self.prior_total = sd, prior_plays, prior_total  # (nodes,) each
        self.lay_out(np.zeros((len(self.EVIDENCE), len(sd))).T)  # the counts of all nodes are adjacent in memory

    def noise(self, nodes: Nodes) -> Floats:
        """Return the standard deviation of a reward: (k,)."""
        return self.sd[nodes]

    def prior_totals(self, nodes: Nodes) -> Floats:
        """Return the sum of the rewards that the prior stands for: (k,)."""
        return self.prior_total[nodes]

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        mean = (self.prior_totals(nodes) + self.rewards(nodes)) / (self.prior_plays[nodes] + self.plays(nodes))
        return np.asarray(mean)[:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return np.asarray(self.noise(nodes) / np.sqrt(self.prior_plays[nodes] + self.plays(nodes)))[:, None]

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        mean, spread = self.mean(nodes, contexts), self.spread(nodes, contexts)
        return np.asarray(mean + spread * rng.standard_normal((len(mean), m)))


class LearnedGaussianRows(GaussianRows):
    """The same where neither the standard deviation sd of rewards is known nor the mean m around which arms lie.

    Rewards of an arm are N(mu, sd^2), and mu is N(m, sd^2); both sd and m are learned from all arms together. An arm
    with n rewards of sum t says that m is N(t / n, sd^2 (1 + 1 / n)), so that

        m = sum of t / (1 + n)  /  sum of n / (1 + n),

    and the squares of all rewards minus what m and the means of arms explain,

        sum of (squares - t^2 / (1 + n))  -  (sum of t / (1 + n))^2 / sum of n / (1 + n),

    is sd^2 times a chi-square with one degree of freedom less than there are rewards. The variance of all rewards
    around their mean is added to it as one more degree of freedom, so that two rewards which happen to be close do
    not settle sd. Everything is counted from `centre`, the mean that the prior names. Nodes with a prior of their own
    keep its mean d: such an arm adds squares + d^2 - (d + t)^2 / (1 + n). A row of n plays is one reward of weight n:
    it adds t^2 / n to the squares and one to the rows.
    """

    native = "LearnedGaussian"
    EVIDENCE = ("count", "total", "squares", "rows")
    NON_NEGATIVE = ("count", "rows")
    PRIOR = ("prior_plays", "prior_total")
    shares_means = True
    least_sd = 1e-150  # of rewards that are all equal to the prior mean: squares of it are still above 0
    equal = 1e-13  # variance of rewards, as a share of their squares, below which nothing but rounding is left of it
    squares: Floats  # (nodes,) sum of t^2 / n over rows of n rewards with sum t, counted from the centre
    rows: Floats  # (nodes,) how many rows there were

    def __init__(self, mean: Floats, centre: float, own: Sequence[int] = ()) -> None:
        self.centre = centre
        self.follows = np.ones(len(mean))  # (nodes,) 1 where the prior mean is learned, 0 where it was given
        self.follows[list(own)] = 0
        super().__init__(np.ones(len(mean)), np.ones(len(mean)), mean)

    def attach(self, shape: Shape) -> None:
        self.leaves = shape.node_of  # (arms,)

    def columns(self, count: float, total: float, context: Floats | None) -> Floats:
        return np.array([count, total, (total - count * self.centre) ** 2 / count, 1.0])

    def columns_of_arms(self, batch: Batch) -> Floats:
        squares = batch.sum_by_arm((batch.rewards - batch.plays * self.centre) ** 2 / batch.plays)
        return np.stack([batch.count, batch.total, squares, batch.sum_by_arm(np.ones_like(batch.rewards))], axis=1)

    def learned(self) -> tuple[float, float]:
        """Estimate the mean around which arms lie, from the centre, and the sd of a reward; 0 and 1 before the first.

        Where all rewards are equal, up to rounding, they have said nothing about sd but their size.
        """
        count, total = self.count[self.leaves], self.total[self.leaves]
        squares, rows = float(self.squares[0]), float(self.rows[0])
        if not (rows > 0 and count.sum() > 0):
            return 0.0, 1.0
        total, follows = total - count * self.centre, self.follows[self.leaves]
        d = np.where(follows, 0.0, self.prior_total[self.leaves] - self.centre)
        explained = float(((d + total) ** 2 / (1 + count) - d**2).sum())
        weighted, weight = float((follows * total / (1 + count)).sum()), float((follows * count / (1 + count)).sum())
        mean = weighted / weight if weight > 0 else 0.0
        around = squares - explained - mean * weighted
        around += (squares - float(total.sum()) ** 2 / float(count.sum())) / max(rows, 1.0)
        variance = (around if around > self.equal * squares else squares) / rows
        return mean, max(float(np.sqrt(variance)), self.least_sd)

    def learned_sd(self) -> float:
        """Estimate the standard deviation of a reward; 1 before the first one."""
        return self.learned()[1]

    def prior_totals(self, nodes: Nodes) -> Floats:
        return np.asarray(self.prior_total[nodes] + self.follows[nodes] * self.learned()[0])

    def noise(self, nodes: Nodes) -> Floats:
        return np.full(len(self.count[nodes]), self.learned_sd())

    def check_evidence(self) -> None:
        super().check_evidence()
        if (self.squares < 0).any():
            raise InvalidValue("squares has entries below 0")

    def native_arrays(self) -> list[object]:
        is_arm = np.zeros(len(self.count))
        is_arm[self.leaves] = 1
        return [*super().native_arrays(), is_arm, self.follows]
