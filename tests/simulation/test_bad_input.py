"""Bad input is an error before anything runs; a policy that fails is named, and the runs of the others are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import BanditreeError, InvalidType, InvalidValue, PolicyFailed, ProblemFailed, UnknownArm
from banditree.policy.state import hold
from banditree.simulation.stepper import INSTANCE_MEMBERS
from tests.simulation.test_simulate import BOUNDED, FITTING, TREE, OwnProblem, Uniformly
from tests.support.helpers import needs_native

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
        ({"seeds": b"ab"}, InvalidType, "seeds=b'ab'"),
        ({"seeds": np.array(3)}, InvalidType, "seeds=array"),
        ({"seeds": 10**10}, InvalidValue, "seeds=10000000000 must be from 1 to 10000000"),
        ({"checkpoints": ""}, InvalidValue, "checkpoints=''"),
        ({"checkpoints": 10**8, "horizon": 10**9}, InvalidValue, "checkpoints=100000000"),
        ({"progress": "no"}, InvalidType, "progress='no'"),
        ({"policies": "TS"}, InvalidType, "policies='TS' must be a mapping"),
        ({"policies": {"": bt.TS}}, InvalidType, "policy ''"),
        ({"seeds": []}, InvalidValue, "at least one seed"),
        ({"seeds": [1, -2]}, InvalidValue, "seed=-2"),
        ({"seeds": [1, 1]}, InvalidValue, "at least one seed, and none twice"),
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
        ({"mine": bt.TS}, CONTEXTUAL, InvalidValue, r"rewards in \[0, 1\], but Uniform\(\) goes beyond; .*bt.Gaussian"),
        ({"mine": partial(bt.LinTS, dim=2)}, BOUNDED, InvalidValue, "needs contexts of 2 numbers, the problem has no"),
        ({"mine": partial(bt.LinTS, dim=3)}, CONTEXTUAL, InvalidValue, "needs contexts of 3 numbers, .* of 2 numbers"),
        ({"mine": bt.LinTS}, BOUNDED, InvalidType, "LinTS needs .*the length of the contexts"),
        (
            {"mine": bt.TSC},
            GAUSSIAN,
            InvalidValue,
            r"rewards in \[0, 1\], but Gaussian\(sd=0.5\) goes beyond; .*bt.Gaussian",
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
@needs_native
@pytest.mark.parametrize(
    ("problem", "factory", "scale"),
    [(GAUSSIAN, partial(bt.TS, prior=bt.Gaussian()), "rewards"), (CONTEXTUAL, partial(bt.LinTS, dim=2), "contexts")],
)
def test_scores_that_are_not_numbers_are_told(problem: Any, factory: Any, scale: str) -> None:
    def broken(tree: bt.Tree, *, rng: Any) -> bt.Policy:
        policy: bt.Policy = factory(tree, rng=rng)
        with hold(policy) as state:
            state.rows.table[:] = np.nan
        return policy

    with pytest.raises(
        PolicyFailed, match=f"policy 'broken', seed 0: computed scores that are not numbers; scale the {scale}"
    ):
        simulate([broken], problem)


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
    (Stranger, "chose an unknown arm at step 4: .*'nobody'", UnknownArm),
    (Unhashable, r"chose an unknown arm at step 1: .*\[1\]", UnknownArm),
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
    assert kept is not None
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
    assert caught.value.runs is not None
    assert caught.value.runs.policies == ("UCB1",)
    assert caught.value.runs.seeds == (0, 1, 2)


def test_rewards_outside_the_support_on_a_problem_of_the_users_own() -> None:
    class Money(OwnProblem):
        def instance(self, rng: Any) -> Any:
            instance = super().instance(rng)
            instance.reward = lambda arm, rng, context=None: 100.0  # type: ignore[method-assign]
            return instance

    with pytest.raises(PolicyFailed, match=r"'TS', seed 0: .* step 1: .*100.0 .*bt.Gaussian"):
        simulate([bt.TS], Money())


class Odd(OwnProblem):
    """A problem whose instance for seed 1 is wrong."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def instance(self, rng: Any) -> Any:
        instance = super().instance(rng)
        if rng.bit_generator.seed_seq.spawn_key[0] == 1:
            for name, value in self.wrong.items():
                setattr(instance, name, value)
        return instance

    def __repr__(self) -> str:
        return "Odd()"


