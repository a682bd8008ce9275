"""Bad input is told before anything runs; a policy that fails is named, and the runs of the others are kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import BanditreeError, InvalidType, InvalidValue, PolicyFailed, UnknownArm
from tests.helpers import needs_native
from tests.test_simulate import BOUNDED, FITTING, MEANS, THETA, TREE, OwnProblem, Uniformly

CONTEXTUAL = FITTING["contexts"][0]
GAUSSIAN = FITTING["gaussian"][0]


def simulate(policies: Any = (bt.TS,), problem: Any = BOUNDED, **options: Any) -> bt.Runs:
    return bt.simulate(policies, problem, **({"horizon": 20, "seeds": 2} | options))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"horizon": 0}, InvalidValue, "horizon=0"),
        ({"horizon": -5}, InvalidValue, "horizon=-5"),
        ({"horizon": 2.5}, InvalidType, "horizon=2.5"),
        ({"horizon": True}, InvalidType, "horizon=True"),
        ({"seeds": 0}, InvalidValue, "seeds=0"),
        ({"seeds": -1}, InvalidValue, "seeds=-1"),
        ({"seeds": "two"}, InvalidType, "seeds='two'"),
        ({"seeds": []}, InvalidValue, "at least one seed"),
        ({"seeds": [1, -2]}, InvalidValue, "seed=-2"),
        ({"seeds": [1, 1]}, InvalidValue, "no seed twice"),
        ({"checkpoints": 0}, InvalidValue, "checkpoints=0"),
        ({"checkpoints": [5, 21]}, InvalidValue, "checkpoint=21 must be from 1 to 20"),
        ({"checkpoints": [0]}, InvalidValue, "checkpoint=0"),
        ({"jobs": 0}, InvalidValue, "jobs=0"),
        ({"jobs": 1.5}, InvalidType, "jobs=1.5"),
        ({"rng": "abc"}, InvalidType, "rng='abc'"),
        ({"rng": -1}, InvalidValue, "rng=-1"),
        ({"policies": []}, InvalidValue, "policies is empty"),
        ({"policies": {}}, InvalidValue, "policies is empty"),
        ({"policies": bt.TS}, InvalidType, "must be a mapping"),
        ({"policies": [bt.TS, partial(bt.TS, prior=bt.Beta(2, 2))]}, InvalidValue, "'TS', 'TS'"),
        ({"policies": [lambda tree, rng: bt.TS(tree)]}, InvalidType, "has no name; use a mapping"),
        ({"policies": {"TS": 3}}, InvalidType, "'TS': 3 must be callable"),
        ({"policies": {1: bt.TS}}, InvalidType, "policy 1"),
        ({"problem": 3}, InvalidType, "problem=3"),
        ({"problem": bt.problems.open_bandit}, InvalidType, "must have instance"),
    ],
)
def test_bad_arguments_are_told(options: dict[str, Any], error: type[BanditreeError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        simulate(**options)
    assert isinstance(caught.value, BanditreeError)


@pytest.mark.parametrize(
    ("policies", "problem", "error", "words"),
    [
        ({"mine": bt.TS}, CONTEXTUAL, InvalidValue, "needs no contexts, the problem has contexts of 2 numbers"),
        ({"mine": partial(bt.LinTS, dim=2)}, BOUNDED, InvalidValue, "needs contexts of 2 numbers, the problem has no"),
        ({"mine": partial(bt.LinTS, dim=3)}, CONTEXTUAL, InvalidValue, "needs contexts of 3 numbers, .* of 2 numbers"),
        ({"mine": bt.LinTS}, CONTEXTUAL, InvalidType, "dim=5"),
        (
            {"mine": bt.TSC},
            GAUSSIAN,
            InvalidValue,
            r"rewards in \[0, 1\], Gaussian\(sd=0.5\) leaves that; .*bt.Gaussian",
        ),
        ({"mine": lambda tree, rng: bt.TS(bt.Tree(["odd"]))}, BOUNDED, UnknownArm, "has arm 'odd'"),
        ({"mine": bt.on("ward", bt.TS)}, BOUNDED, InvalidValue, "no tree 'ward'; there are tree"),
    ],
)
def test_a_policy_that_does_not_fit_is_named(policies: Any, problem: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        simulate(policies, problem, seeds=[4])
    assert "policy 'mine' (seed 4)" in str(caught.value)


@needs_native
def test_a_truth_too_large_to_compute_with_is_told() -> None:
    huge = bt.problems.linear_from(TREE, 1e308 * THETA)
    policies = {"A": partial(bt.LinTS, dim=2), "B": partial(bt.LinTSC, dim=2)}
    with pytest.raises(BanditreeError, match=r"policy '.', seed 0: .*scale"):
        simulate(policies, huge, horizon=100)


class Raising(Uniformly):
    """Fails at a given step."""

    at = 7

    def choose(self, context: Any = None) -> Any:
        self.at -= 1
        if self.at == 0:
            raise ZeroDivisionError("by my own fault")
        return super().choose()


class Stranger(Raising):
    def choose(self, context: Any = None) -> Any:
        self.at -= 1
        return "nobody" if self.at == 0 else super().choose()


class Unhashable(Uniformly):
    def choose(self, context: Any = None) -> Any:
        return [1]


class BadLearner(Uniformly):
    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        raise RuntimeError(f"cannot learn {reward > 2}")


def unbuildable(tree: bt.Tree, *, rng: Any) -> Any:
    raise OSError("no such model")


FAILURES = [
    (Raising, "raised at step 7: ZeroDivisionError: by my own fault", ZeroDivisionError),
    (Stranger, "chose an arm that is not there at step 4: .*'nobody'", UnknownArm),
    (Unhashable, r"chose an arm that is not there at step 1: .*\[1\]", UnknownArm),
    (BadLearner, "raised at step 1: RuntimeError: cannot learn False", RuntimeError),
    (unbuildable, "could not be built: OSError: no such model", OSError),
]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("broken", "words", "cause"), FAILURES, ids=[str(case[0].__name__) for case in FAILURES])
def test_a_policy_that_fails_is_named_and_the_others_are_kept(
    broken: Any, words: str, cause: type[Exception], jobs: int
) -> None:
    policies = {"TS": bt.TS, "broken": broken, "own": Uniformly}
    with pytest.raises(PolicyFailed, match=f"policy 'broken', seed 0: {words}") as caught:
        simulate(policies, seeds=3, jobs=jobs)
    assert isinstance(caught.value.__cause__, cause)
    kept, alone = caught.value.runs, simulate({"TS": bt.TS}, seeds=3)
    assert kept.policies == ("TS", "own")
    assert np.array_equal(kept.regret["TS"], alone.regret["TS"])


def test_a_failure_without_others_leaves_nothing() -> None:
    with pytest.raises(PolicyFailed) as caught:
        simulate({"broken": Raising})
    assert caught.value.runs is None


def test_a_policy_that_fails_on_some_seeds_is_left_out() -> None:
    def sometimes(tree: bt.Tree, *, rng: np.random.SeedSequence) -> Any:
        return (Raising if rng.spawn_key[0] == 1 else Uniformly)(tree, rng)

    with pytest.raises(PolicyFailed, match="policy 'some', seed 1") as caught:
        simulate({"some": sometimes, "UCB1": bt.UCB1}, seeds=3)
    assert caught.value.runs.policies == ("UCB1",)
    assert caught.value.runs.seeds == (0, 1, 2)


def test_rewards_outside_the_support_on_a_problem_of_the_users_own() -> None:
    class Money(OwnProblem):
        def instance(self, rng: Any) -> Any:
            instance = super().instance(rng)
            instance.reward = lambda arm, rng, context=None: 100.0  # type: ignore[method-assign]
            return instance

    with pytest.raises(PolicyFailed, match=r"'TS', seed 0: raised at step 1: InvalidValue: reward 100.0 .*bt.Gaussian"):
        simulate([bt.TS], Money())


def test_what_a_problem_raises_is_not_blamed_on_a_policy() -> None:
    class Empty(OwnProblem):
        def instance(self, rng: Any) -> Any:
            instance = super().instance(rng)
            instance.reward = lambda arm, rng, context=None: {}[arm]  # type: ignore[method-assign]
            return instance

    with pytest.raises(KeyError) as caught:
        simulate([bt.TS], Empty())
    assert caught.value.args[0] in range(len(MEANS))
