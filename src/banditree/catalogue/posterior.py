"""Draw the true means of arms given their counts: arms are shrunk towards their cluster, clusters towards theirs.

Drawing every arm from its own flat Beta(1, 1) posterior would not give realistic worlds to simulate. The observed rates
vary more than the true means do (by their sampling noise), and a draw from flat posteriors adds that noise a second
time, so clusters would look worse than they are. Therefore the spread of the true means is estimated at each level of
the tree, and arms borrow strength from their siblings as far as siblings are alike.

The model. A node's mean, given the mean m of its parent, is Beta(m k, (1 - m) k), so its variance is m (1 - m) phi with
phi = 1 / (k + 1): phi is the *spread* of a group of nodes (all arms are one group, the clusters of each level another).
An arm with n plays has s ~ Binomial(n, its mean). Then, given the cluster's mean m, the rate y = s / n has mean m and

    Var(y) = m (1 - m) phi + E[mu (1 - mu)] / n = m (1 - m) c,    c = phi + (1 - phi) / n,

because E[mu (1 - mu)] = m (1 - m) - m (1 - m) phi. The best weights for m are therefore 1 / c, whatever m is, and the
weighted rate has variance m (1 - m) / sum(1 / c): the cluster counts as if it had been played sum(1 / c) times itself.
So every level works like the one below it, and one pass up the tree gives every cluster its *effective* plays. On the
way down, every node's mean given its parent's is a standard Beta posterior: Beta(m k + s, (1 - m) k + n - s).

`NormalPosterior` does the same for rewards that are not rates, with normal in place of Beta distributions: a node's
mean, given the mean m of its parent, is N(m, sd^2 phi), and the mean y of an arm's n rewards is N(mu, sd^2 / n), so
that, given its cluster's mean, Var(y) = sd^2 c with c = phi + 1 / n. Weights on the way up are 1 / c, and on the way
down a mean is N((m k + y n) / (k + n), sd^2 / (k + n)) with k = 1 / phi. One sd is used for the rewards of all arms, as
in `bt.Gaussian`; an arm whose own rewards vary more than that counts as having fewer plays, and one whose rewards vary
less as having more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.beliefs import Gaussian
from banditree.problems import Bernoulli
from banditree.problems import rewards as families
from banditree.problems.rewards import Rewards
from banditree.stream import Rng
from banditree.tree import Tree

GRID = np.linspace(0.0, 2.5, 51)  # spreads to try, as standard deviations in units of the spread of all arms
COMMON_PLAYS = 10.0  # plays that the pooled variance counts for in the estimate of an arm's own variance
EDGE = 1e-12  # means stay this far from 0 and 1, where Beta has no density


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws the true means of all arms, given their plays and the sums of their rewards."""

    MAX_SPREAD: ClassVar[float] = 0.95  # largest spread to try

    tree: Tree
    plays: Floats  # (arms,)
    totals: Floats  # (arms,) sums of rewards; for rates, successes

    @property
    def rewards(self) -> Rewards:
        """The distribution of rewards around their means."""
        return Bernoulli()

    def draw(self, rng: Rng) -> Floats:
        """Draw the true mean of every arm, in the order of ``tree.arms``: (arms,)."""
        shape = self.tree.shape
        spread, plays, rate = self._climb(rng)
        mean = np.empty(shape.n_nodes)
        mean[0] = self._root(plays[0], rate[0], rng)
        for low, high in zip(shape.levels[1:-1].tolist(), shape.levels[2:].tolist(), strict=True):
            level = slice(low, high)
            mean[level] = self._given_parent(mean[shape.parent[level]], spread[level], plays[level], rate[level], rng)
        return mean[shape.node_of]

    def _root(self, n: float, y: float, rng: Rng) -> float:
        """Draw the mean of the root, with a weak prior."""
        return float(rng.beta(0.5 + y * n, 0.5 + (1 - y) * n))

    def _given_parent(self, parent: Floats, phi: Floats, n: Floats, y: Floats, rng: Rng) -> Floats:
        """Draw the means of nodes, given their parents' means and their own spread, plays and rates: (nodes given,)."""
        parent = np.clip(parent, EDGE, 1 - EDGE)
        strength = (1 - phi) / np.maximum(phi, EDGE)  # k, how many plays the parent's mean counts for
        drawn = rng.beta(parent * strength + y * n, (1 - parent) * strength + (1 - y) * n)
        return np.where(phi > 0, drawn, parent)

    def _unit(self, mean: Floats) -> Floats:
        """The variance of one reward, given its mean."""
        variance: Floats = mean * (1 - mean)
        return variance

    @staticmethod
    def _noise(phi: Any, n: Any) -> Any:
        """c: the variance of a rate around its parent's mean, in units of `_unit`."""
        return phi + (1 - phi) / n

    @staticmethod
    def _beyond(variance: float, noise: float) -> float:
        """Solve for phi if the rates' variance is ``variance`` and 1 / n is ``noise``: the inverse of `_noise`."""
        return (variance - noise) / max(1 - noise, 0.1)

    def __repr__(self) -> str:
        return f"Posterior({self.tree!r}, {self.plays.sum():,.0f} plays)"

    def draws(self, n: int, rng: Rng) -> Floats:
        """Draw the true means n times: (n, arms)."""
        return np.array([self.draw(rng) for _ in range(n)])

    # The pass up the tree

    def _climb(self, rng: Rng) -> tuple[Floats, Floats, Floats]:
        """Compute (spread, effective plays, rate) of every node, drawing the spreads from their posterior: (nodes,)."""
        shape = self.tree.shape
        spread = np.zeros(shape.n_nodes)
        plays, rate = self._leaves[0].copy(), self._leaves[1].copy()
        picks = [_pick(self._arm_spread, rng)]
        spread[shape.node_of] = picks[0]
        for level in range(len(shape.levels) - 2, 0, -1):
            nodes = np.arange(shape.levels[level], shape.levels[level + 1])
            clusters = nodes[shape.content[nodes] < 0]
            if len(clusters):
                below = tuple(picks)  # everything that this level's plays and rates depend on
                if below not in self._cluster_spreads:
                    self._cluster_spreads[below] = self._spreads(clusters, plays, rate)
                picks.append(_pick(self._cluster_spreads[below], rng))
                spread[clusters] = picks[-1]
            self._pool(shape.parent[nodes], spread[nodes], plays, rate, nodes)
        return spread, plays, rate

    @cached_property
    def _cluster_spreads(self) -> dict[tuple[float, ...], tuple[Floats, Floats]]:
        """Cache of the posterior of the next level's spread, by the spreads of the levels below it."""
        return {}

    @cached_property
    def _leaves(self) -> tuple[Floats, Floats]:
        """Plays and rate of the arms, by node; 0 for clusters: (nodes,)."""
        shape = self.tree.shape
        plays, rate = np.zeros(shape.n_nodes), np.zeros(shape.n_nodes)
        plays[shape.node_of] = self.plays
        rate[shape.node_of] = self.totals / np.maximum(self.plays, EDGE)
        return plays, rate

    @cached_property
    def overall(self) -> float:
        """The rate of all plays together, kept away from 0 and 1."""
        return float((self.totals.sum() + 0.5) / (self.plays.sum() + 1))

    @cached_property
    def _scale(self) -> float:
        """The spread of all arms around the overall rate, as a standard deviation: the scale of every level's spread.

        By moments: E[(y - m)^2] / (m (1 - m)) = phi + (1 - phi) / n, averaged with weights n, which favours arms with
        much data. If noise explains all of the variance, the standard error of the estimate is used instead.
        """
        seen = self.plays > 0
        if seen.sum() < 2:
            return 0.1
        n = self.plays[seen]
        y = self.totals[seen] / n
        weight = np.minimum(n, 10 * np.median(n))  # so that no single arm dominates
        weight = weight / weight.sum()
        m = (float(weight @ y) * len(n) + self.overall) / (len(n) + 1)  # never 0 or 1
        noise = float(weight @ (1 / n))
        phi = self._beyond(float(weight @ (y - m) ** 2 / self._unit(np.array(m))), noise)
        error = noise * np.sqrt(2 / (seen.sum() - 1))
        return float(np.sqrt(np.clip(phi, error, self.MAX_SPREAD)))

    @cached_property
    def _arm_spread(self) -> tuple[Floats, Floats]:
        plays, rate = self._leaves
        return self._spreads(self.tree.shape.node_of.astype(np.intp), plays, rate)

    def _spreads(self, nodes: NDArray[np.intp], plays: Floats, rate: Floats) -> tuple[Floats, Floats]:
        """Return the posterior of how siblings among ``nodes`` differ beyond noise: spreads and probabilities, (grid,).

        Restricted likelihood of normal rates with variance m (1 - m) c around the parents' means, which are
        integrated out; the prior on the standard deviation is half-normal, scaled by the spread of all arms.
        """
        nodes = nodes[plays[nodes] > 0]
        parent, group = np.unique(self.tree.shape.parent[nodes], return_inverse=True)
        n, y = plays[nodes], rate[nodes]  # (nodes given,)
        total = np.bincount(group, n, minlength=len(parent))
        pooled = np.bincount(group, n * y, minlength=len(parent))
        m = (pooled + self.overall) / (total + 1)  # (groups,) one play at the overall rate is added, so never 0 or 1
        unit = self._unit(m)[group]  # (nodes given,)
        phi = np.minimum((GRID * self._scale) ** 2, self.MAX_SPREAD)
        logs = -0.5 * GRID**2
        for i, spread in enumerate(phi.tolist()):
            weight = 1 / self._noise(spread, n)
            sums = np.bincount(group, weight, minlength=len(parent))
            centre = np.bincount(group, weight * y, minlength=len(parent)) / sums
            squares = weight @ ((y - centre[group]) ** 2 / unit)
            logs[i] += 0.5 * (np.log(weight).sum() - np.log(sums).sum() - squares)
        chance = np.exp(logs - logs.max())
        return phi, chance / chance.sum()

    def _pool(
        self, parent: NDArray[np.int32], phi: Floats, plays: Floats, rate: Floats, nodes: NDArray[np.intp]
    ) -> None:
        """Set the effective plays and rate of the parents of these nodes, all on one level, in place."""
        n = plays[nodes]
        weight = np.where(n > 0, 1 / self._noise(phi, np.maximum(n, EDGE)), 0.0)
        parents, group = np.unique(parent, return_inverse=True)
        total = np.bincount(group, weight)
        plays[parents] = total
        rate[parents] = np.bincount(group, weight * rate[nodes]) / np.maximum(total, EDGE)


