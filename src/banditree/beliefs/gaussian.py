"""Gaussian beliefs, for unbounded rewards with a known standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import ROUNDING, Belief, Floats, Nodes, Rows, check_sums, per_node
from banditree.beliefs.siblings import siblings
from banditree.errors import InvalidValue
from banditree.errors.checks import LARGEST, positive, real

WIDEST = 1e300  # largest standard deviation: intervals around it stay finite


@dataclass(frozen=True)
class Gaussian(Belief):
    """Rewards of standard deviation ``sd`` around a mean believed to be N(mean, prior_sd^2); prior_sd defaults to sd.

    The defaults are those of Agrawal and Goyal (2017): posterior N(sum of rewards / (n + 1), sd^2 / (n + 1)).

    >>> Gaussian(sd=2.0)
    Gaussian(sd=2.0, mean=0.0, prior_sd=2.0)
    """

    common = ("sd",)

    sd: float = 1.0
    mean: float = 0.0
    prior_sd: float | None = None

    def __post_init__(self) -> None:
        if self.prior_sd is None:
            object.__setattr__(self, "prior_sd", self.sd)
        for what, value in {"sd": self.sd, "prior_sd": self.prior_sd}.items():
            real(f"Gaussian: {what}", positive(f"Gaussian: {what}", value), 1 / WIDEST, WIDEST)
        real("Gaussian: mean", self.mean, -LARGEST, LARGEST)
        if not 1e-50 < float(self.sd) / float(self.prior_sd) < 1e50:  # type: ignore[arg-type]
            raise InvalidValue(f"Gaussian: sd={self.sd} and prior_sd={self.prior_sd} are too far apart to compute with")

    @property
    def prior_plays(self) -> float:
        """How many rewards the prior is worth."""
        assert self.prior_sd is not None
        return (self.sd / self.prior_sd) ** 2

    def beside(self, rows: Rows, leaves: NDArray[Any]) -> Gaussian | None:
        found = siblings(rows.plays(leaves), rows.rewards(leaves), float(self.sd) ** 2)
        if found is None:
            return None
        return Gaussian(sd=self.sd, mean=found.mean, prior_sd=self.sd * float(np.sqrt(found.spread)))

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> GaussianRows:
        sd, mean, prior_plays = (per_node(n_nodes, getattr(self, f), own, f) for f in ("sd", "mean", "prior_plays"))
        return GaussianRows(sd, prior_plays, prior_plays * mean)


class GaussianRows(Rows):
    """Posterior of node i: N(t / n, sd[i]^2 / n) with n = prior_plays[i] + count[i], t = prior_total[i] + total[i]."""

    native = "Gaussian"
    LAZY = True
    EVIDENCE = ("count", "total")
    NON_NEGATIVE = ("count",)
    PRIOR = ("sd", "prior_plays", "prior_total")
    count: Floats  # (nodes,) rewards seen
    total: Floats  # (nodes,) their sum

    def __init__(self, sd: Floats, prior_plays: Floats, prior_total: Floats) -> None:
        self.sd, self.prior_plays, self.prior_total = sd, prior_plays, prior_total  # (nodes,) each
        self.lay_out(np.zeros((2, len(sd) + 1)).T)  # the counts of all nodes are adjacent in memory

    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        return count, total

    def check_evidence(self) -> None:
        super().check_evidence()
        check_sums("total", self.total, self.count, LARGEST)

    def residue(self, name: str, nodes: NDArray[np.intp]) -> Floats | float:
        return np.asarray(ROUNDING * self.count[nodes] * self.sd[nodes]) if name == "total" else 0.0

    def plays(self, nodes: Nodes) -> Floats:
        return self.count[nodes] * self.scale

    def rewards(self, nodes: Nodes) -> Floats:
        return self.total[nodes] * self.scale

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        mean = (self.prior_total[nodes] + self.rewards(nodes)) / (self.prior_plays[nodes] + self.plays(nodes))
        return np.asarray(mean)[:, None]

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        return np.asarray(self.sd[nodes] / np.sqrt(self.prior_plays[nodes] + self.plays(nodes)))[:, None]

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        mean, spread = self.mean(nodes, contexts), self.spread(nodes, contexts)
        return np.asarray(mean + spread * rng.standard_normal((len(mean), m)))

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        at = None if context is None else context[None]
        mean, spread = (np.ascontiguousarray(part[:, 0]) for part in (self.mean(nodes, at), self.spread(nodes, at)))
        return np.asarray(self.winning.normal_wins(mean, spread))

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        mean, spread = self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0]
        return mean - 1.96 * spread, mean + 1.96 * spread
