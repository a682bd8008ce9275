"""Counts of plays and empirical means without a prior, as the UCB rules need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.beliefs.base import Belief, CountedRows, Nodes, Rows
from banditree.errors import InvalidValue
from banditree.stream import Rng


@dataclass(frozen=True)
class Counts(Belief):
    """No prior: nothing is believed before the first reward.

    >>> Counts()
    Counts()
    """

    can_sample = False

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> Belief | None:
        raise InvalidValue("counts have no prior: a new arm is tried first; leave prior= out")

    def rows(self, n_nodes: int, own: Mapping[int, object]) -> CountsRows:
        return CountsRows(n_nodes)


class CountsRows(CountedRows):
    """Node i: ``count[i]`` rewards with sum ``total[i]``."""

    native = "Counts"
    PRIOR = ()

    def __init__(self, n_nodes: int) -> None:
        self.lay_out(np.zeros((2, n_nodes)).T)  # the counts of all nodes are adjacent in memory

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        count = self.count[nodes]
        return np.asarray(np.where(count > 0, self.total[nodes] / np.where(count > 0, count, 1), 0.0))[:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """Return 1 / sqrt(n), infinite for nodes never tried."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.sqrt(self.plays(nodes)))[:, None]

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        raise InvalidValue("counts have no prior to sample from; use belief=bt.Beta() or bt.Gaussian()")

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Return Hoeffding's 95% interval, which is valid for rewards in [0, 1]; infinite for nodes never tried."""
        mean, spread = self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0]
        reach = np.sqrt(np.log(2 / 0.05) / 2) * spread
        return mean - reach, mean + reach
