"""Upper confidence bounds: score each child by its mean plus a multiple of its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditree.base.arrays import Floats
from banditree.beliefs.winning import ties
from banditree.errors.checks import choice, positive
from banditree.rules.base import Rule, View

CLOCKS = ("parent", "global")


@dataclass(frozen=True)
class UCB(Rule):
    """Score mean + c spread, with c = sqrt(2 ln n) unless it is given.

    With counts (spread 1 / sqrt(n_i)) this is UCB1's mean + sqrt(2 ln n / n_i), n being the plays of the parent
    (``clock="parent"``, UCT) or of the whole tree (``clock="global"``). With linear beliefs (spread sqrt(x' B^-1 x))
    and a constant c it is LinUCB. Without a prior, a child that was never tried comes first.
    """

    native = "UCB"

    c: float | None = None
    clock: str = "parent"

    def __post_init__(self) -> None:
        if self.c is not None:
            positive("c", self.c)
        choice("clock", self.clock, CLOCKS)

    @property
    def native_c(self) -> float:
        return np.nan if self.c is None else self.c

    @property
    def native_flag(self) -> bool:
        return self.clock == "global"

    def score(self, view: View) -> Floats:
        c = self.c
        if c is None:
            n = view.plays_here if self.clock == "parent" else view.plays_total
            c = np.sqrt(2 * np.log(max(n, 1.0)))
        spread = view.spread()
        untried = np.isinf(spread)
        return np.where(untried, np.inf, view.mean() + c * np.where(untried, 0.0, spread))

    def wins(self, view: View) -> Floats:
        """Return 1 for the child with the highest index; ties share it."""
        scores = np.broadcast_to(self.score(view), (len(view.children), 1))[:, 0]
        return ties(scores)
