"""Draw the true means of arms given their past rewards: arms are shrunk towards their cluster, clusters towards theirs.

Draws from each arm's own posterior would not give realistic worlds to simulate. The observed rates vary more than the
true means do (by their sampling noise), and independent draws add that noise a second time, so clusters would look
worse than they are. So the spread of the true means is estimated at each level of the tree, and arms borrow strength
from their siblings as far as these are similar.

The model. A node's mean, given the mean m of its parent, is Beta(m k, (1 - m) k), so its variance is m (1 - m) phi with
phi = 1 / (k + 1): phi is the *spread* of a group of nodes (all arms are one group, the clusters of each level another).
An arm with n plays has s ~ Binomial(n, its mean). Then, given the cluster's mean m, the rate y = s / n has mean m and

    Var(y) = m (1 - m) phi + E[mu (1 - mu)] / n = m (1 - m) c,    c = phi + (1 - phi) / n,

because E[mu (1 - mu)] = m (1 - m) - m (1 - m) phi. The best weights for m are therefore 1 / c, whatever m is, and the
weighted rate has variance m (1 - m) / sum(1 / c): the cluster counts as if it had been played sum(1 / c) times itself.
So every level works like the one below it, and one pass up the tree gives every cluster its *effective* plays. On the
way down, every node's mean given its parent's is a standard Beta posterior: Beta(m k + s, (1 - m) k + n - s).

Rewards that are not rates have normal in place of Beta distributions: a node's mean is N(m, sd^2 phi), the mean of n
rewards N(mu, sd^2 / n), so c = phi + 1 / n, and on the way down a mean is N((m k + y n) / (k + n), sd^2 / (k + n)) with
k = 1 / phi. One sd is used for the rewards of all arms, as in `bt.Gaussian`.

Why not the belief of ATS? Its spreads of all levels depend on two numbers, which is too few to say what each level of
categories explains: docs/notes/worlds.md has figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.beliefs import Gaussian
from banditree.beliefs.priors import MAX_SPREAD, Siblings, siblings
from banditree.problems import Bernoulli
from banditree.problems import rewards as families
from banditree.problems.rewards import Rewards
from banditree.stream import Rng
from banditree.tree import Tree

GRID = np.linspace(0.0, 2.5, 51)  # spreads to try, as standard deviations in units of the spread of all arms
COMMON_PLAYS = 10.0  # plays that the pooled variance counts for in the estimate of an arm's own variance
EDGE = 1e-12  # means stay this far from 0 and 1, where Beta has no density
FEW_SPREAD = 0.01  # of all arms, where fewer than two were played


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws the true means of all arms, given their plays and the sums of their rewards."""

    tree: Tree
    plays: Floats  # (arms,)
    totals: Floats  # (arms,) sums of rewards; for rates, successes
    sd: float | None = None  # of the rewards around their arm's mean; None for rates

    @classmethod
    def normal(cls, tree: Tree, plays: Floats, mean: Floats, sd: Floats) -> Posterior:
        """Make one from each arm's plays and the mean and standard deviation of its rewards (NaN if unknown).

        An arm whose own rewards vary more than those of all arms counts as having fewer plays, and one whose rewards
        vary less as having more.
        """
        degrees = np.where(np.isnan(sd), 0.0, np.maximum(plays - 1, 0))  # (arms,)
        squares = degrees * np.nan_to_num(sd) ** 2
        common = squares.sum() / degrees.sum()
        variance = (squares + COMMON_PLAYS * common) / (degrees + COMMON_PLAYS)  # (arms,)
        effective = plays * common / variance
        return cls(tree, effective, effective * np.nan_to_num(mean), float(np.sqrt(common)))

    @property
    def rewards(self) -> Rewards:
        """The distribution of rewards around their means."""
        return Bernoulli() if self.sd is None else families.Gaussian(self.sd)

    @cached_property
    def prior(self) -> Gaussian | None:
        """A prior for every node of a policy, the mean and the spread of all arms; None for rates."""
        if self.sd is None:
            return None
        return Gaussian(sd=self.sd, mean=self._all.mean, prior_sd=self.sd * float(np.sqrt(self._all.spread)))

    def draws(self, n: int, rng: Rng) -> Floats:
        """Draw the true means n times: (n, arms)."""
        return np.array([self.draw(rng) for _ in range(n)])

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
        """Draw the mean of the root; that of rates has a weak prior."""
        if self.sd is None:
            return float(rng.beta(0.5 + y * n, 0.5 + (1 - y) * n))
        return float(y + self.sd / np.sqrt(n) * rng.standard_normal())

    def _given_parent(self, parent: Floats, phi: Floats, n: Floats, y: Floats, rng: Rng) -> Floats:
        """Draw the means of nodes, given their parents' means and their own spread, plays and rates: (nodes given,)."""
        if self.sd is None:
            parent = np.clip(parent, EDGE, 1 - EDGE)
            k = (1 - phi) / np.maximum(phi, EDGE)
            drawn = rng.beta(parent * k + y * n, (1 - parent) * k + (1 - y) * n)
            return np.where(phi > 0, drawn, parent)
        # Written with phi n, so that a spread of 0 and an arm without plays need no special case.
        weight = phi * n / (1 + phi * n)  # n / (k + n)
        sd = self.sd * np.sqrt(phi / (1 + phi * n))  # sd / sqrt(k + n)
        return np.asarray(parent + weight * (y - parent) + sd * rng.standard_normal(len(n)))

    def _unit(self, mean: Floats) -> Floats:
        """The variance of one reward, given its mean."""
        return np.asarray(mean * (1 - mean) if self.sd is None else np.full(np.shape(mean), self.sd**2))

    def _noise(self, phi: Floats, n: Floats) -> Floats:
        """c: the variance of a rate around its parent's mean, in units of `_unit`."""
        return phi + ((1 - phi) if self.sd is None else 1) / n

    # The pass up the tree

    def _climb(self, rng: Rng) -> tuple[Floats, Floats, Floats]:
        """Compute (spread, effective plays, rate) of every node, drawing the spreads from their posterior: (nodes,)."""
        shape = self.tree.shape
        spread, plays, rate = np.zeros((3, shape.n_nodes))
        plays[shape.node_of] = self.plays
        rate[shape.node_of] = self.totals / np.maximum(self.plays, EDGE)
        picks: tuple[float, ...] = ()  # the spreads drawn, from the arms upwards

        def draw_spread(nodes: Places) -> None:
            nonlocal picks
            if picks not in self._spreads:  # the spreads below are all that the plays and rates of a level depend on
                self._spreads[picks] = self._compare_spreads(nodes, plays, rate)
            spreads, chance = self._spreads[picks]
            picks += (float(spreads[min(np.searchsorted(chance, rng.random()), len(spreads) - 1)]),)
            spread[nodes] = picks[-1]

        draw_spread(shape.node_of.astype(np.intp))
        for level in range(len(shape.levels) - 2, 0, -1):
            nodes = np.arange(shape.levels[level], shape.levels[level + 1])
            clusters = nodes[shape.content[nodes] < 0]
            if len(clusters):
                draw_spread(clusters)
            n = plays[nodes]
            weight = np.where(n > 0, 1 / self._noise(spread[nodes], np.maximum(n, EDGE)), 0.0)
            parents, group = np.unique(shape.parent[nodes], return_inverse=True)
            plays[parents] = np.bincount(group, weight)
            rate[parents] = np.bincount(group, weight * rate[nodes]) / np.maximum(plays[parents], EDGE)
        return spread, plays, rate

    @cached_property
    def _spreads(self) -> dict[tuple[float, ...], tuple[Floats, Floats]]:
        """What `_compare_spreads` returned, by the spreads of the levels below."""
        return {}

    @cached_property
    def _overall(self) -> float:
        """The mean of all rewards together; that of rates is kept away from 0 and 1."""
        half = 0.5 if self.sd is None else 0.0
        return float((self.totals.sum() + half) / (self.plays.sum() + 2 * half))

    @cached_property
    def _all(self) -> Siblings:
        """How all arms lie beside each other; the scale of every level's spread."""
        estimate = siblings(self.plays, self.totals, None if self.sd is None else self.sd**2)
        return estimate or Siblings(self._overall, FEW_SPREAD, FEW_SPREAD)

    @property
    def _max_spread(self) -> float:
        return MAX_SPREAD if self.sd is None else np.inf

    def _compare_spreads(self, nodes: Places, plays: Floats, rate: Floats) -> tuple[Floats, Floats]:
        """Return the posterior of how siblings among ``nodes`` differ beyond noise: spreads, cumulated chances (grid,).

        Restricted likelihood of normal rates with variance m (1 - m) c around the parents' means, which are
        integrated out; the prior on the standard deviation is half-normal, scaled by the spread of all arms.
        """
        nodes = nodes[plays[nodes] > 0]
        parent, group = np.unique(self.tree.shape.parent[nodes], return_inverse=True)
        n, y = plays[nodes], rate[nodes]  # (nodes given,)
        total, pooled, size = np.bincount(group, n), np.bincount(group, n * y), len(parent)
        m = (pooled + self._overall) / (total + 1)  # (groups,) one play at the overall rate is added, so never 0 or 1
        unit = self._unit(m)[group]  # (nodes given,)
        phi = np.minimum(GRID**2 * self._all.spread, self._max_spread)
        logs = -0.5 * GRID**2
        for i, spread in enumerate(phi.tolist()):
            weight = 1 / self._noise(spread, n)
            sums = np.bincount(group, weight, minlength=size)
            centre = np.bincount(group, weight * y, minlength=size) / sums
            squares = weight @ ((y - centre[group]) ** 2 / unit)
            logs[i] += 0.5 * (np.log(weight).sum() - np.log(sums).sum() - squares)
        chance = np.exp(logs - logs.max())
        return phi, (chance / chance.sum()).cumsum()

    def __repr__(self) -> str:
        return f"Posterior({self.tree!r}, {self.plays.sum():,.0f} plays)"
