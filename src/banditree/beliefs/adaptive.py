"""Beliefs that learn how far to trust the tree: an arm's evidence counts for its siblings as far as they are alike.

Siblings are believed to lie around their parent's mean with a concentration k: large k means that they are alike. How
alike they are is not known, so several *copies* of the belief, each with its own k per level, are kept side by side.
The marginal likelihood of the rewards is a copy's weight; one decision draws one copy by weight. Everything here is a
function of the arms' evidence alone, so neither order nor batches nor moves matter. docs/adaptive.md derives it.
"""

from __future__ import annotations

import copy as copying
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import Floats, Nodes, Rows
from banditree.beliefs.law import LAW
from banditree.tree.shape import Shape

# The same for all worlds. Set by experiments on kinds of worlds that docs/robustness.md lists, with other seeds.
RATIOS = (1.0, 0.25, 0.0625)  # factor by which the concentration falls with each level up
LEAST_CONCENTRATION = 1e-6
LARGEST_FACTOR = 50.0  # of the log odds by which an arm's own rewards change that chance
NEGLIGIBLE = 1e-6  # total weight of the copies that choice probabilities leave out
FARTHEST = 1e75  # standard deviations of a reward: whatever is farther away counts as so far, or squares would overflow
LEAST_EVIDENCE = 1e-150  # evidence that has faded below this, or was never above it, counts as none


def or_none(evidence: Floats) -> Floats:
    """Return evidence of arms, with what is negligible as 0: (k,)."""
    return np.where(evidence < LEAST_EVIDENCE, 0.0, evidence)


def weights_for_intervals(weight: Floats, steps: Floats, fall: float) -> Floats:
    """Return the weights of copies that intervals go by: (..., steps), the last axis from coarse to fine.

    Copies with less difference between siblings count less, by ``fall`` in the log with each step, and half of each
    weight goes to the next copies on either side: the truth lies between two copies, but many rewards leave a single
    one, as if it were known exactly.
    """
    weight = weight * np.exp(-fall * steps)
    padded = np.concatenate([weight[..., :1], weight, weight[..., -1:]], axis=-1)
    shared = 0.5 * weight + 0.25 * (padded[..., :-2] + padded[..., 2:])
    return np.asarray(shared / shared.sum())


class Sums(NamedTuple):
    """What each cluster knows from the messages of its children, per copy: (clusters, copies) each."""

    strength: Floats  # sum of w, the weights of the children
    total: Floats  # sum of w x, with x the mean of a child
    log_weight: Floats  # (copies,) of the copies, normalised


class Strays(NamedTuple):
    """What arms that do not follow their cluster are expected to be, and how many there are: (copies,) each."""

    mean: Floats
    plays: Floats  # that this expectation is worth
    chance: Floats  # of an arm, before its own rewards are considered


class Arms(NamedTuple):
    """What some copies believe about arms: (arms, copies) each."""

    mean: Floats  # if the arm follows its cluster
    variance: Floats  # of its mean, in units of the variance of one reward
    own: Floats  # what part of its mean is its own rewards, and not its cluster
    stray: Floats  # chance that it does not
    stray_mean: Floats  # and what it is drawn from then: its own rewards and what strays are expected to be
    stray_variance: Floats


def heights_of(shape: Shape) -> NDArray[np.intp]:
    """Return how many levels are below each node, at most: (nodes,), 0 for an arm."""
    heights = np.zeros(shape.n_nodes, np.intp)
    for level in range(len(shape.levels) - 2, 0, -1):
        nodes = slice(shape.levels[level], shape.levels[level + 1])
        np.maximum.at(heights, shape.parent[nodes], heights[nodes] + 1)
    return heights


