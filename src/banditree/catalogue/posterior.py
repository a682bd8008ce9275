"""What counts say about the true means: arms are shrunk towards their cluster, clusters towards theirs.

A flat Beta(1, 1) posterior of every arm would not do as a world to simulate in. The observed rates vary more than the
true means do (by their sampling noise), and a draw from flat posteriors adds that noise a second time; clusters would
look worse than they are. So the spread of the true means is estimated, at each level of the tree, and arms borrow from
their siblings as far as siblings are alike.

The model. A node's mean, given the mean m of its parent, is Beta(m k, (1 - m) k), so its variance is m (1 - m) phi with
phi = 1 / (k + 1): phi is the *spread* of a kind of node (arms are one kind, the clusters of each level another).
An arm with n plays has s ~ Binomial(n, its mean). Then, given the cluster's mean m, the rate y = s / n has mean m and

    Var(y) = m (1 - m) phi + E[mu (1 - mu)] / n = m (1 - m) c,    c = phi + (1 - phi) / n,

because E[mu (1 - mu)] = m (1 - m) - m (1 - m) phi. The best weights for m are therefore 1 / c, whatever m is, and the
weighted rate has variance m (1 - m) / sum(1 / c): the cluster counts as if it had been played sum(1 / c) times itself.
So each level is the level below over again, and one pass up the tree gives every cluster its *effective* plays. On the
way down, every node's mean given its parent's is a plain Beta posterior: Beta(m k + s, (1 - m) k + n - s).

`normal.NormalPosterior` is the same for rewards that are not rates, with normal in place of Beta distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.gamma import log_beta
from banditree.problems import Bernoulli
from banditree.problems.problem import Rng
from banditree.problems.rewards import Rewards
from banditree.tree import Tree

Floats = NDArray[np.float64]
GRID = np.linspace(0.0, 2.5, 51)  # spreads that are tried, as standard deviations in units of the spread of all arms
EDGE = 1e-12  # means stay this far from 0 and 1, where Beta has no density


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws the true means of all arms, given their plays and the sums of their rewards."""

    WIDEST: ClassVar[float] = 0.95  # spread that is tried

    tree: Tree
    plays: Floats  # (arms,)
    totals: Floats  # (arms,) sums of rewards: successes

    @property
    def rewards(self) -> Rewards:
        """How rewards fall around their means."""
        return Bernoulli()

    def draw(self, rng: Rng) -> Floats:
        """The true mean of every arm, in the order of ``tree.arms``: (arms,)."""
        shape = self.tree.shape
        spread, plays, rate = self._climb(rng)
        mean = np.empty(shape.n_nodes)
        mean[0] = self._root(plays[0], rate[0], rng)
        for low, high in zip(shape.levels[1:-1].tolist(), shape.levels[2:].tolist(), strict=True):
            level = slice(low, high)
            mean[level] = self._given_parent(mean[shape.parent[level]], spread[level], plays[level], rate[level], rng)
        return mean[shape.node_of]

    def _root(self, n: float, y: float, rng: Rng) -> float:
        """The mean of everything, of which little is known beforehand."""
        return float(rng.beta(0.5 + y * n, 0.5 + (1 - y) * n))

    def _given_parent(self, parent: Floats, phi: Floats, n: Floats, y: Floats, rng: Rng) -> Floats:
        """Means of nodes, given those of their parents, their spread, plays and rates: (nodes given,)."""
        parent = np.clip(parent, EDGE, 1 - EDGE)
        strength = (1 - phi) / np.maximum(phi, EDGE)  # k, how many plays the parent's word is worth
        drawn = rng.beta(parent * strength + y * n, (1 - parent) * strength + (1 - y) * n)
        return np.where(phi > 0, drawn, parent)

    def _unit(self, mean: Floats) -> Floats:
        """The variance of one reward, by its mean."""
        found: Floats = mean * (1 - mean)
        return found

    @staticmethod
    def _noise(phi: Any, n: Any) -> Any:
        """c: the variance of a rate around its parent's mean, in units of `_unit`."""
        return phi + (1 - phi) / n

    @staticmethod
    def _beyond(variance: float, noise: float) -> float:
        """phi, where rates vary by ``variance`` in all and 1 / n is ``noise``: the inverse of `_noise`."""
        return (variance - noise) / max(1 - noise, 0.1)

    def noise(self, mean: Floats, phi: float, n: Floats) -> Floats:
        """The variance of the rates of arms around their cluster's mean: (arms,)."""
        found: Floats = self._unit(mean) * self._noise(phi, np.maximum(n, EDGE))
        return found

    def evidence(self, arm: int, mean: Floats, unsure: Floats, phi: float) -> Floats:
        """log P(what is known of an arm), less what no cluster changes, for clusters of these averages: (clusters,).

        ``unsure`` is the variance of what is known of the averages. Successes are beta-binomial.
        """
        n, s = self.plays[arm], self.totals[arm]
        mean = np.clip(mean, 1e-9, 1 - 1e-9)
        strength = 1 / np.clip(phi + unsure / self._unit(mean), 1e-9, 0.95) - 1
        a, b = mean * strength, (1 - mean) * strength
        found: Floats = log_beta(a + s, b + n - s) - log_beta(a, b)
        return found

    def __repr__(self) -> str:
        return f"Posterior({self.tree!r}, {self.plays.sum():,.0f} plays)"

    def draws(self, n: int, rng: Rng) -> Floats:
        """Several at once: (n, arms)."""
        return np.array([self.draw(rng) for _ in range(n)])

    # The way up

    def _climb(self, rng: Rng) -> tuple[Floats, Floats, Floats]:
        """(spread, effective plays, rate) of every node, the spreads drawn from what is known of them: (nodes,)."""
        shape = self.tree.shape
        spread = np.zeros(shape.n_nodes)
        plays, rate = self._leaves[0].copy(), self._leaves[1].copy()
        picks = [_pick(self._arm_spread, rng)]
        spread[shape.node_of] = picks[0]
        for level in range(len(shape.levels) - 2, 0, -1):
            nodes = np.arange(shape.levels[level], shape.levels[level + 1])
            clusters = nodes[shape.content[nodes] < 0]
            if len(clusters):
                below = tuple(picks)  # all that this level's plays and rates depend on
                if below not in self._known:
                    self._known[below] = self._spreads(clusters, plays, rate)
                picks.append(_pick(self._known[below], rng))
                spread[clusters] = picks[-1]
            self._pool(shape.parent[nodes], spread[nodes], plays, rate, nodes)
        return spread, plays, rate

    @cached_property
    def _known(self) -> dict[tuple[float, ...], tuple[Floats, Floats]]:
        """What is known of the next level's spread, by the spreads of the levels below it."""
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
        """The rate of all plays together, kept off 0 and 1."""
        return float((self.totals.sum() + 0.5) / (self.plays.sum() + 1))

    @cached_property
    def arm_spread(self) -> float:
        """phi of arms in their clusters, the expected value of what is known of it."""
        spreads, chance = self._arm_spread
        return float(spreads @ chance)

    @cached_property
    def _scale(self) -> float:
        """The spread of all arms around the overall rate, as a standard deviation: what no level is expected to exceed.

        By moments: E[(y - m)^2] / (m (1 - m)) = phi + (1 - phi) / n, averaged with weights n, which favours arms that
        are known well. Where noise explains all there is, the standard error of the estimate takes its place.
        """
        seen = self.plays > 0
        if seen.sum() < 2:
            return 0.1
        n = self.plays[seen]
        y = self.totals[seen] / n
        weight = np.minimum(n, 10 * np.median(n))  # no arm speaks for all others
        weight = weight / weight.sum()
        m = (float(weight @ y) * len(n) + self.overall) / (len(n) + 1)  # never 0 or 1
        noise = float(weight @ (1 / n))
        found = self._beyond(float(weight @ (y - m) ** 2 / self._unit(np.array(m))), noise)
        error = noise * np.sqrt(2 / (seen.sum() - 1))
        return float(np.sqrt(np.clip(found, error, self.WIDEST)))

    @cached_property
    def _arm_spread(self) -> tuple[Floats, Floats]:
        plays, rate = self._leaves
        return self._spreads(self.tree.shape.node_of.astype(np.intp), plays, rate)

    def _spreads(self, nodes: NDArray[np.intp], plays: Floats, rate: Floats) -> tuple[Floats, Floats]:
        """(spreads, their probabilities): how siblings among ``nodes`` differ beyond noise. (grid,) both.

        Restricted likelihood of normal rates with variance m (1 - m) c around the parents' means, which are
        integrated out; the prior on the standard deviation is half-normal, of the scale of all arms' spread.
        """
        nodes = nodes[plays[nodes] > 0]
        parent, group = np.unique(self.tree.shape.parent[nodes], return_inverse=True)
        n, y = plays[nodes], rate[nodes]  # (nodes given,)
        total = np.bincount(group, n, minlength=len(parent))
        pooled = np.bincount(group, n * y, minlength=len(parent))
        m = (pooled + self.overall) / (total + 1)  # (groups,) with one play at the overall rate, so never 0 or 1
        unit = self._unit(m)[group]  # (nodes given,)
        phi = np.minimum((GRID * self._scale) ** 2, self.WIDEST)
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
        """Give the parents of these nodes, all of one level, their effective plays and rate, in place."""
        n = plays[nodes]
        weight = np.where(n > 0, 1 / self._noise(phi, np.maximum(n, EDGE)), 0.0)
        parents, group = np.unique(parent, return_inverse=True)
        total = np.bincount(group, weight)
        plays[parents] = total
        rate[parents] = np.bincount(group, weight * rate[nodes]) / np.maximum(total, EDGE)


def _pick(known: tuple[Floats, Floats], rng: Rng) -> float:
    spreads, chance = known
    return float(spreads[min(np.searchsorted(chance.cumsum(), rng.random()), len(spreads) - 1)])
