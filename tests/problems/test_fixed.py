"""Problems with given trees and means, and problems and instances that users write."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.problems import AnyInstance, AnyProblem, Bounded, Gaussian, bernoulli, bounded, gaussian, linear_from
from banditree.tree import Tree

TREE = Tree({"hats": ["h1", "h2"], "shoes": ["s1"]})


def test_values_by_arm_or_in_order() -> None:
    by_arm = bernoulli(TREE, {"s1": 0.3, "h1": 0.1, "h2": 0.2}).instance(0)
    in_order = bernoulli(TREE, (0.1, 0.2, 0.3)).instance(0)
    assert (
        [by_arm.expected(arm) for arm in TREE.arms] == [in_order.expected(arm) for arm in TREE.arms] == [0.1, 0.2, 0.3]
    )
    assert by_arm.tree is TREE


def test_numbers_of_other_types_are_numbers() -> None:
    decimals = bernoulli(TREE, [Decimal("0.25"), Fraction(1, 2), 1]).instance(0)
    assert [decimals.expected(arm) for arm in TREE.arms] == [0.25, 0.5, 1.0]
    arrays = np.array([np.zeros(1), np.zeros(2), np.zeros(1)], dtype=object)
    with pytest.raises(InvalidValue, match="different lengths"):
        bernoulli(TREE, arrays)


def test_parameters_arrive() -> None:
    assert bounded(TREE, [0, 0.5, 1], concentration=2).instance(0).rewards == Bounded(2)
    assert gaussian(TREE, [-5, 0, 5]).instance(0).rewards == Gaussian(1.0)
    assert gaussian(TREE, [-5, 0, 5], sd=0.1).instance(0).rewards == Gaussian(0.1)
    linear = linear_from(TREE, np.eye(3), contexts="uniform").instance(0)
    assert (linear.contexts, linear.dim) == ("uniform", 3)


def test_later_changes_of_the_users_array_do_not_reach_the_problem() -> None:
    means = np.array([0.1, 0.2, 0.3])
    problem = bernoulli(TREE, means)
    means[:] = 0.9
    instance = problem.instance(0)
    assert instance.best() == 0.3
    assert instance.means is not None
    with pytest.raises(ValueError, match="read-only"):
        instance.means[0] = 1.0


def test_several_trees() -> None:
    trees = {"kind": TREE, "colour": Tree({"red": ["s1", "h2"], "blue": ["h1"]})}
    instance = bernoulli(trees, {"h1": 0.1, "h2": 0.2, "s1": 0.3}).instance(0)
    assert list(instance.trees) == ["kind", "colour"]
    assert instance.tree is TREE
    assert instance.expected("s1") == 0.3


@pytest.mark.parametrize(
    ("means", "error", "message"),
    [
        ({"h1": 0.1, "h2": 0.2}, InvalidValue, "no value for arm 's1'"),
        ({"h1": 0.1, "h2": 0.2, "s1": 0.3, "s9": 0.4}, UnknownArm, "'s9', which is not an arm"),
        ([0.1, 0.2], InvalidValue, r"shape \(2,\)"),
        ([[0.1, 0.2, 0.3]], InvalidValue, r"shape \(1, 3\)"),
        ([0.1, 0.2, np.nan], InvalidValue, "mean nan of arm 's1'"),
        ([0.1, -0.2, 0.3], InvalidValue, "mean -0.2 of arm 'h2' must be from 0 to 1"),
        (["low", "mid", "high"], InvalidType, "must be numbers"),
        (["0.1", "0.2", "0.3"], InvalidType, "must be numbers"),
        ([[0.1], [0.2, 0.3], 1], InvalidValue, "lists of different lengths"),
        (np.array([[0.1], [0.2, 0.3], 1], dtype=object), InvalidType, "must be numbers"),
        (np.array([None, 0.2, 0.3]), InvalidType, "must be numbers"),
        (0.5, InvalidType, "must be numbers"),
        (None, InvalidType, "must be numbers"),
    ],
)
def test_bad_means(means: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bernoulli(TREE, means)
    with pytest.raises(error, match=message):
        bounded(TREE, means, concentration=1.0)


def test_bad_theta_and_trees() -> None:
    with pytest.raises(InvalidValue, match="theta has lists of different lengths"):
        linear_from(TREE, {"h1": [1.0], "h2": [1.0, 2.0], "s1": [3.0]})
    with pytest.raises(InvalidValue, match=r"shape \(3,\)"):
        linear_from(TREE, [1.0, 2.0, 3.0])
    with pytest.raises(InvalidValue, match="theta of arm 'h2' is not finite"):
        linear_from(TREE, [[1.0], [np.nan], [2.0]])
    with pytest.raises(InvalidValue, match="contexts='ball'"):
        linear_from(TREE, np.eye(3), contexts="ball")
    with pytest.raises(InvalidType, match=r"give a bt\.Tree"):
        bernoulli(["a", "b"], [0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match=r"give a bt\.Tree"):
        bernoulli({"hats": ["h1"]}, [0.1])  # type: ignore[dict-item]
    with pytest.raises(InvalidValue, match="at least one tree"):
        bernoulli({}, [])
    with pytest.raises(InvalidValue, match="'b' has other arms than tree 'a'"):
        bernoulli({"a": Tree(2), "b": Tree(3)}, [0.1, 0.2])
    with pytest.raises(InvalidValue, match="concentration=0"):
        bounded(TREE, [0.1, 0.2, 0.3], concentration=0)


class Fading:
    """A user's own instance, from scratch: the reward of arm i is 1 / (i + 1) plus a little noise."""

    tree = Tree({"first": [0, 1], "rest": [2, 3, 4]})
    trees: ClassVar[dict[str, Tree]] = {"mine": tree}

    def context(self, rng: Any) -> None:
        return None

    def reward(self, arm: Any, rng: Any, context: Any = None) -> float:
        return self.expected(arm) + float(rng.normal(0, 0.01))

    def expected(self, arm: Any, context: Any = None) -> float:
        return 1 / (int(arm) + 1)

    def best(self, context: Any = None) -> float:
        return 1.0


class FadingProblem:
    def instance(self, rng: Any) -> Fading:
        return Fading()


def test_a_problem_from_scratch_needs_six_names() -> None:
    problem: AnyProblem = FadingProblem()  # the type checker agrees
    instance = problem.instance(0)
    assert isinstance(problem, AnyProblem)
    assert isinstance(instance, AnyInstance)
    assert isinstance(bernoulli(TREE, [0.1, 0.2, 0.3]), AnyProblem)
    assert isinstance(bernoulli(TREE, [0.1, 0.2, 0.3]).instance(0), AnyInstance)
    needed = {name for name in vars(AnyInstance) if not name.startswith("_")}
    assert needed == {"tree", "trees", "context", "reward", "expected", "best"}
    assert abs(instance.reward(1, np.random.default_rng(0)) - 0.5) < 0.06  # six standard deviations
