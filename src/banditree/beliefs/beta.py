"""Beta beliefs, for rewards in [0, 1]. A reward r adds r to the successes and 1 - r to the failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.base.intervals import Number
from banditree.beliefs.base import Belief, Nodes, Rows, least, per_node
from banditree.beliefs.priors import MAX_SPREAD, siblings
from banditree.beliefs.winning import BetaLogOdds
from banditree.errors.checks import MAX_REWARD, positive, real
from banditree.stream import Rng, beta_log_odds

CENTRAL = (0.025, 0.975)  # quantile levels of the ends of an interval


@dataclass(frozen=True)
class Beta(Belief):
    """Beta(a, b) before any reward: as if a - 1 successes and b - 1 failures had been seen (the paper's S_0, F_0).

    >>> Beta(3, 9)
    Beta(a=3, b=9)
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        for what, value in {"a": self.a, "b": self.b}.items():
            real(f"Beta: {what}", positive(f"Beta: {what}", value), 1 / MAX_REWARD, MAX_REWARD)

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> Beta | None:
        estimate = siblings(rows.plays(leaves), rows.rewards(leaves))
        if estimate is None:
            return None
        strength = float(1 / min(estimate.of_another, MAX_SPREAD) - 1)
        return Beta(estimate.mean * strength, (1 - estimate.mean) * strength)

    def rows(self, n_nodes: int, own: Mapping[int, object]) -> BetaRows:
        return BetaRows(per_node(n_nodes, self.a, own, "a"), per_node(n_nodes, self.b, own, "b"))


class BetaRows(Rows):
    """Posterior of node i: Beta(a[i] + successes[i], b[i] + failures[i])."""

    native = "Beta"
    EVIDENCE = NON_NEGATIVE = ("successes", "failures")
    PRIOR = ("a", "b")
    successes: Floats  # (nodes,)
    failures: Floats  # (nodes,)
    support = (0.0, 1.0)
    hint = "for unbounded rewards build the policy with prior=bt.Gaussian()"

    def __init__(self, a: Floats, b: Floats) -> None:
        # A node's numbers are adjacent in memory, because children are read together. The last two belong to the native
        # engine: constants of the posterior that it needs to draw from it.
        self._table = np.zeros((len(a), 4))
        self.lay_out(self._table[:, :2])
        self.a, self.b = a, b  # (nodes,) each
        # If a parameter is below 1, the density is infinite at an end: many draws would round to 0 or 1, and tie, but
        # their log odds do not.
        self.on_log_odds = min(least(a), least(b)) < 1

    def evidence(self, count: Number, total: Number) -> tuple[Number, ...]:
        return total, count - total

    def native_arrays(self) -> list[object]:
        one_for_all = self.a.strides == self.b.strides == (0,)
        return [self._table, *(prior[:1].copy() if one_for_all else prior for prior in (self.a, self.b))]

    def plays(self, nodes: Nodes) -> Floats:
        plays = self.successes[nodes] + self.failures[nodes]
        whole = np.rint(plays)  # r and 1 - r may add up to slightly more or less than 1
        return np.where(np.abs(plays - whole) <= 1e-9 * np.maximum(plays, 1), whole, plays)

    def rewards(self, nodes: Nodes) -> Floats:
        return self.successes[nodes]

    def posterior(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Return the parameters of the posterior: (k, 1) each."""
        return (self.a[nodes] + self.successes[nodes])[:, None], (self.b[nodes] + self.failures[nodes])[:, None]

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        a, b = self.posterior(nodes)
        return a / (a + b)

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        a, b = self.posterior(nodes)
        return np.sqrt(a * b / (a + b + 1)) / (a + b)

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        """Draw the mean reward, or its log odds if some prior parameter is below 1."""
        a, b = self.posterior(nodes)
        size = (len(a), m)
        return np.asarray(beta_log_odds(rng, a, b, size) if self.on_log_odds else rng.beta(a, b, size))

    def draw_means(self, nodes: Indices, context: Floats | None, m: int, rng: Rng) -> Floats:
        a, b = self.posterior(nodes)
        return np.asarray(rng.beta(a, b, (len(a), m)))

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        a, b = (np.ascontiguousarray(part[:, 0]) for part in self.posterior(nodes))
        return np.asarray(self.winning.beta_wins(a, b))

    def quantile(self, nodes: Nodes, contexts: Floats | None, level: float) -> Floats:
        if self.joint:  # an adaptive belief is not Beta(a, b) of its own rewards
            return super().quantile(nodes, contexts, level)
        return quantiles(*self.posterior(nodes), (level,))

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Return the ends of the central 95% of the posterior."""
        a, b = self.posterior(nodes)
        if len(a) == 1:
            ends, which = self._ends(a, b), np.zeros(1, np.intp)
        else:  # most nodes of a large tree have equal posteriors
            pairs, which = np.unique((a + 1j * b)[:, 0], return_inverse=True)
            ends = self._ends(pairs.real[:, None], pairs.imag[:, None])
        low, high = ends[which].T
        return low, high

    def _ends(self, a: Floats, b: Floats) -> Floats:
        """Return the ends of the central part of Beta(a, b): (k, 1), (k, 1) -> (k, 2)."""
        if self.walked_natively:
            return np.asarray(self.winning.beta_ends(a[:, 0].copy(), b[:, 0].copy(), *CENTRAL))
        blocks = range(0, len(a), 4096)
        return np.concatenate([quantiles(a[at : at + 4096], b[at : at + 4096], CENTRAL) for at in blocks])


def quantiles(a: Floats, b: Floats, levels: tuple[float, ...], points: int = 257) -> Floats:
    """Compute quantiles of Beta(a, b), to about three digits of the width: (k, 1), (k, 1) -> (k, levels).

    The log odds z of a Beta draw have density proportional to exp(a ln p + b ln(1 - p)), p = 1 / (1 + exp(-z)), whose
    tails fall like exp(a z) and exp(-b z). We sum it over a grid that reaches far into both and read off the levels.
    Distances from the mode are found with fewer plays where a grid would be lost in rounding, and scaled afterwards.
    """
    posterior = BetaLogOdds(a[:, 0], b[:, 0])
    a, b, centre = posterior.a[:, None], posterior.b[:, None], posterior.mode[:, None]
    scale = np.sqrt(1 / a + 1 / b)
    left, right = 8 * scale + 20 / a, 8 * scale + 20 / b
    step = np.linspace(-1, 1, points)
    from_centre = np.where(step < 0, left, right) * step * np.abs(step)  # (k, points), dense around the centre
    density = np.exp(-posterior.drop(centre + from_centre))
    mass = np.cumsum((density[:, 1:] + density[:, :-1]) * np.diff(from_centre), axis=1)
    mass = np.concatenate([np.zeros_like(a), mass / mass[:, -1:]], axis=1)
    distances = np.empty((len(a), len(levels)))
    for row in range(len(a)):
        distances[row] = np.interp(levels, mass[row], from_centre[row])
    return np.exp(-np.logaddexp(0, -(centre + distances * np.sqrt(posterior.fewer)[:, None])))
