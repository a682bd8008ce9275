"""UCB's choice at one node by the native shortcut, one index a class of children alike: the arms of plain scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import banditree as bt
from banditree.policy import engines
from tests.support.winning import P_FLOOR

native = pytest.importorskip("banditree._native")

PLAIN = 2**31 - 1
K = 60


def ucb1(min_wide: int, rng: int = 0) -> bt.UCB1:
    with engines.using("native"):
        policy = bt.UCB1(bt.Tree(K), rng=rng)
    policy._state.walk.native.min_wide = min_wide
    return policy


def test_runs_without_ties_are_those_of_plain_scores() -> None:
    rewards = np.random.default_rng(1).random((2000, K))  # (steps, arms) what each arm would give
    histories: list[list[Any]] = []
    for min_wide in (2, PLAIN):
        policy = ucb1(min_wide)
        policy.update_many(range(K), np.linspace(0.2, 0.7, K))  # tells all arms apart
        arms = []
        for step in rewards:
            arms.append(policy.choose())
            policy.update(arms[-1], step[arms[-1]])
        histories.append(arms)
    assert histories[0] == histories[1]
    assert len(set(histories[0])) > K / 2


@pytest.mark.parametrize("untried", [0, 7])
def test_ties_between_and_inside_classes_are_broken_evenly(untried: int) -> None:
    # Twenty arms with 2 of 4, the others with 1 of 4; or some never tried at all, which come first.
    tried = np.arange(K - untried)
    plays = np.repeat(tried, 4)
    good = plays < 20
    rewards = np.where(good, np.tile([1, 1, 0, 0], len(tried)), np.tile([1, 0, 0, 0], len(tried)))
    policy = ucb1(2)
    policy.choose()
    policy.update_many(plays, rewards)
    counts = np.bincount(np.array(policy.choose_many(50_000), int), minlength=K)
    best = np.arange(K - untried, K) if untried else np.arange(20)
    assert counts[best].sum() == 50_000
    assert stats.chisquare(counts[best]).pvalue > P_FLOOR


def test_ties_of_unlike_classes_are_broken_by_their_sizes() -> None:
    """With so small a c the index rounds to the mean: 1 of 2 and 2 of 4 tie, two classes of 3 and of 9 arms."""
    arms = np.concatenate([np.repeat(np.arange(3), 2), np.repeat(np.arange(3, 12), 4), np.arange(12, K)])
    rewards = np.concatenate([np.tile([1, 0], 3), np.tile([1, 1, 0, 0], 9), np.zeros(K - 12)])
    with engines.using("native"):
        policy = bt.Policy(bt.Tree(K), belief=bt.Counts(), rule=bt.UCB(c=1e-20), rng=3)
    policy._state.walk.native.min_wide = 2
    policy.update_many(arms, rewards)
    counts = np.bincount(np.array(policy.choose_many(50_000), int), minlength=K)
    assert counts[12:].sum() == 0
    assert stats.chisquare(counts[:12]).pvalue > P_FLOOR
