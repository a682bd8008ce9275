"""Policies that start from a catalogue's counts."""

from __future__ import annotations

import numpy as np
import pytest

import banditree as bt
from banditree.catalogue import Catalogue
from banditree.errors import InvalidType, InvalidValue

TREE = bt.Tree({"x": ["a", "b"], "y": ["c", "d"]})
COUNTED = Catalogue(TREE, plays=[10, 20, 0, 40], successes=[1, 10, 0, 4])


@pytest.mark.parametrize("kind", [bt.TS, bt.TSC, bt.HTS, bt.UCB1, bt.UCBC, bt.UCT, bt.TSMax])
def test_a_policy_starts_where_learning_the_rewards_one_by_one_ends(kind: type[bt.Policy]) -> None:
    slow = kind(TREE, rng=0)  # type: ignore[call-arg]
    for arm, plays, successes in (("a", 10, 1), ("b", 20, 10), ("d", 40, 4)):
        slow.update_many([arm] * plays, [1.0] * successes + [0.0] * (plays - successes))
    started = COUNTED.policy(kind, rng=0)
    assert type(started) is kind
    for column in ("plays", "mean"):
        assert started.table()[column] == pytest.approx(slow.table()[column])
    assert started.choose_many(50).tolist() == slow.choose_many(50).tolist()


def test_a_weight_makes_every_play_worth_less() -> None:
    rows = {row.path: row for row in COUNTED.policy(bt.TSC, weight=0.1, rng=0).table()}
    assert rows[()].plays == pytest.approx(7.0)
    assert rows["x",].plays == pytest.approx(3.0)
    assert rows["x", "b"].mean == pytest.approx((1 + 1) / (2 + 2))  # Beta(1, 1), one success in two plays
    assert rows["y", "c"].plays == 0
    assert COUNTED.policy(bt.HTS, depth=1, rng=0).depth == 1


def test_rewards_that_are_not_rates() -> None:
    sold = Catalogue(TREE, plays=[10, 20, 0, 40], reward_mean=[5, 9, np.nan, 7], reward_sd=[2, 2, np.nan, 2])
    assert sold.prior is not None
    policy = sold.policy(bt.TS, rng=0)
    assert policy.belief == sold.prior
    k = sold.prior.prior_plays
    mean = {row.path[-1]: row.mean for row in policy.table() if row.path}
    assert mean["b"] == pytest.approx((k * sold.prior.mean + 180) / (k + 20))
    assert sold.policy(bt.TS, prior=bt.Gaussian(3.0), rng=0).belief == bt.Gaussian(3.0)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidType, match="known means but no plays"):
        Catalogue(TREE, means=[0.1] * 4).policy(bt.TS)
    for weight in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(InvalidValue, match="weight"):
            COUNTED.policy(bt.TS, weight=weight)