def _pick(known: tuple[Floats, Floats], rng: Rng) -> float:
    spreads, chance = known
    return float(spreads[min(np.searchsorted(chance.cumsum(), rng.random()), len(spreads) - 1)])


@dataclass(frozen=True, eq=False, repr=False)
class NormalPosterior(Posterior):
    """Draws the true means of all arms, given their effective plays and the corresponding sums of rewards."""

    MAX_SPREAD = np.inf

    sd: float  # of the rewards around their arm's mean

    @classmethod
    def of(cls, tree: Tree, plays: Floats, mean: Floats, sd: Floats) -> NormalPosterior:
        """Make one from each arm's plays and the mean and standard deviation of its rewards (NaN if unknown)."""
        degrees = np.where(np.isnan(sd), 0.0, np.maximum(plays - 1, 0))  # (arms,)
        squares = degrees * np.nan_to_num(sd) ** 2
        common = squares.sum() / degrees.sum()
        variance = (squares + COMMON_PLAYS * common) / (degrees + COMMON_PLAYS)  # (arms,)
        effective = plays * common / variance
        return cls(tree, effective, effective * np.nan_to_num(mean), float(np.sqrt(common)))

    @property
    def rewards(self) -> families.Gaussian:
        """The distribution of rewards around their means."""
        return families.Gaussian(self.sd)

    @cached_property
    def prior(self) -> Gaussian:
        """A prior for every node of a policy: the mean and the spread of all arms."""
        is_played = self.plays > 0
        weight = 1 / self._noise(self._scale**2, self.plays[is_played])
        mean = float(weight @ (self.totals[is_played] / self.plays[is_played]) / weight.sum())
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
