"""What is known, and what is left: `chances` and `remaining` against draws from the beliefs, for every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.algorithms import ALGORITHMS
from tests.support.helpers import DIM, make

TREE = bt.Tree({"a": ["x", "y"], "b": ["z"]})
SAMPLING = [name for name, kind in ALGORITHMS.items() if "UCB" not in kind.about.family]
UCBS = [name for name in ALGORITHMS if name not in SAMPLING]


def trained(name: str, **options: Any) -> tuple[bt.Policy, Any]:
    policy = make(name, TREE, 1, **options)
    rng = np.random.default_rng(2)
    for arm in ("x", "x", "y", "z", "z", "z"):
        policy.update(arm, float(rng.random() < 0.6), None if policy.dim is None else rng.standard_normal(policy.dim))
    return policy, None if policy.dim is None else np.ones(policy.dim)


@pytest.mark.parametrize("options", [{}, {"explore": 0.3, "half_life": 20.0}], ids=["plain", "options"])
@pytest.mark.parametrize("name", SAMPLING)
def test_they_are_those_of_draws_from_the_beliefs(name: str, options: dict[str, Any], engine: str) -> None:
    policy, x = trained(name, **options)
    before = policy.choose_many(5, **({} if x is None else {"contexts": np.tile(x, (5, 1))})).tolist()
    policy, x = trained(name, **options)
    chances, remaining = policy.chances(x), policy.remaining(x)
    assert policy.choose_many(5, **({} if x is None else {"contexts": np.tile(x, (5, 1))})).tolist() == before
    assert list(chances) == list(TREE.arms)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    rows, leaves = policy._state.rows, policy._state.walked_tree.shape.node_of
    means = rows.draw_means(leaves, x, 40_000, np.random.default_rng(5))
    winners = np.bincount(means.argmax(axis=0), minlength=3) / 40_000
    assert list(chances.values()) == pytest.approx(winners, abs=4 * 0.5 / 200)  # four standard errors
    best = int(rows.mean(leaves, None if x is None else x[None])[:, 0].argmax())
    means = rows.possible(means)
    gain = means.max(axis=0) - means[best]
    assert remaining.mean == pytest.approx(gain.mean(), abs=5 * gain.std() / np.sqrt(20_000))
    assert remaining.high == pytest.approx(np.quantile(gain, 0.95), rel=0.1, abs=1e-9)
    assert 0 <= remaining.mean <= remaining.high


def test_by_hand(engine: str) -> None:
    """Beta(2, 1) against Beta(1, 1): P(second higher) = E[(1 - p)] = 1/3; E[max] = 3/4, less the mean 2/3."""
    policy = bt.HTS(bt.Tree(["a", "b"]), rng=0)
    policy.update("a", 1)
    assert policy.chances() == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    assert policy.remaining().mean == pytest.approx(3 / 4 - 2 / 3, abs=0.006)


def test_arms_that_share_doubt_share_their_chances(engine: str) -> None:
    """Untried arms of one cluster are as likely the best as each other, and an arm that did well is likelier."""
    tree = bt.Tree({"a": [f"a{i}" for i in range(40)], "b": [f"b{i}" for i in range(41)]})
    policy = bt.ATS(tree, rng=0)
    policy.update_many(["a0"], [20.0], plays=[20])
    chances = list(policy.chances().values())
    assert chances[0] > 1 / 80
    assert np.mean(chances[1:40]) > np.mean(chances[40:])
    assert max(chances[1:]) < chances[0]


def test_nothing_remains_in_the_end(engine: str) -> None:
    policy = bt.ATS(bt.Tree({"a": ["x"], "b": ["y"]}), rng=0)
    assert policy.remaining().high > 0.2
    policy.update_many(["x", "y"], [9e5, 1e5], plays=[1e6, 1e6])
    assert policy.chances() == pytest.approx({"x": 1.0, "y": 0.0})
    assert policy.remaining() == bt.policy.Remaining(0.0, 0.0)


@pytest.mark.parametrize("name", UCBS)
def test_ucb_has_no_posterior(name: str) -> None:
    policy = make(name, TREE)
    for method in (policy.chances, policy.remaining):
        with pytest.raises(InvalidType, match="no posterior"):
            method(None if policy.dim is None else np.ones(DIM))


def test_contexts_are_checked() -> None:
    with pytest.raises(InvalidValue):
        make("LinTS", TREE).chances()
    with pytest.raises(InvalidValue):
        make("TS", TREE).remaining(np.ones(3))
