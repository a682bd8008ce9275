"""A log with contexts: variance by visitor, category and item against the truth, and advice on what to run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree.catalogue.contexts import (
    ContextModel,
    advise_contexts,
    inspect_contexts,
    simulate_contexts,
    split_variance,
)
from banditree.errors import InvalidValue

Floats = NDArray[np.float64]
TREE = bt.Tree({f"k{c}": [f"a{i}" for i in range(24) if i % 4 == c] for c in range(4)})


def truth(rng: np.random.Generator, *, slopes: float) -> Floats:
    """Level and two slopes of every arm, most of them shared by its category: (arms, 3)."""
    centres = rng.normal(0, 1, (4, 3)) * [1.0, slopes, slopes]
    category = np.array([int(str(TREE.path(arm)[0])[1]) for arm in TREE.arms])
    coefficients: Floats = centres[category] + rng.normal(0, 1, (24, 3)) * [0.3, 0.2 * slopes, 0.2 * slopes]
    return coefficients


def log_of(theta: Floats, rng: np.random.Generator, n: int = 4000) -> Any:
    """Visitors whose two numbers are correlated, and far from 0."""
    u = rng.normal(size=(n, 2))
    arms = rng.integers(24, size=n)
    rewards = theta[arms, 0] + (theta[arms, 1:] * u).sum(axis=1) + rng.normal(0, 1, n)
    frame = {"item": [TREE.arms[arm] for arm in arms], "reward": rewards, "a": 50 + 10 * u[:, 0]}
    return bt.read_log(frame | {"b": 3 * u[:, 0] + u[:, 1]}, arm="item", reward="reward", context=["a", "b"])


def test_parts_of_the_variance_add_up() -> None:
    theta = np.random.default_rng(0).normal(size=(24, 3))
    u = np.random.default_rng(1).normal(size=(40_000, 2))
    expected = theta[:, :1] + theta[:, 1:] @ u.T  # (arms, visitors)
    assert sum(split_variance(TREE, theta).values()) == pytest.approx(expected.var(), rel=0.02)
    flat = split_variance(bt.Tree(24), theta)
    assert list(flat) == ["visitor", "item", "visitor and item"]
    assert sum(flat.values()) == pytest.approx(sum(split_variance(TREE, theta).values()))


def test_the_parts_of_a_log_are_those_of_the_truth() -> None:
    """95% intervals of five shares in four logs: fewer than 15 of 20 inside has a chance below 0.1%."""
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        theta = truth(rng, slopes=0.6)
        real = split_variance(TREE, theta)
        inspection = inspect_contexts(log_of(theta, rng), TREE, rng=seed)
        for row in inspection.parts:
            share = real[row.part] / sum(real.values())
            inside.append(row.interval[0] - 0.02 <= share <= row.interval[1] + 0.02)
        assert inspection.noise.value == pytest.approx(1.0, abs=0.05)
    assert sum(inside) >= 15


def test_worlds_are_like_the_truth_where_the_log_is_long() -> None:
    rng = np.random.default_rng(5)
    theta = truth(rng, slopes=0.6)
    model = ContextModel.fit(log_of(theta, rng, 40_000), TREE)
    drawn = np.mean([model.draw(rng)[0] for _ in range(40)], axis=0)
    assert np.abs(drawn[:, 0] - theta[:, 0]).max() < 0.15
    lengths = [np.linalg.norm(coefficients[:, 1:], axis=1) for coefficients in (drawn, theta)]
    assert np.abs(lengths[0] - lengths[1]).max() < 0.2
    assert model.factor.shape == (2, 2)


def test_contexts_pay_off_where_they_matter_and_not_elsewhere() -> None:
    advices = []
    for slopes in (1.0, 0.0):
        rng = np.random.default_rng(2)
        log = log_of(truth(rng, slopes=slopes), rng)
        advices.append(advise_contexts(log, TREE, horizon=1500, seeds=6, rng=1))
    with_slopes, without = advices
    assert (with_slopes.policy, with_slopes.verdict) == ("LinATS", "contexts")
    assert without.verdict != "contexts"
    assert with_slopes.of_contexts.saving > 3 * abs(without.of_contexts.saving)
    assert with_slopes.of_tree.saving > 0
    assert with_slopes.to_dict()["policies"][0]["regret"] == min(with_slopes.table["regret"])
    for shown in (with_slopes.to_text(), with_slopes.to_html(), with_slopes._repr_html_()):
        assert "LinATS" in shown
        assert "visitor and category" in shown


def test_what_cannot_be_asked() -> None:
    plain = bt.read_log({"item": ["a0", "a1"], "reward": [0.0, 1.0]}, arm="item", reward="reward")
    with pytest.raises(InvalidValue, match="no contexts"):
        ContextModel.fit(plain, TREE)
    same = bt.read_log(
        {"item": ["a0", "a1"], "reward": [0, 1], "x": [2, 2]}, arm="item", reward="reward", context=["x"]
    )
    with pytest.raises(InvalidValue, match="do not vary"):
        ContextModel.fit(same, TREE)
    rng = np.random.default_rng(0)
    model = ContextModel.fit(log_of(truth(rng, slopes=0.5), rng, 200), TREE)
    with pytest.raises(InvalidValue, match="seeds"):
        simulate_contexts(model, horizon=10, seeds=1)
