"""Define what a rule is: it scores the children of a node, and the walk steps to the child with the highest score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats, Indices, Places
from banditree.beliefs import Belief, Rows
from banditree.errors import InvalidType
from banditree.errors.checks import real
from banditree.stream import Rng


@dataclass(frozen=True)
class View:
    """What a rule sees: one node, its k children, and m decisions to make there.

    Results broadcast to (k, m): one row per child, one column per decision. Without contexts all columns are equal, so
    means and spreads have shape (k, 1).
    """

    rows: Rows
    node: int
    children: Places  # (k,) node numbers
    contexts: Floats | None  # (m, dim)
    m: int
    rng: Rng
    summary: NDArray[np.int32] | None  # (nodes,) the representative of each node, if the rule has `summarise`

    def mean(self) -> Floats:
        """Return the expected reward of each child."""
        return self.rows.mean(self.children, self.contexts)

    def spread(self) -> Floats:
        """Return the uncertainty of each child's mean."""
        return self.rows.spread(self.children, self.contexts)

    def quantile(self, level: float) -> Floats:
        """Return the quantile of each child's belief at a level between 0 and 1, such as 0.95."""
        return self.rows.quantile(self.children, self.contexts, real("level", level, 1e-12, 1 - 1e-12))

    def sample(self, nodes: Indices | None = None) -> Floats:
        """Draw from each child's belief (or from those of the given nodes instead) for each decision: (k, m)."""
        return self.rows.sample(self.children if nodes is None else nodes, self.contexts, self.m, self.rng)

    def wins(self, nodes: Indices | None = None) -> Floats:
        """Return the probability that each child (or each given node instead) has the highest draw: (k,)."""
        context = None if self.contexts is None else self.contexts[0]
        return self.rows.wins(self.children if nodes is None else nodes, context)

    def plays(self) -> Floats:
        """Return the number of rewards seen below each child: (k, 1)."""
        return self.rows.plays(self.children)[:, None]

    @property
    def plays_here(self) -> float:
        """Number of rewards seen below this node."""
        return float(self.rows.plays(np.array([self.node]))[0])

    @property
    def plays_total(self) -> float:
        """Number of rewards seen in the whole tree."""
        return float(self.rows.plays(np.array([0]))[0])


@dataclass(frozen=True)
class Rule(ABC):
    """Score children from their beliefs. Subclasses are frozen dataclasses whose fields are the options."""

    native: ClassVar[str] = ""  # name of its twin in the native engine, if there is one; not inherited

    @property
    def native_c(self) -> float:
        """The numeric option of the native twin, NaN for none."""
        return np.nan

    @property
    def native_flag(self) -> bool:
        """The boolean option of the native twin."""
        return False

    @abstractmethod
    def score(self, view: View) -> Floats:
        """Return a score for each child and decision, as (k, m) or (k, 1). The highest wins; ties are random."""

    def check(self, belief: Belief) -> None:  # noqa: B027 (most rules work with any belief)
        """Raise if this rule cannot work with this belief."""

    def wins(self, view: View) -> Floats:
        """Return the probability that each child has the highest score in one decision, ties shared: (k,), with sum 1.

        Choice probabilities (`decide`, `propensities`) need it; a rule without it can still choose.
        """
        raise InvalidType(f"{type(self).__name__} has no method `wins`, which choice probabilities need")

    def summarise(self, rows: Rows, node: int, kept: NDArray[np.int32]) -> int | None:
        """Choose the representative of an inner node (a node number) from ``kept``, those of its children.

        Called after the beliefs below a node have changed, lowest nodes first, and with fewer children if some arms may
        not be chosen. None, the default, means that this rule has no representatives.
        """
        return None

    @property
    def summarises(self) -> bool:
        """Whether this rule has its own `summarise`."""
        return type(self).summarise is not Rule.summarise

    def parameters(self) -> dict[str, object]:
        """Return the options, for saving."""
        return asdict(self)
