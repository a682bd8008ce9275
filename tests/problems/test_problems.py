"""Laws of every registered problem."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray

from banditree import problems
from banditree.problems import Drifting, DriftingInstance, Instance, Problem

EXAMPLES = problems.examples()


@pytest.fixture(params=sorted(problems.registry))
def problem(request: pytest.FixtureRequest) -> Problem | Drifting:
    return EXAMPLES[request.param]


def truth(instance: Instance | DriftingInstance) -> NDArray[np.float64]:
    found = instance.means if instance.theta is None else instance.theta
    assert found is not None
    return found


def same(a: Instance | DriftingInstance, b: Instance | DriftingInstance) -> bool:
    return dict(a.trees) == dict(b.trees) and np.array_equal(truth(a), truth(b)) and a.rewards == b.rewards


def test_every_problem_has_an_example_and_a_public_name() -> None:
    assert set(EXAMPLES) == set(problems.registry) <= set(problems.__all__)
    for name, function in problems.registry.items():
        assert getattr(problems, name) is function
        assert EXAMPLES[name].name == name
        assert repr(EXAMPLES[name]).startswith(f"{name}(")


def test_the_same_rng_gives_the_same_instance(problem: Problem | Drifting) -> None:
    assert same(problem.instance(3), problem.instance(3))
    assert same(problem.instance(np.random.SeedSequence(3)), problem.instance(np.random.SeedSequence(3)))
    assert same(problem.instance(np.random.default_rng(3)), problem.instance(np.random.default_rng(3)))


def test_other_seeds_give_other_instances_unless_it_is_fixed(problem: Problem | Drifting) -> None:
    assert same(problem.instance(3), problem.instance(4)) == problem.fixed
    rng = np.random.default_rng(0)
    assert same(problem.instance(rng), problem.instance(rng)) == problem.fixed


def test_trees_share_their_arms_and_the_first_is_the_default(problem: Problem | Drifting) -> None:
    instance = problem.instance(1)
    assert instance.tree is next(iter(instance.trees.values()))
    assert instance.arms == instance.tree.arms
    assert len(truth(instance)) == len(instance.arms)
    for tree in instance.trees.values():
        assert tree.arms == instance.arms
        assert tree.depth >= 1
        assert all(tree.clusters.values())


def test_expected_and_best_agree(problem: Problem | Drifting) -> None:
    instance = problem.instance(2)
    context = instance.context(np.random.default_rng(0))
    assert (context is None) == (instance.dim is None)
    values = [instance.expected(arm, context) for arm in instance.arms]
    assert instance.best(context) == max(values)
    if instance.contexts == "hidden":
        assert context is not None
        context = np.append(1.0, context)
    by_hand = truth(instance) if context is None else truth(instance) @ context
    if instance.rewards.links:
        by_hand = 1 / (1 + np.exp(-by_hand))
    np.testing.assert_allclose(values, by_hand, rtol=1e-12, atol=1e-15)


def test_rewards_lie_in_their_support_and_average_to_what_is_expected(problem: Problem | Drifting) -> None:
    """Within 5 standard errors for three arms; an expectation moved by 10 standard errors must be caught."""
    instance = problem.instance(5)
    low, high = instance.rewards.support
    rng = np.random.default_rng(6)
    for arm in instance.arms[:: max(1, len(instance.arms) // 2)]:
        context = instance.context(rng)
        drawn = np.array([instance.reward(arm, rng, context) for _ in range(4000)])
        assert ((low <= drawn) & (drawn <= high)).all()
        # At the true spread where few clicks are seen: a Bernoulli's sample deviation may be 0.
        mean = instance.expected(arm, context)
        spread = np.sqrt(mean * (1 - mean)) if isinstance(instance.rewards, problems.Bernoulli) else drawn.std()
        error = spread / np.sqrt(len(drawn))
        assert abs(drawn.mean() - mean) <= 5 * error
        assert abs(drawn.mean() - (mean + 10 * error)) > 5 * error


def test_the_same_stream_gives_the_same_rewards_and_contexts(problem: Problem | Drifting) -> None:
    instance = problem.instance(5)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(5):
        context, again = instance.context(one), instance.context(two)
        np.testing.assert_array_equal(np.array(context, float), np.array(again, float))
        arm = instance.arms[-1]
        assert instance.reward(arm, one, context) == instance.reward(arm, two, again)
    assert instance.reward(instance.arms[0], 4, instance.context(4)) == instance.reward(
        instance.arms[0], np.random.default_rng(4), instance.context(np.random.default_rng(4))
    )


def test_problems_and_instances_travel_to_other_processes_and_back() -> None:
    away = joblib.Parallel(n_jobs=2)(joblib.delayed(problem.instance)(7) for problem in EXAMPLES.values())
    for problem, there in zip(EXAMPLES.values(), away, strict=True):
        here = problem.instance(7)
        assert same(here, there)
        assert here.best(here.context(1)) == there.best(there.context(1))
        assert here.reward(here.arms[0], 2, here.context(1)) == there.reward(here.arms[0], 2, here.context(1))


def test_slow_problems_are_those_that_cluster() -> None:
    assert {name for name, problem in EXAMPLES.items() if problem.slow} == {"sine_kmeans", "surface", "bumps"}


def test_instances_never_change() -> None:
    instance = EXAMPLES["unstructured"].instance(0)
    with pytest.raises(AttributeError):
        instance.means = None  # type: ignore[misc]