def raising(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("no arms sold")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reward": raising}, r"step 1: reward\(\d, rng\) raised ZeroDivisionError: no arms sold"),
        ({"context": raising}, r"step 1: context\(rng\) raised ZeroDivisionError"),
        ({"best": raising}, r"step 1: best\(\) or expected\(\d\) raised ZeroDivisionError"),
        ({"expected": raising}, "raised ZeroDivisionError"),
        ({"reward": lambda arm, rng, context=None: np.nan}, r"reward\(\d\) is nan; it must be a finite number"),
        ({"reward": lambda arm, rng, context=None: "1"}, r"reward\(\d\) is '1'"),
        ({"reward": lambda arm, rng, context=None: 10**400}, r"reward\(\d\) is 1000.*; it must be a finite number"),
        ({"reward": lambda arm, rng, context=None: None}, r"reward\(\d\) is None"),
        ({"expected": lambda arm, context=None: np.nan}, r"expected\(\d\) is nan"),
        ({"best": lambda context=None: -1.0}, r"best\(\) is -1.0, and expected\(\d\) is .*, which is more"),
    ],
)
def test_what_a_problem_gets_wrong_is_not_blamed_on_a_policy(wrong: Any, words: str) -> None:
    with pytest.raises(ProblemFailed, match=rf"problem Odd\(\), seed 1, {words}|problem .*seed 1.*{words}") as failed:
        simulate([bt.TS], Odd(**wrong), seeds=4)
    assert failed.value.runs is not None
    assert 0 in failed.value.runs.seeds


def test_numbers_of_other_kinds_are_taken() -> None:
    """Numbers of 32 bits, which round differently in a product and in one row of it; and arrays of one number."""

    class Single(OwnProblem):
        def instance(self, rng: Any) -> Any:
            instance = super().instance(rng)
            mean = instance.expected
            single: dict[str, Any] = {
                "expected": lambda arm, context=None: np.array(mean(arm)),
                "best": lambda context=None: np.float32(max(map(mean, TREE.arms))),
                "reward": lambda arm, rng, context=None: np.array(0.5),
            }
            vars(instance).update(single)
            return instance

    assert simulate([bt.TS], Single()).seeds == (0, 1)


def test_runs_outlive_a_problem_that_fails_at_last() -> None:
    class Tired(OwnProblem):
        fixed = True
        drawn = 0

        def instance(self, rng: Any) -> Any:
            self.drawn += 1
            if self.drawn > 6:  # one for each seed, and one for each policy
                raise MemoryError
            return super().instance(rng)

    with pytest.raises(ProblemFailed, match="seed 3") as failed:
        simulate([bt.TS], Tired(), seeds=6)
    assert failed.value.runs is not None
    assert failed.value.runs.seeds == (0, 1, 2)
    assert simulate([bt.TS], Tired(), seeds=3).seeds == (0, 1, 2)


def test_what_a_policy_does_to_its_context_does_not_change_the_truth() -> None:
    class Writes(Uniformly):
        def choose(self, context: Any = None) -> Any:
            context[:] = 0
            return super().choose()

    with pytest.raises(PolicyFailed, match=r"'Writes', seed 0: .* step 1: ValueError"):
        simulate([Writes], CONTEXTUAL)


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (lambda: None, InvalidType, "None is not an instance: it has no tree and no context"),
        (lambda: TREE, InvalidType, "is not an instance: it has no tree"),
        (
            lambda: SimpleNamespace(**dict.fromkeys(INSTANCE_MEMBERS)),
            InvalidType,
            r"the tree of .* is None; it must be a bt\.Tree",
        ),
        (lambda: 1 / 0, ProblemFailed, "raised ZeroDivisionError"),
        (lambda: next(iter(())), ProblemFailed, "raised StopIteration"),
        (lambda: bt.Tree({}), InvalidValue, "seed 0: instance"),
    ],
)
def test_what_is_drawn_must_be_an_instance(made: Callable[[], Any], error: type[Exception], words: str) -> None:
    class Drawing:
        def instance(self, rng: Any) -> Any:
            return made()

        def __repr__(self) -> str:
            return "Drawing()"

    with pytest.raises(error, match=rf"problem Drawing\(\), seed 0: instance\(rng\).*{words}|{words}"):
        simulate([bt.TS], Drawing())


