"""What a rule is: a score for each child of a node. The walk steps to the child with the highest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Belief, Rows
from banditree.beliefs.base import Floats
from banditree.tree.shape import Shape


@dataclass(frozen=True)
class View:
    """What a rule sees: one node, its k children, and m decisions to be made there.

    Results broadcast to (k, m): a row a child, a column a decision. Without contexts all columns are alike, so means
    and spreads come as (k, 1).
    """

    rows: Rows
    node: int
    children: NDArray[np.intp]  # (k,) node numbers
    contexts: Floats | None  # (m, dim)
    m: int
    rng: Any
    summary: NDArray[np.int32] | None  # (nodes,) what the rule's `summarise` keeps, if it does

    def mean(self) -> Floats:
        """Expected reward of each child."""
        return self.rows.mean(self.children, self.contexts)

    def spread(self) -> Floats:
        """How unsure each child's mean is."""
        return self.rows.spread(self.children, self.contexts)

    def sample(self, nodes: NDArray[Any] | None = None) -> Floats:
        """A fresh draw from each child's belief (or from other nodes' in their place) for each decision: (k, m)."""
        return self.rows.sample(self.children if nodes is None else nodes, self.contexts, self.m, self.rng)

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

    @abstractmethod
    def score(self, view: View) -> Floats:
        """A score for each child and decision, broadcasting to (k, m); the highest wins, ties are broken at random."""

    def check(self, belief: Belief) -> None:  # noqa: B027 (most rules work with any belief)
        """Raise where this rule cannot work with this belief."""

    def summarise(self, shape: Shape, rows: Rows, node: int, summary: NDArray[np.int32]) -> int | None:
        """A node number to keep for an inner node, from its children's; called bottom-up after their beliefs change.

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
