"""Beliefs that learn how far to trust the tree: an arm's evidence counts for its siblings as far as they are similar.

Siblings are believed to lie around their parent's mean with a concentration k: large k means that they are similar.
How large it is is not known, so several copies of the belief, each with its own k per level, are kept side by side
(`banditree.beliefs.copies`). The marginal likelihood of the rewards is a copy's weight. docs/adaptive.md states it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.beliefs.base import Nodes
from banditree.beliefs.copies import LARGEST_FACTOR, TOO_EARLY, CopiedRows, weights_for_intervals, word_for
from banditree.beliefs.draws import Coupling, Draws, pick
from banditree.stream import Rng
from banditree.tree.shape import Shape

RATIOS = (1.0, 0.25, 0.0625)  # factor by which the concentration falls with each level up
LEAST_CONCENTRATION = 1e-6
FARTHEST = 1e75  # standard deviations of a reward: whatever is farther away counts as so far, or squares would overflow
LEAST_EVIDENCE = 1e-150  # evidence that has faded below this, or was never above it, counts as none


def zero_if_negligible(evidence: Floats) -> Floats:
    """Return evidence of arms, with what is negligible as 0: (k,)."""
    return np.where(evidence < LEAST_EVIDENCE, 0.0, evidence)


class Sums(NamedTuple):
    """What each cluster knows from the messages of its children, per copy: (clusters, copies) each."""

    strength: Floats  # sum of w, the weights of the children
    total: Floats  # sum of w x, with x the mean of a child
    log_weight: Floats  # (copies,) of the copies, normalised


class Strays(NamedTuple):
    """What the stray is expected to be, an arm that does not follow its cluster: (copies,) each."""

    mean: Floats
    plays: Floats  # that this expectation is worth


class Settings(NamedTuple):
    """What the native engine needs to know besides the evidence and the prior; it reads these by name."""

    height: Floats
    concentration: Floats
    steps: Floats
    n_steps: int
    fall: float
    coupling: Coupling


class AdaptiveRows(CopiedRows):
    """What adaptive beliefs without contexts share, whatever the kind of rewards."""

    ONE: ClassVar[float]  # 1 if the variance of a reward depends on its mean, m (1 - m), else 0
    STEPS: ClassVar[Indices]  # concentrations of arms around their cluster are 4 to the power of these, in units
    n_steps: int  # of them; copies repeat them with other concentrations of clusters
    unit: float  # how many plays the concentration at step 0 is worth
    sd_unit = 1.0  # what standard deviations are measured in
    centre = 0.0  # what means are measured from before they are squared, so that large ones keep their digits

    def attach(self, shape: Shape) -> None:
        super().attach(shape)
        self.n_steps = len(self.STEPS)
        steps, ratio = (grid.ravel() for grid in np.meshgrid(self.STEPS, RATIOS))  # (copies,) each
        up = np.arange(self.height[0] + 1)
        least = self.unit * LEAST_CONCENTRATION
        self.steps = steps.astype(np.float64)
        self.concentration = np.maximum(self.unit * 4.0**steps * ratio ** up[:, None], least)  # (heights, copies)

    def settings(self) -> Settings:
        height = self.height.astype(np.float64)
        return Settings(height, self.concentration, self.steps, self.n_steps, self.fall(), self.coupling)

    # What kinds of rewards differ in

    @abstractmethod
    def known(self) -> tuple[Floats, Floats]:
        """Return the plays and the sum of rewards of every node, with those known beforehand: (nodes,) each.

        A cluster's are those known beforehand alone; the root's are its prior.
        """

    @abstractmethod
    def arms_message(self, plays: Floats, total: Floats, first: Indices) -> tuple[Floats, ...]:
        """Return what the arms of each cluster tell it together, for each step of the concentration.

        Parameters
        ----------
        plays, total
            Of all played arms, cluster by cluster: (arms, 1) each.
        first
            Where the arms of each cluster begin: (clusters,).

        Returns
        -------
        strength, total, squares, logs, fit
            Sums of w, w x, w x^2 and ln w over the arms that are weighed as normal messages, and how well others fit
            each concentration, as a log likelihood: (clusters, steps) each.
        """

    @abstractmethod
    def reward_variance(self, mean: Floats) -> Floats:
        """Return the variance of one reward with this mean, in units of ``self.sd_unit`` squared."""

    @abstractmethod
    def shift(self) -> float:
        """Return how many steps farther than usual the concentrations reach, because a reward varies less."""

    @abstractmethod
    def expected_strays(self, root_mean: Floats, copies: Indices) -> Strays:
        """Return what arms that do not follow their cluster are expected to be."""

    @abstractmethod
    def log_factor(self, plays: Floats, total: Floats, k: Floats, around: Floats, strays: Strays) -> Floats:
        """Return how much likelier the rewards of arms are if they do not follow their cluster, as a log: (arms,)."""

    @abstractmethod
    def drawn(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of normal draws on a scale on which arms compete: (k,) each."""

    @abstractmethod
    def ends(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Return the ends of a 95% interval of a belief with this mean and standard deviation: (k,) each."""

    # Up: messages, and the weights of the copies

    def collect(self) -> Sums:
        """Pass the evidence up the tree, and weigh the copies by how well they explain it."""
        return self.remembered("sums", self._collect)

    def _collect(self) -> Sums:
        shape = self.shape
        plays, totals = self.known()
        clusters, copies = int((shape.content < 0).sum()), len(self.steps)
        strength, total, squares, logs, fit = np.zeros((5, clusters, copies))
        senders, normal = np.zeros((2, clusters))  # children that have sent a message; those weighed as normal ones
        inner = shape.inner[1:]
        before = inner[plays[inner] > 0]  # what is known of a cluster beforehand is one more message
        at, n, t = ~shape.content[before], plays[before, None], totals[before, None]
        strength[at], total[at], squares[at] = n, t, n * self.off_centre(t / n) ** 2
        logs[at], senders[at], normal[at] = np.log(n), 1, 1
        played = np.flatnonzero((shape.content >= 0) & (plays > 0))
        if len(played):
            parents, first = np.unique(~shape.content[shape.parent[played]], return_index=True)
            arms = self.arms_message(plays[played, None], totals[played, None], first)
            for sums, values in zip((strength, total, squares, logs, fit), arms, strict=True):
                sums[parents] += np.tile(values, copies // self.n_steps)
            n_played = np.diff(np.append(first, len(played)))
            senders[parents] += n_played
            normal[parents] += 0 if self.ONE else n_played
        for level in range(len(shape.levels) - 2, 0, -1):
            nodes = np.arange(shape.levels[level], shape.levels[level + 1])
            nodes = nodes[shape.content[nodes] < 0]
            nodes = nodes[senders[~shape.content[nodes]] > 0]
            cluster = ~shape.content[nodes]
            if not len(nodes):
                continue
            n, k = strength[cluster], self.concentration[self.height[nodes]]
            x, w = total[cluster] / n, n * (k + self.ONE) / (n + k + self.ONE)
            parents, first = np.unique(~shape.content[shape.parent[nodes]], return_index=True)
            square = w * self.off_centre(x) ** 2
            for sums, values in ((strength, w), (total, w * x), (squares, square), (logs, np.log(w))):
                sums[parents] += np.add.reduceat(values, first, axis=0)
            for count in (senders, normal):
                count[parents] += np.diff(np.append(first, len(nodes)))
        some = senders > 1
        n, t, m = strength[some], total[some], normal[some, None]
        v = self.reward_variance((t + 0.5 * self.ONE) / (n + self.ONE))
        apart = np.maximum(squares[some] - n * self.off_centre(t / n) ** 2, 0.0)
        likelihood = fit[some] + 0.5 * (logs[some] - apart / v - np.log(n) - (m - 1) * np.log(v))
        log_weight = self.log_prior() + likelihood.sum(axis=0)
        log_weight -= log_weight.max()
        return Sums(strength, total, log_weight - np.log(np.exp(log_weight).sum()))

    def log_prior(self) -> Floats:
        """Return the logarithms of the weights of the copies before their likelihood, up to a constant: (copies,).

        What counts is how far siblings differ compared with the rewards of one of them, hence the shift.
        """
        steps = self.steps + self.shift()
        return np.asarray(-self.fall() * np.maximum(steps, 0.0))

    def fall(self) -> float:
        """Return by how much the log prior of a copy falls with each step of the concentration.

        Where arms are taken to be similar, it hardly matters which is played, and a decision is close to a toss-up.
        With many arms that bet saves trying all of them; with two or three it saves nothing, and it takes longer to
        find out how they differ.
        """
        return max(self.law.fall, self.law.fall_of_few / max(len(self.shape.node_of), 1))

    def in_units(self, difference: Floats) -> Floats:
        """Return differences of rewards in units of ``self.sd_unit``, the largest ones cut."""
        most = FARTHEST * self.sd_unit
        return np.clip(difference, -most, most) / self.sd_unit

    def off_centre(self, mean: Floats) -> Floats:
        return self.in_units(mean - self.centre)

    # Down: beliefs

    def believed(self, nodes: Indices, copies: Nodes) -> tuple[Floats, Floats, Floats]:
        """Return what some copies believe about nodes: mean, variance in units of a reward's, and the parent's mean.

        (k, copies) each.
        """
        shape, sums = self.shape, self.collect()
        plays, totals = self.known()
        n_root = plays[0] + sums.strength[0, copies]
        clusters = len(sums.strength)
        mean, variance = np.empty((2, clusters, len(n_root)))
        mean[0], variance[0] = (totals[0] + sums.total[0, copies]) / n_root, 1 / (n_root + self.ONE)
        inner = shape.inner
        level_of = np.searchsorted(shape.levels, inner, side="right")
        for level in range(2, len(shape.levels)):
            here = np.flatnonzero(level_of == level)
            n, t = sums.strength[here][:, copies], sums.total[here][:, copies]
            mean[here], variance[here] = self._child(inner[here], n, t, mean, variance, copies)
        is_leaf = shape.content[nodes] >= 0
        leaves, clusters_asked = nodes[is_leaf], ~shape.content[nodes[~is_leaf]]
        above = ~shape.content[shape.parent[leaves]]
        beliefs = np.empty((3, len(nodes), len(n_root)))
        of_arms = self._child(leaves, plays[leaves, None], totals[leaves, None], mean, variance, copies)
        beliefs[:, is_leaf] = *of_arms, mean[above]
        beliefs[:, ~is_leaf] = mean[clusters_asked], variance[clusters_asked], mean[clusters_asked]
        return beliefs[0], beliefs[1], beliefs[2]

    def _child(
        self, nodes: Indices, n: Floats, total: Floats, mean: Floats, variance: Floats, copies: Nodes
    ) -> tuple[Floats, Floats]:
        above = ~self.shape.content[self.shape.parent[nodes]]
        k = self.concentration[self.height[nodes]][:, copies]
        per_play = 1 / (k + n)
        share = k * per_play
        return share * mean[above] + total * per_play, 1 / (k + n + self.ONE) + share * share * variance[above]

    def weights(self) -> Floats:
        return np.exp(self.collect().log_weight)

    def arms(self, nodes: Indices, context: Floats | None, copies: Indices) -> Iterator[Draws]:
        mean, variance, around = self.believed(nodes, copies)
        plays, totals = (x[nodes, None] for x in self.known())
        k, strays = self.concentration[0][copies], self.strays(copies)
        factor = np.where(plays > 0, self.log_factor(plays, totals, k, around, strays), 0.0)
        odds = self.coupling.odds * np.exp(np.minimum(factor, LARGEST_FACTOR))
        n = strays.plays + plays
        follows = self.drawn(mean, variance)
        alone = self.drawn((strays.plays * strays.mean + totals) / n, 1 / (n + self.ONE))
        for copy in range(len(copies)):
            yield Draws(*(np.ascontiguousarray(part[:, copy]) for part in (*follows, *alone, odds)))

    def strays(self, copies: Indices) -> Strays:
        return self.expected_strays(self.believed(np.zeros(1, np.intp), copies)[0][0], copies)

    def equals(self, nodes: Indices) -> Indices:
        """Arms with the same parent and evidence are equal."""
        plays, totals = self.known()
        kinds = np.stack([self.shape.parent[nodes], plays[nodes], totals[nodes]], axis=1)
        return np.asarray(np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1), np.intp)

    def draw_copy(self, nodes: Indices, context: Floats | None, copy: int, m: int, rng: Rng) -> Floats:
        """Draw with the covariance that arms have by what their clusters share, and each arm's belief as it is."""
        shape = self.shape
        off = np.empty((shape.n_nodes, m))  # how far nodes are off their means, in standard deviations of a reward
        plays = self.known()[0]
        n_root = plays[0] + self.collect().strength[0, copy]
        off[0] = rng.standard_normal(m) / np.sqrt(n_root + self.ONE)
        for first, end in zip(shape.levels[1:-1], shape.levels[2:], strict=True):
            level = np.arange(first, end)
            leaf = shape.content[level] >= 0
            strength = np.where(leaf, plays[level], 0.0)
            strength[~leaf] = self.collect().strength[~shape.content[level[~leaf]], copy]
            k = self.concentration[self.height[level], copy]
            share, alone = k / (k + strength), 1 / (k + strength + self.ONE)
            off[level] = share[:, None] * off[shape.parent[level]]
            off[level] += np.sqrt(alone)[:, None] * rng.standard_normal((len(level), m))
        arms = self._draws(nodes, context, copy)
        spread = np.sqrt(self.believed(nodes, np.array([copy]))[1])
        draws = arms.mean[:, None] + arms.sd[:, None] * (off[nodes] / spread)
        odds = np.append(arms.odds, 1.0)
        for decision, u in enumerate(rng.random(m).tolist()):
            stray = pick(odds, u)
            if stray < len(nodes):
                draws[stray, decision] = arms.stray_mean[stray] + arms.stray_sd[stray] * rng.standard_normal()
        return draws

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return self._moments(nodes)[0][:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return self._moments(nodes)[1][:, None]

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        return self.ends(*self._moments(nodes))

    def _moments(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the belief about nodes, over all copies: (k,) each."""
        nodes = np.arange(self.shape.n_nodes)[nodes]
        weight = self.weights()
        mean, variance, _ = self.believed(nodes, slice(None))
        variance = variance * self.reward_variance(mean)
        centre = (mean * weight).sum(axis=1)  # node by node: the same digits, however many nodes are asked for
        steps = np.maximum(self.steps + self.shift(), 0.0)
        weight_of_steps, steps = (part.reshape(-1, self.n_steps) for part in (weight, steps))
        wider = weights_for_intervals(weight_of_steps, steps, self.law.interval_fall)
        variance = ((variance + self.in_units(mean - centre[:, None]) ** 2) * wider.ravel()).sum(axis=1)
        return centre, self.sd_unit * np.sqrt(variance)

    def likeness(self) -> Floats:
        """Return how similar the children of each node are: the typical concentration, NaN if not known: (nodes,)."""
        typical = np.full(self.shape.n_nodes, np.nan)
        weight = self.weights()
        plays = self.plays(np.arange(self.shape.n_nodes))
        tried = np.bincount(self.shape.parent[1:], plays[1:] > 0, self.shape.n_nodes)
        known = tried > 1
        typical[known] = np.exp(np.log(self.concentration[self.height[known] - 1]) @ weight)
        return typical

    def trust(self, nodes: Indices) -> list[str]:
        """Describe how similar the arms, or clusters, below each node are, and by how much they differ."""
        k, is_inner = self.likeness()[nodes], self.shape.content[nodes] < 0
        apart = self.sd_unit * np.sqrt(self.reward_variance(self.mean(nodes, None)[:, 0]) / (k + self.ONE))
        comparable = 4 ** self.shift() / self.unit  # what counts is how far they differ in odds, or in sds of a reward
        told = [
            TOO_EARLY if np.isnan(concentration) else f"{word_for(concentration * comparable)}: ±{gap:.2g}"
            for concentration, gap in zip(k.tolist(), apart.tolist(), strict=True)
        ]
        return [words if inner else "" for words, inner in zip(told, is_inner.tolist(), strict=True)]
