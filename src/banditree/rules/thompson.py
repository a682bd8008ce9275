"""Thompson's rule (1933): score each child by a draw from its belief."""

from __future__ import annotations

from dataclasses import dataclass

from banditree.base.arrays import Floats
from banditree.beliefs.base import Belief
from banditree.errors import InvalidValue
from banditree.rules.base import Rule, View


@dataclass(frozen=True)
class Thompson(Rule):
    """Score theta_child ~ belief(child), as in the paper's Algorithms 1 to 3."""

    native = "Thompson"

    def check(self, belief: Belief) -> None:
        if not belief.can_sample:
            raise InvalidValue(f"{belief} has no prior to sample from; use bt.Beta() or bt.Gaussian() with this rule")

    def score(self, view: View) -> Floats:
        return view.sample()

    def wins(self, view: View) -> Floats:
        return view.wins()
