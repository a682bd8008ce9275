"""Rewards and contexts: exact forms, moments with derived bounds, and a control that must fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.problems import Bernoulli, Bounded, Gaussian, Instance, Rewards, Uniform, linear
from banditree.tree import Tree

N = 20_000


@pytest.mark.parametrize(
    ("rewards", "mean", "variance"),
    [
        (Bernoulli(), 0.3, 0.3 * 0.7),
        (Bounded(4.0), 0.3, 0.3 * 0.7 / 5),  # Beta(a, b): mean (1 - mean) / (a + b + 1)
        (Bounded(0.5), 0.9, 0.9 * 0.1 / 1.5),
        (Gaussian(2.0), -1.0, 4.0),
        (Uniform(), 1.5, 3.0**2 / 12),
        (Uniform(), -1.5, 3.0**2 / 12),
    ],
)
def test_moments(rewards: Rewards, mean: float, variance: float) -> None:
    """Mean within 5 standard errors, variance within 5 of its own; both tests fail for a law 10% off."""
    rng = np.random.default_rng(0)
    drawn = np.array([rewards.draw(mean, rng) for _ in range(N)])
    error = math.sqrt(variance / N)
    assert abs(drawn.mean() - mean) < 5 * error
    squares = (drawn - mean) ** 2
    assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(N)
    wrong = np.array([rewards.draw(mean * 0.9, rng) for _ in range(N)])
    assert abs(wrong.mean() - mean) > 5 * error


def test_each_reward_is_one_call_of_the_stream() -> None:
    def fresh() -> np.random.Generator:
        return np.random.default_rng(3)

    assert Bernoulli().draw(0.4, fresh()) == float(fresh().random() < 0.4)
    assert Bounded(5.0).draw(0.4, fresh()) == fresh().beta(0.4 * 5.0, (1 - 0.4) * 5.0)
    assert Gaussian(3.0).draw(0.4, fresh()) == 0.4 + 3.0 * fresh().standard_normal()
    assert Uniform().draw(-0.4, fresh()) == 2 * -0.4 * fresh().random()
    for rewards, call in (
        (Bernoulli(), "random"),
        (Bounded(5.0), "beta"),
        (Gaussian(), "standard_normal"),
        (Uniform(), "random"),
    ):
        one, two = fresh(), fresh()
        rewards.draw(0.4, one)
        getattr(two, call)(*((0.4 * 5.0, (1 - 0.4) * 5.0) if call == "beta" else ()))
        assert one.random() == two.random()


def test_certain_rewards() -> None:
    rng = np.random.default_rng(0)
    assert {Bounded(2.0).draw(1.0, rng) for _ in range(5)} == {1.0}
    assert {Bounded(2.0).draw(0.0, rng) for _ in range(5)} == {0.0}
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn
    assert {Bernoulli().draw(1.0, rng) for _ in range(100)} == {1.0}
    assert {Bernoulli().draw(0.0, rng) for _ in range(100)} == {0.0}


def test_signs_of_uniform_rewards() -> None:
    rng = np.random.default_rng(0)
    assert all(-3.0 <= Uniform().draw(-1.5, rng) <= 0 for _ in range(1000))
    assert Uniform().draw(0.0, rng) == 0


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_spreads(value: float) -> None:
    with pytest.raises(InvalidValue, match="concentration"):
        Bounded(value)
    with pytest.raises(InvalidValue, match="sd"):
        Gaussian(value)
    with pytest.raises(InvalidType, match="sd='1'"):
        Gaussian("1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("contexts", "mean", "variance"), [("normal", 0.0, 1.0), ("uniform", 0.5, 1 / 12), ("unit", 0.0, 1 / 4)]
)
def test_contexts(contexts: str, mean: float, variance: float) -> None:
    """Each coordinate's mean and second moment within 5 standard errors; a unit vector's coordinate has 1 / dim."""
    instance = linear(n_arms=5, n_clusters=2, spread=1.0, dim=4, contexts=contexts).instance(0)
    rng = np.random.default_rng(1)
    drawn = np.array([instance.context(rng) for _ in range(N)])  # (N, 4)
    assert drawn.shape == (N, 4)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * math.sqrt(variance / N)).all()
    squares = (drawn - mean) ** 2
    assert (np.abs(squares.mean(axis=0) - variance) < 5 * squares.std(axis=0) / math.sqrt(N)).all()
    assert (np.abs(squares.mean(axis=0) - 1.1 * variance) > 5 * squares.std(axis=0) / math.sqrt(N)).all()
    if contexts == "unit":
        np.testing.assert_allclose((drawn**2).sum(axis=1), 1.0, rtol=1e-12)
    if contexts == "uniform":
        assert ((drawn >= 0) & (drawn <= 1)).all()


def test_contexts_are_one_call_of_the_stream() -> None:
    for contexts, call in (("normal", "standard_normal"), ("uniform", "random")):
        instance = linear(n_arms=5, n_clusters=2, spread=1.0, contexts=contexts).instance(0)
        np.testing.assert_array_equal(
            np.asarray(instance.context(np.random.default_rng(2))), getattr(np.random.default_rng(2), call)(5)
        )


def test_linear_expectations_by_hand() -> None:
    theta = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    instance = Instance({"flat": Tree(["a", "b"])}, Uniform(), theta=theta, contexts="normal")
    assert instance.expected("a", [1.0, 1.0, -2.0]) == -3.0
    assert instance.expected("b", (1, 1, -2)) == 2.5
    assert instance.best([1.0, 1.0, -2.0]) == 2.5
    assert instance.dim == 3


def test_bad_calls() -> None:
    flat = {"flat": Tree(["a", "b"])}
    instance = Instance(flat, Uniform(), theta=np.ones((2, 3)), contexts="unit")
    with pytest.raises(InvalidType, match="context=x with 3 numbers"):
        instance.reward("a", np.random.default_rng(0))
    with pytest.raises(InvalidValue, match=r"shape \(2,\); it must be \(3,\)"):
        instance.best([1.0, 2.0])
    with pytest.raises(UnknownArm, match="'c'"):
        instance.expected("c", [1.0, 2.0, 3.0])


def test_bad_instances() -> None:
    flat = {"flat": Tree(["a", "b"])}
    means, theta = np.array([0.1, 0.2]), np.ones((2, 3))
    with pytest.raises(InvalidValue, match="at least one tree"):
        Instance({}, Bernoulli(), means=means)
    with pytest.raises(InvalidValue, match="'other' has other arms than tree 'flat'"):
        Instance(flat | {"other": Tree(2)}, Bernoulli(), means=means)
    with pytest.raises(InvalidType, match="either means or theta"):
        Instance(flat, Bernoulli())
    with pytest.raises(InvalidType, match="either means or theta"):
        Instance(flat, Uniform(), means=means, theta=theta, contexts="normal")
    with pytest.raises(InvalidType, match="contexts go with theta"):
        Instance(flat, Bernoulli(), means=means, contexts="normal")
    with pytest.raises(InvalidValue, match=r"shape \(3,\)"):
        Instance(flat, Bernoulli(), means=np.zeros(3))
    with pytest.raises(InvalidValue, match=r"mean 1.2 of arm 'b'"):
        Instance(flat, Bernoulli(), means=np.array([0.1, 1.2]))
    with pytest.raises(InvalidValue, match=r"mean nan of arm 'a' must be from -1e\+90"):
        Instance(flat, Gaussian(), means=np.array([np.nan, 1.2]))
    with pytest.raises(InvalidValue, match=r"\(2, dim\)"):
        Instance(flat, Uniform(), theta=np.ones((3, 2)), contexts="normal")
    with pytest.raises(InvalidValue, match="theta of arm 'b' is not finite"):
        Instance(flat, Uniform(), theta=np.array([[1.0], [np.inf]]), contexts="normal")
    with pytest.raises(InvalidValue, match="is bounded"):
        Instance(flat, Bernoulli(), theta=theta, contexts="normal")
    with pytest.raises(InvalidValue, match="contexts=None must be one of 'normal'"):
        Instance(flat, Uniform(), theta=theta)


def test_trees_may_list_the_same_arms_in_another_order() -> None:
    trees = {"first": Tree(["a", "b"]), "second": Tree({"x": ["b"], "y": ["a"]})}
    instance = Instance(trees, Bernoulli(), means=np.array([0.1, 0.2]))
    assert instance.expected("b") == 0.2
