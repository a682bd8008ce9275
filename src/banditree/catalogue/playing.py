"""The candidates as they play on a catalogue: with their own priors on rates, with normal beliefs on other rewards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from banditree.beliefs import Gaussian
from banditree.catalogue.candidates import Candidate
from banditree.catalogue.items import Catalogue
from banditree.policy import Policy
from banditree.rules import UCB

BOUNDS = {"UCB1": 0, "UCBC": 1, "UCT": None}  # policies without a prior: their depth


def factory(candidate: Candidate, catalogue: Catalogue) -> Callable[..., Any]:
    """Build the candidate, called as ``factory(tree, rng=rng)``.

    Upper confidence bounds have no prior of their own: with normal beliefs theirs is mean + sd sqrt(2 ln n / n_i).
    """
    prior = catalogue.prior
    if prior is None:
        return candidate.factory
    if candidate.policy in BOUNDS:
        return partial(Policy, belief=prior, rule=UCB(), depth=_depth(candidate))
    return partial(candidate.factory, prior=prior)


def code(candidate: Candidate, catalogue: Catalogue) -> str:
    """Say how to build the candidate in Python."""
    prior = catalogue.prior
    if prior is None:
        return candidate.code
    belief = _spelled(prior)
    if candidate.policy in BOUNDS:
        depth = _depth(candidate)
        deep = "" if depth is None else f", depth={depth}"
        return f"bt.Policy(tree, belief={belief}, rule=bt.UCB(){deep})"
    return f"{candidate.code[:-1]}, prior={belief})"


def _depth(candidate: Candidate) -> int | None:
    return BOUNDS[candidate.policy] if candidate.depth is None else candidate.depth


def _spelled(prior: Gaussian) -> str:
    return f"bt.Gaussian(sd={prior.sd:.4g}, mean={prior.mean:.4g}, prior_sd={prior.prior_sd:.4g})"
