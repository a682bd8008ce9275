"""Two samples of choices: what is chance and what is not, also where no arm was chosen often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import banditree as bt
from banditree.testing import alike


def sample(weights: np.ndarray, n: int, seed: int) -> Counter[str | int]:
    return Counter(np.random.default_rng(seed).choice(len(weights), n, p=weights / weights.sum()).tolist())


@pytest.mark.parametrize(("arms", "n"), [(2, 80), (7, 80), (40, 400), (40, 80), (1000, 500)])
def test_samples_of_one_distribution_are_alike(arms: int, n: int) -> None:
    tree = bt.Tree.from_labels(np.arange(arms) % 5)
    for seed in range(50):
        weights = np.random.default_rng(seed).random(arms)
        assert alike(sample(weights, n, seed + 1000), sample(weights, n, seed + 2000), tree)


@pytest.mark.parametrize("picks", [3, 10, 30])
def test_arms_chosen_seldom_can_differ(picks: int) -> None:
    one = Counter[str | int](dict.fromkeys(range(40), picks))
    two = Counter[str | int](dict.fromkeys(range(40, 80), picks))
    assert not alike(one, two)


def test_clusters_differ_where_no_arm_does() -> None:
    """A thousand arms, each chosen once or so, but half of them more often than the other half."""
    tree = bt.Tree.from_labels([0] * 500 + [1] * 500)
    weights = np.ones(1000)
    lean = np.r_[np.ones(500), 2.5 * np.ones(500)]
    one, two = sample(weights, 600, 1), sample(lean, 600, 2)
    assert alike(one, two)
    assert not alike(one, two, tree)


def test_two_arms_that_differ_clearly() -> None:
    assert not alike(Counter[str | int]({0: 70, 1: 10}), Counter[str | int]({0: 10, 1: 70}))
    assert alike(Counter[str | int](), Counter[str | int]())
