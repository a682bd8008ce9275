"""Beliefs about expected rewards, one file each. To add one, add a file here and a name to BELIEFS."""

from banditree.beliefs.base import Belief, Rows
from banditree.beliefs.beta import Beta, BetaRows
from banditree.beliefs.counts import Counts, CountsRows
from banditree.beliefs.gaussian import Gaussian, GaussianRows
from banditree.beliefs.linear import Linear, LinearRows

BELIEFS: dict[str, type[Belief]] = {belief.__name__: belief for belief in (Beta, Gaussian, Linear, Counts)}

__all__ = [
    "BELIEFS",
    "Belief",
    "Beta",
    "BetaRows",
    "Counts",
    "CountsRows",
    "Gaussian",
    "GaussianRows",
    "Linear",
    "LinearRows",
    "Rows",
]