def test_a_misfit_at_a_late_seed_does_not_lose_the_others() -> None:
    def late(tree: bt.Tree, *, rng: Any) -> Any:
        return bt.LinTS(tree, dim=3, rng=rng) if rng.spawn_key[0] == 2 else bt.TS(tree, rng=rng)

    with pytest.raises(InvalidValue, match=r"policy 'late' \(seed 2\) needs contexts of 3") as failed:
        simulate([late], seeds=4)
    assert failed.value.runs is not None
    assert set(failed.value.runs.seeds) >= {0, 1}


def test_a_policy_that_fails_at_one_seed_keeps_its_others() -> None:
    def late(tree: bt.Tree, *, rng: Any) -> Any:
        return Raising(tree, rng=rng) if rng.spawn_key[0] == 2 else Uniformly(tree, rng=rng)

    with pytest.raises(PolicyFailed, match="policy 'late', seed 2") as failed:
        simulate({"late": late, "TS": bt.TS, "also": Raising}, seeds=4)
    assert failed.value.runs is not None
    assert failed.value.finished is not None
    assert failed.value.runs.policies == ("TS",)
    assert {name: runs.seeds for name, runs in failed.value.finished.items()} == {"late": (0, 1, 3), "TS": (0, 1, 2, 3)}
    assert "Also: policy 'also', seed 1: raised at step 7" in "\n".join(failed.value.__notes__)


def test_one_policy_for_all_seeds_is_refused() -> None:
    warm = bt.TSC(TREE, rng=1)
    with pytest.raises(InvalidValue, match=r"'warm' \(seed 1\)"):
        simulate({"warm": lambda tree, rng: warm})

    class Small:
        __slots__ = ("arms",)  # no weak references

        def __init__(self, tree: bt.Tree, *, rng: Any) -> None:
            self.arms = tree.arms

        def choose(self) -> Any:
            return self.arms[0]

        def update(self, arm: Any, reward: float) -> None:
            pass

    assert simulate([Small]).seeds == (0, 1)


def test_a_patched_policy_is_played_as_patched() -> None:
    def patched(tree: bt.Tree, *, rng: Any) -> Any:
        policy = bt.TSC(tree, rng=rng)
        vars(policy)["choose"] = lambda context=None: tree.arms[0]
        return policy

    runs = simulate([patched])
    assert runs.engine["patched"] == "readable"
    assert (runs.plays["patched"][:, 0] == 20).all()


def test_on_needs_a_tree_of_that_name() -> None:
    class Nameless(OwnProblem):
        def instance(self, rng: Any) -> Any:
            found = super().instance(rng)
            return SimpleNamespace(**{name: getattr(found, name) for name in INSTANCE_MEMBERS})

    assert simulate([bt.TS], Nameless()).seeds == (0, 1)
    with pytest.raises(InvalidValue, match="no tree 'ward'; there are none by name"):
        simulate({"TS": bt.on("ward", bt.TS)}, Nameless())


def test_on_must_be_outermost() -> None:
    with pytest.raises(InvalidType, match=r"bt\.on\('tree', \.\.\.\) must be outermost"):
        simulate({"inside": partial(bt.on("tree", bt.TS))})
    for inner in (bt.on("tree", bt.TS), "TS"):
        with pytest.raises(InvalidType, match=r"bt\.on\('tree', .*\): give a policy class"):
            bt.on("tree", inner)  # type: ignore[arg-type]
