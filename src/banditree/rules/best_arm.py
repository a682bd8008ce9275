"""Score a cluster by the belief of its best arm (Zhao 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Array, Floats
from banditree.beliefs import Belief, Rows
from banditree.errors import InvalidValue
from banditree.errors.checks import choice
from banditree.rules.base import View
from banditree.rules.thompson import Thompson

KINDS = ("empirical", "posterior")


@dataclass(frozen=True)
class BestArm(Thompson):
    """Thompson sampling in which a cluster draws from the belief of its best arm.

    ``best="empirical"``: the highest empirical mean among the arms tried (ties: more plays); if none was tried, the
    cluster's own prior. ``best="posterior"``: the highest posterior mean over all its arms.
    """

    native = "BestArm"

    best: str = "empirical"

    def __post_init__(self) -> None:
        choice("best", self.best, KINDS)

    def check(self, belief: Belief) -> None:
        super().check(belief)
        if self.best == "posterior" and belief.dim is not None:
            raise InvalidValue("the arm with the best posterior mean depends on the context; use best='empirical'")

    @property
    def native_flag(self) -> bool:
        return self.best == "posterior"

    def score(self, view: View) -> Floats:
        assert view.summary is not None
        return view.sample(view.summary[view.children])

    def wins(self, view: View) -> Floats:
        assert view.summary is not None
        return view.wins(view.summary[view.children])

    def summarise(self, rows: Rows, node: int, kept: NDArray[np.int32]) -> int | None:
        """Return the best arm below a node: the best of its children's best; or the node itself if no arm was tried."""
        plays = rows.plays(kept)
        if self.best == "posterior":
            means: Array = rows.mean(kept, None)[:, 0]
        else:
            if not plays.any():
                return node
            with np.errstate(invalid="ignore"):
                means = np.where(plays > 0, rows.rewards(kept) / np.where(plays > 0, plays, 1), -np.inf)
        return int(kept[np.lexsort((-np.arange(len(kept)), plays, means))[-1]])