class AdaptiveRows(Rows):
    """What adaptive beliefs share, whatever the kind of rewards. All arms compete with each other directly."""

    joint = True
    law = LAW
    ONE: ClassVar[float]  # 1 if the variance of a reward depends on its mean, m (1 - m), else 0
    STEPS: ClassVar[NDArray[Any]]  # concentrations of arms around their cluster are 4 to the power of these, in units
    BELOW: ClassVar[float]  # the log prior of a copy falls by this much with each step below 0
    HINT: ClassVar[float]  # how fast draws become plainer as plays per arm exceed what an arm's belief is worth
    SHARPEST: ClassVar[tuple[float, float]]  # the largest sharpness: 1 + the first times ln arms, up to the second
    LOOSE: ClassVar[float]  # how plain draws are at least of an arm whose own rewards are all that counts
    STRAY_HINT: ClassVar[float]  # the same two for arms that do not follow their cluster
    STRAY_SHARPEST: ClassVar[float]
    STRAYS: ClassVar[float]  # how many arms are expected not to follow their cluster, after some plays
    SOONER: ClassVar[float]  # how much sooner than after as many plays per arm as what is expected of a stray is worth
    GROWTH: ClassVar[float]  # how fast more strays are expected afterwards
    shape: Shape
    unit: float  # how many plays the concentration at step 0 is worth
    sharpened = True  # whether draws are sharper than the beliefs
    sd_unit = 1.0  # what standard deviations are measured in
    centre = 0.0  # what means are measured from before they are squared, so that large ones keep their digits

    def attach(self, shape: Shape) -> None:
        self.shape = shape
        self.height = heights_of(shape)
        steps, ratio = (grid.ravel() for grid in np.meshgrid(self.STEPS, RATIOS))  # (copies,) each
        up = np.arange(self.height[0] + 1)
        least = self.unit * LEAST_CONCENTRATION
        self.steps = steps.astype(np.float64)
        self.concentration = np.maximum(self.unit * 4.0**steps * ratio ** up[:, None], least)  # (heights, copies)
        self._memo: tuple[bytes, dict[Any, Any]] = b"", {}

    def settings(self) -> list[NDArray[Any]]:
        """Return what the native engine needs to know besides the evidence and the prior."""
        numbers = [
            self.fall(),
            self.BELOW,
            self.law.finest,
            self.HINT,
            self.sharpest(),
            self.LOOSE,
            self.law.shared,
            self.STRAY_HINT,
            self.STRAY_SHARPEST,
            self.STRAYS,
            self.SOONER,
            self.GROWTH,
        ]
        numbers += [self.law.most_stray, LARGEST_FACTOR]
        return [self.height.astype(np.float64), self.concentration, self.steps, np.array(numbers)]

    # What kinds of rewards differ in

    @abstractmethod
    def known(self) -> tuple[Floats, Floats]:
        """Return the plays and the sum of rewards of every node, with those known beforehand: (nodes,) each.

        A cluster's are those known beforehand alone; the root's are its prior.
        """

    @abstractmethod
    def arms_message(self, plays: Floats, total: Floats, first: NDArray[Any]) -> tuple[Floats, ...]:
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
    def expected_strays(self, root_mean: Floats, copies: Any) -> tuple[Floats, Floats]:
        """Return the mean of arms that do not follow their cluster, and the plays this is worth: (copies,) each."""

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
        found: Sums = self._remembered("sums", self._collect)
        return found

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
                sums[parents] += np.tile(values, len(RATIOS))
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
        beyond = np.maximum(-steps, 0.0) + np.maximum(steps - self.law.finest, 0.0)
        return np.asarray(-self.fall() * np.maximum(steps, 0.0) - self.BELOW * beyond)

    def fall(self) -> float:
        """Return by how much the log prior of a copy falls with each step of the concentration.

        Where arms are taken to be alike, it hardly matters which is played, and a decision is close to a toss-up. With
        many arms that bet saves trying all of them; with two or three it saves nothing, and it takes longer to find out
        how they differ.
        """
        return max(self.law.fall, self.law.fall_of_few / max(len(self.shape.node_of), 1))

    def in_units(self, difference: Floats) -> Floats:
        """Return differences of rewards in units of ``self.sd_unit``, the largest ones cut."""
        most = FARTHEST * self.sd_unit
        return np.clip(difference, -most, most) / self.sd_unit

    def off_centre(self, mean: Floats) -> Floats:
        return self.in_units(mean - self.centre)

    # Down: beliefs

    def believed(self, nodes: NDArray[Any], copies: Any) -> tuple[Floats, Floats, Floats]:
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
        found = np.empty((3, len(nodes), len(n_root)))
        is_leaf = shape.content[nodes] >= 0
        leaves = nodes[is_leaf]
        found[0, is_leaf], found[1, is_leaf] = self._child(
            leaves, plays[leaves, None], totals[leaves, None], mean, variance, copies
        )
        found[2, is_leaf] = mean[~shape.content[shape.parent[leaves]]]
        found[0, ~is_leaf], found[1, ~is_leaf] = (
            mean[~shape.content[nodes[~is_leaf]]],
            variance[~shape.content[nodes[~is_leaf]]],
        )
        found[2, ~is_leaf] = found[0, ~is_leaf]
        return found[0], found[1], found[2]

    def _child(
        self, nodes: NDArray[Any], n: Floats, total: Floats, mean: Floats, variance: Floats, copies: Any
    ) -> tuple[Floats, Floats]:
        above = ~self.shape.content[self.shape.parent[nodes]]
        k = self.concentration[self.height[nodes]][:, copies]
        per_play = 1 / (k + n)
        share = k * per_play
        return share * mean[above] + total * per_play, 1 / (k + n + self.ONE) + share * share * variance[above]

    def arms(self, leaves: NDArray[Any], copies: Any) -> Arms:
        """Return what some copies believe about arms: (arms, copies) each."""
        mean, variance, around = self.believed(leaves, copies)
        plays, totals = (x[leaves, None] for x in self.known())
        strays = self.strays(copies)
        factor = self.log_factor(plays, totals, self.concentration[0][copies], around, strays)
        odds = (
            strays.chance / (1 - strays.chance) * np.exp(np.minimum(np.where(plays > 0, factor, 0.0), LARGEST_FACTOR))
        )
        n = strays.plays + plays
        stray_mean = (strays.plays * strays.mean + totals) / n
        k = self.concentration[0][copies]
        if self.sharpened:
            alone = 1 / (k + plays + self.ONE)
            variance = alone + self.law.shared * (variance - alone)
        return Arms(mean, variance, plays / (k + plays), odds / (1 + odds), stray_mean, 1 / (n + self.ONE))

    def strays(self, copies: Any) -> Strays:
        """Return what strays are expected to be, and how many: the more, the less it costs to try all arms as such."""
        root = self.believed(np.zeros(1, np.intp), copies)[0][0]
        mean, plays = self.expected_strays(root, copies)
        tried = self.SOONER * self.plays_per_arm() / (plays + self.ONE)
        expected = self.STRAYS * (np.minimum(tried, 1.0) + self.GROWTH * tried)
        return Strays(mean, plays, np.minimum(expected / max(len(self.shape.node_of), 2), self.law.most_stray))

    def plays_per_arm(self) -> float:
        return float(self.plays(np.array([0]))[0]) / len(self.shape.node_of)

    def sharpest(self) -> float:
        """Return the largest sharpness of draws: of more arms, more draws are high by chance.

        But however many there are, a cluster that was unlucky at first has to be tried again.
        """
        per_log, most = self.SHARPEST
        return min(1.0 + per_log * float(np.log(max(len(self.shape.node_of), 2))), most)

    def least_plain(self, own: Floats) -> Floats:
        """Return how plain draws of arms that follow their cluster are at least: (k,).

        Of arms that are expected to be like many others, some draw is always high; so the less of its mean is an arm's
        own, the more sharply it is drawn.
        """
        sharpest = 1 / self.sharpest()
        return np.asarray(sharpest + max(self.LOOSE - sharpest, 0.0) * own)

    def variance_of_draws(self, variance: Floats, hint: float, least: Floats | float) -> Floats:
        """Return the variance of draws, given that of beliefs.

        An arm whose belief is worth more plays than arms have had on average is drawn more sharply than it is believed,
        with as little as ``least`` of the variance; one whose belief is worth far fewer, plainly, so that a poor start
        is made good.
        """
        if not self.sharpened:
            return variance
        plainness = np.maximum(hint * np.log1p(variance * self.plays_per_arm()), least)
        return np.asarray(variance * np.minimum(plainness, 1.0))

    def components(self, arms: Arms) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mean and standard deviation of the draws of arms that follow their cluster, and of those that do not.

        (k,) each, for what one copy believes about them.
        """
        following = self.variance_of_draws(arms.variance, self.HINT, self.least_plain(arms.own))
        alone = self.variance_of_draws(arms.stray_variance, self.STRAY_HINT, 1 / self.STRAY_SHARPEST)
        return (*self.drawn(arms.mean, following), *self.drawn(arms.stray_mean, alone))

    # What every belief can do

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        """Draw a copy for each decision, then each arm: first whether it follows its cluster, then its mean."""
        weight = np.cumsum(np.exp(self.collect().log_weight))
        found = np.empty((len(np.asarray(nodes)), m))
        for decision in range(m):
            copy = min(int(np.searchsorted(weight, rng.random() * weight[-1], side="right")), len(weight) - 1)
            arms = self._remembered(("arms", copy, np.asarray(nodes).tobytes()), lambda c=copy: self._one(nodes, c))
            mean, sd, stray_mean, stray_sd = self.components(arms)
            stray = rng.random(len(found)) < arms.stray
            normal = rng.standard_normal(len(found))
            found[:, decision] = np.where(stray, stray_mean, mean) + np.where(stray, stray_sd, sd) * normal
        return found

    def unsharpened(self) -> AdaptiveRows:
        plain = copying.copy(self)
        plain.sharpened, plain._memo = False, (b"", {})
        return plain

    def draw_means(self, nodes: NDArray[Any], context: Floats | None, m: int, rng: Any) -> Floats:
        weight = np.exp(self.collect().log_weight)
        parts = []
        for chosen, n in enumerate(rng.multinomial(m, weight / weight.sum()).tolist()):
            if n:
                arms = self._one(nodes, chosen)
                mean, sd, stray_mean, stray_sd = (part[:, None] for part in self.components(arms))
                stray = rng.random((len(mean), n)) < arms.stray[:, None]
                draws = np.where(stray, stray_mean, mean) + np.where(stray, stray_sd, sd) * rng.standard_normal(
                    stray.shape
                )
                parts.append(self.as_reward(draws))
        return np.concatenate(parts, axis=1)

    def as_reward(self, draws: Floats) -> Floats:
        """Return draws, which may be on a scale of their own, as rewards."""
        return draws

    def _one(self, nodes: Any, copy: int) -> Arms:
        return Arms(*(part[:, 0] for part in self.arms(nodes, [copy])))

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        nodes = np.asarray(nodes)
        found: Floats = self._remembered(("wins", nodes.tobytes()), lambda: self._wins(nodes))
        return found.copy()

    def _wins(self, nodes: NDArray[Any]) -> Floats:
        """Average over the copies, negligible ones left out. Arms with the same parent and evidence are equal."""
        plays, totals = self.known()
        parent = self.shape.parent[nodes]
        order = np.lexsort((totals[nodes], plays[nodes], parent))
        keys = np.stack([parent[order], plays[nodes][order], totals[nodes][order]])
        fresh = np.append(True, (np.diff(keys) != 0).any(axis=0))
        kind = np.empty(len(nodes), np.intp)
        kind[order] = np.cumsum(fresh) - 1
        one_each, size = nodes[order[fresh]], np.bincount(kind).astype(np.float64)
        weight = np.exp(self.collect().log_weight)
        rising = np.argsort(weight)
        kept = rising[np.cumsum(weight[rising]) > NEGLIGIBLE]
        found = np.zeros(len(size))
        arms = self.arms(one_each, kept)
        for at, copy in enumerate(kept):
            of_copy = Arms(*(np.ascontiguousarray(part[:, at]) for part in arms))
            found += weight[copy] * self.winning.normal_mixed_wins(*self.components(of_copy), of_copy.stray, size)
        return np.asarray((found / (found @ size))[kind])

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return self._moments(nodes)[0][:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return self._moments(nodes)[1][:, None]

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        return self.ends(*self._moments(nodes))

    def _moments(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the belief about nodes, over all copies: (k,) each."""
        nodes = np.arange(self.shape.n_nodes)[nodes]
        weight = np.exp(self.collect().log_weight)
        mean, variance, _ = self.believed(nodes, slice(None))
        variance = variance * self.reward_variance(mean)
        centre = (mean * weight).sum(axis=1)  # node by node: the same digits, however many nodes are asked for
        steps = np.maximum(self.steps + self.shift(), 0.0)
        weight_of_steps, steps = (part.reshape(len(RATIOS), -1) for part in (weight, steps))
        wider = weights_for_intervals(weight_of_steps, steps, self.law.interval_fall)
        variance = ((variance + self.in_units(mean - centre[:, None]) ** 2) * wider.ravel()).sum(axis=1)
        return centre, self.sd_unit * np.sqrt(variance)

    def likeness(self) -> Floats:
        """Return how alike the children of each node are: the typical concentration, NaN if not known: (nodes,)."""
        found = np.full(self.shape.n_nodes, np.nan)
        weight = np.exp(self.collect().log_weight)
        plays = self.plays(np.arange(self.shape.n_nodes))
        tried = np.bincount(self.shape.parent[1:], plays[1:] > 0, self.shape.n_nodes)
        known = tried > 1
        found[known] = np.exp(np.log(self.concentration[self.height[known] - 1]) @ weight)
        return found

    def _remembered(self, key: Any, compute: Any) -> Any:
        """Return what was computed since the evidence last changed, or compute it."""
        evidence = np.concatenate([getattr(self, name) for name in self.EVIDENCE]).tobytes()
        if self._memo[0] != evidence:
            self._memo = evidence, {}
        if key not in self._memo[1]:
            self._memo[1][key] = compute()
        return self._memo[1][key]
