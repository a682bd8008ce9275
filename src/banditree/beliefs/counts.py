"""Counts of plays and empirical means without a prior, as the UCB rules need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import ROUNDING, Belief, Floats, Nodes, Rows, check_sums
from banditree.errors import InvalidValue
from banditree.errors.checks import LARGEST


@dataclass(frozen=True)
class Counts(Belief):
    """No prior: nothing is believed before the first reward.

    >>> Counts()
    Counts()
    """

    can_sample = False

    def prior_from_siblings(self, rows: Rows, leaves: NDArray[Any]) -> Belief | None:
        raise InvalidValue("counts have no prior: a new arm is tried first; leave prior= out")

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> CountsRows:
        return CountsRows(n_nodes)


class CountsRows(Rows):
    """Node i: ``count[i]`` rewards with sum ``total[i]``."""

    native = "Counts"
    LAZY = True
    EVIDENCE = ("count", "total")
    NON_NEGATIVE = ("count",)
    PRIOR = ()
    count: Floats  # (nodes,)
    total: Floats  # (nodes,)

    def __init__(self, n_nodes: int) -> None:
        self.lay_out(np.zeros((2, n_nodes + 1)).T)  # the counts of all nodes are adjacent in memory

    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        return count, total

    def check_evidence(self) -> None:
        super().check_evidence()
        check_sums("total", self.total, self.count, LARGEST)

    def residue(self, name: str, nodes: NDArray[np.intp]) -> Floats | float:
        return ROUNDING * self.count[nodes] if name == "total" else 0.0

    def plays(self, nodes: Nodes) -> Floats:
        return self.count[nodes] * self.scale

    def rewards(self, nodes: Nodes) -> Floats:
        return self.total[nodes] * self.scale

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        count = self.count[nodes]
        return np.asarray(np.where(count > 0, self.total[nodes] / np.where(count > 0, count, 1), 0.0))[:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """Return 1 / sqrt(n), infinite for nodes never tried."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.sqrt(self.plays(nodes)))[:, None]

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        raise InvalidValue("counts have no prior to sample from; use belief=bt.Beta() or bt.Gaussian()")

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Return Hoeffding's 95% interval, which is valid for rewards in [0, 1]; infinite for nodes never tried."""
        mean, spread = self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0]
        reach = np.sqrt(np.log(2 / 0.05) / 2) * spread
        return mean - reach, mean + reach
