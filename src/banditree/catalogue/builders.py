"""Build candidates for a catalogue: with their default priors for rates, with normal beliefs for other rewards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from banditree.beliefs import Gaussian
from banditree.catalogue.candidates import KINDS, Candidate
from banditree.catalogue.items import Catalogue
from banditree.policy import Policy
from banditree.rules import UCB


def factory(candidate: Candidate, catalogue: Catalogue) -> Callable[..., Any]:
    """Return a factory of the candidate, to be called as ``factory(tree, rng=rng)``.

    UCB policies take no prior; with normal beliefs their bound is mean + sd sqrt(2 ln n / n_i).
    """
    prior = catalogue.prior
    if prior is None:
        return candidate.factory
    if _has_no_prior(candidate):
        return partial(Policy, belief=prior, rule=UCB(), depth=candidate.levels)
    return partial(candidate.factory, prior=prior)


def code(candidate: Candidate, catalogue: Catalogue) -> str:
    """Return the Python code that builds the candidate."""
    prior = catalogue.prior
    if prior is None:
        return candidate.code
    belief = _spelled(prior)
    if _has_no_prior(candidate):
        deep = "" if candidate.levels is None else f", depth={candidate.levels}"
        return f"bt.Policy(tree, belief={belief}, rule=bt.UCB(){deep})"
    return f"{candidate.code[:-1]}, prior={belief})"


def _has_no_prior(candidate: Candidate) -> bool:
    return KINDS[candidate.policy].family == "UCB"


def _spelled(prior: Gaussian) -> str:
    return f"bt.Gaussian(sd={prior.sd:.4g}, mean={prior.mean:.4g}, prior_sd={prior.prior_sd:.4g})"
