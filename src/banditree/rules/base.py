"""What a rule is: a score for each child of a node. The walk steps to the child with the highest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.base import Floats
from banditree.errors import InvalidType


@dataclass(frozen=True)
class View:
    """What a rule sees: one node, its k children, and m decisions to be made there.

    Results broadcast to (k, m): one row per child, one column per decision. Without contexts all columns are alike, so
    means and spreads come as (k, 1).
    """

    rows: Rows
    node: int
    children: NDArray[np.intp]  # (k,) node numbers
    contexts: Floats | None  # (m, dim)
    m: int
    rng: Any
    summary: Any  # what the rule's `summarise` keeps, if it does: indexed by arrays of node numbers

    def mean(self) -> Floats:
        """Expected reward of each child."""
        return self.rows.mean(self.children, self.contexts)

    def spread(self) -> Floats:
        """How unsure each child's mean is."""
        return self.rows.spread(self.children, self.contexts)

    def sample(self, nodes: NDArray[Any] | None = None) -> Floats:
        """A fresh draw from each child's belief (or from other nodes' in their place) for each decision: (k, m)."""
        return self.rows.sample(self.children if nodes is None else nodes, self.contexts, self.m, self.rng)

    def wins(self, nodes: NDArray[Any] | None = None) -> Floats:
        """How likely each child (or another node in its place) is to have the highest of one draw each: (k,)."""
        context = None if self.contexts is None else self.contexts[0]
        return self.rows.wins(self.children if nodes is None else nodes, context)

    def plays(self) -> Floats:
        """Rewards seen below each child: (k, 1)."""
        return self.rows.plays(self.children)[:, None]

    @property
    def plays_here(self) -> float:
        """Rewards seen below this node."""
        return float(self.rows.plays(np.array([self.node]))[0])

    @property
    def plays_total(self) -> float:
        """Rewards seen in the whole tree."""
        return float(self.rows.plays(np.array([0]))[0])


@dataclass(frozen=True)
class Rule(ABC):
    """Scores children from their beliefs. Subclasses are frozen dataclasses whose fields are the options."""

    native: ClassVar[str] = ""  # its name in the native engine, where it has a twin there; not inherited

    @property
    def native_c(self) -> float:
        """The number that the native twin takes, NaN for none."""
        return np.nan

    @property
    def native_flag(self) -> bool:
        """The switch that the native twin takes."""
        return False

    @abstractmethod
    def score(self, view: View) -> Floats:
        """A score for each child and decision, broadcasting to (k, m); the highest wins, ties are broken at random."""

    def check(self, belief: Belief) -> None:  # noqa: B027 (most rules work with any belief)
        """Raise where this rule cannot work with this belief."""

    def check_fading(self) -> None:  # noqa: B027 (most rules keep nothing)
        """Raise where what this rule keeps does not hold while evidence fades by itself (``half_life``)."""

    def wins(self, view: View) -> Floats:
        """How likely each child is to have the highest score in one decision, ties shared: (k,), with sum 1.

        Probabilities of choices (`decide`, `propensities`) need it; a rule without it makes choices all the same.
        """
        raise InvalidType(f"{type(self).__name__} has no method `wins`, which probabilities of choices need")

    def summarise(self, rows: Rows, node: int, kept: NDArray[np.int32]) -> int | None:
        """A node number to keep for an inner node, from those that its children keep; the lowest nodes come first.

        Called after the beliefs below a node have changed, and with fewer children where some arms may not be chosen.
        None, the default, means that this rule keeps nothing.
        """
        return None

    @property
    def summarises(self) -> bool:
        """Whether `summarise` is there to be called."""
        return type(self).summarise is not Rule.summarise

    def parameters(self) -> dict[str, Any]:
        """The options, for saving."""
        return asdict(self)
