"""Beliefs about expected rewards, one file each. To add one, add a file here and a name to BELIEFS."""

from banditree.beliefs.adaptive_kinds import AdaptiveBeta, AdaptiveGaussian, Hierarchical, adaptive
from banditree.beliefs.adaptive_linear import AdaptiveLinear, adaptive_linear
from banditree.beliefs.base import Belief, Rows
from banditree.beliefs.beta import Beta, BetaRows
from banditree.beliefs.counts import Counts, CountsRows
from banditree.beliefs.gaussian import Gaussian, GaussianRows
from banditree.beliefs.linear import Linear, LinearRows

BELIEFS: dict[str, type[Belief]] = {
    belief.__name__: belief
    for belief in (Beta, Gaussian, Linear, Counts, AdaptiveBeta, AdaptiveGaussian, AdaptiveLinear, Hierarchical)
}

__all__ = [
    "BELIEFS",
    "AdaptiveBeta",
    "AdaptiveGaussian",
    "AdaptiveLinear",
    "Belief",
    "Beta",
    "BetaRows",
    "Counts",
    "CountsRows",
    "Gaussian",
    "GaussianRows",
    "Hierarchical",
    "Linear",
    "LinearRows",
    "Rows",
    "adaptive",
    "adaptive_linear",
]
