"""ATS with priors and rewards of extreme size: finite everywhere, and the unit of the rewards does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidValue
from banditree.policy import engines
from tests.support.helpers import ENGINES, SHOP

PRIORS = [
    *(bt.Beta(a, b) for a, b in [(1e99, 1), (1, 1e99), (1e9, 1), (1e-99, 1), (1e-100, 1e100), (2e40, 1e40)]),
    *(bt.Gaussian(sd) for sd in (1e-300, 1e-160, 1e-100, 1e10, 1e100, 1e160, 1e300)),
    bt.Gaussian(sd=1e-100, mean=1e100),
    bt.Gaussian(sd=1.0, mean=1e100, prior_sd=1e-49),
]
ARMS = ["s1", "s2", "h1", "s1", "h3"] * 60
REWARDS = np.tile([0.0, 1.0, 1.0, 0.5, 0.25], 60)


def check_finite(policy: bt.Policy) -> None:
    """Ask for all that a policy can say; warnings are errors."""
    assert set(policy.choose_many(5)) <= set(SHOP.arms)
    assert len(set(policy.slate(3))) == 3
    shares = policy.propensities()
    assert np.isfinite(shares).all()
    assert shares.sum() == pytest.approx(1)
    for row in policy.table():
        assert np.isfinite([row.mean, *row.interval]).all()
        assert row.interval[0] <= row.interval[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_extreme_priors_are_computed_with(prior: bt.Belief, engine: str) -> None:
    with engines.using(engine):
        for given in (prior, {"shoes": prior, "h2": prior}):
            policy = bt.ATS(SHOP, prior=given, rng=1)
            check_finite(policy)
            policy.update_many(ARMS, REWARDS)
            check_finite(policy)


@pytest.mark.parametrize("sd", [1.7e308, 5e-324])
def test_deviations_at_the_ends_of_doubles_are_refused(sd: float) -> None:
    """Their intervals would overflow, and products with them round to 0."""
    for given in ({"sd": sd}, {"sd": 1.0, "prior_sd": sd}):
        with pytest.raises(InvalidValue, match=r"sd=.* must be from 1e-300 to 1e\+300"):
            bt.Gaussian(**given)


def gaussian(sd: float, by: float = 1.0, plus: float = 0.0, **prior: float) -> Any:
    policy = bt.ATS(SHOP, prior=bt.Gaussian(sd, **prior), rng=1)
    policy.update_many(ARMS, REWARDS * by + plus)
    return policy


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", [2.0**-990, 2.0**-400, 2.0**300])
def test_the_unit_of_the_rewards_does_not_matter(unit: float, engine: str) -> None:
    """A power of two as the unit rounds nothing, so that even the draws are the same."""
    with engines.using(engine):
        one, other = gaussian(1.0), gaussian(unit, by=unit)
        assert list(one.choose_many(200)) == list(other.choose_many(200))
        assert other.propensities() == pytest.approx(one.propensities(), rel=1e-9)
        for here, there in zip(one.table(), other.table(), strict=True):
            assert there.mean / unit == pytest.approx(here.mean, rel=1e-9)
            assert np.array(there.interval) / unit == pytest.approx(here.interval, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_intervals_keep_their_width_far_from_zero(engine: str) -> None:
    """Rewards of about 10^8 with a standard deviation of 1: their squares have no digits left for the variance."""
    with engines.using(engine):
        near, far = gaussian(1.0), gaussian(1.0, plus=1e8, mean=1e8)
        for here, there in zip(near.table(), far.table(), strict=True):
            assert np.diff(there.interval)[0] == pytest.approx(np.diff(here.interval)[0], rel=1e-5)
