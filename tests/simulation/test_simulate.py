"""Which engine runs what, and that the simulator, a loop by hand and both engines give the same run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from banditree.simulation.simulator import Streams
from banditree.stream import generator, native, native_stream
from tests.support.helpers import NAMES, needs_native

TREE = bt.Tree({"a": {"x": [0, 1], "y": [2, 3]}, "b": [4, 5, 6]})
MEANS = np.array([0.3, 0.5, 0.9, 0.6, 0.8, 0.2, 0.4])
THETA = np.array([[0.9, 0.1], [0.5, 0.4], [-0.7, 0.2], [-0.3, 0.6], [0.2, -0.9], [0.6, -0.5], [0.1, 0.8]])
BOUNDED = bt.problems.bounded(TREE, MEANS, concentration=3.0)
FITTING: dict[str, list[bt.problems.Problem]] = {
    "means": [bt.problems.bernoulli(TREE, MEANS), BOUNDED],
    "gaussian": [bt.problems.gaussian(TREE, MEANS, sd=0.5)],
    "contexts": [bt.problems.linear_from(TREE, THETA, contexts=kind) for kind in ("normal", "uniform", "unit")],
}


def policy_class(name: str, dim: int | None = 2) -> Callable[..., bt.Policy]:
    """A policy by name, ready for the problems of this file."""
    algorithm: Callable[..., bt.Policy] = bt.ALGORITHMS[name]
    return partial(algorithm, dim=dim) if name.startswith("Lin") else algorithm


def with_gaussian(name: str) -> Callable[..., bt.Policy]:
    algorithm: Callable[..., bt.Policy] = bt.ALGORITHMS[name]
    takes_prior = bt.ALGORITHMS[name].about.takes_prior
    return algorithm if not takes_prior else partial(algorithm, prior=bt.Gaussian(sd=0.5))


CASES = [
    *((name, problem) for name in NAMES for problem in FITTING["contexts" if name.startswith("Lin") else "means"]),
    *((name, problem) for name in NAMES if not name.startswith("Lin") for problem in FITTING["gaussian"]),
]
IDS = [f"{name}-{at}" for at, (name, _) in enumerate(CASES)]


def fitted(name: str, problem: bt.problems.Problem) -> Callable[..., bt.Policy]:
    return with_gaussian(name) if problem.name == "gaussian" else policy_class(name)


class Uniformly:
    """A policy as a user may write it."""

    def __init__(self, tree: bt.Tree, rng: Any) -> None:
        self.arms, self.rng = tree.arms, np.random.default_rng(rng)

    def choose(self, context: Any = None) -> Any:
        return self.arms[self.rng.integers(len(self.arms))]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        """It does not learn."""


@needs_native
@pytest.mark.parametrize(("name", "problem"), CASES, ids=IDS)
def test_every_built_in_policy_runs_natively(name: str, problem: bt.problems.Problem) -> None:
    runs = bt.simulate({name: fitted(name, problem)}, problem, horizon=20, seeds=2)
    assert runs.engine == {name: "native"}
    assert runs.evaluations[name].min() >= 1
    assert runs.seconds[name] > 0


class OwnInstance:
    """An instance with the methods that a simulation needs and no more."""

    def __init__(self) -> None:
        self.tree, self.trees = TREE, {"own": TREE}

    def context(self, rng: Any) -> None:
        return None

    def reward(self, arm: Any, rng: Any, context: Any = None) -> float:
        return float(rng.random() < MEANS[arm])

    def expected(self, arm: Any, context: Any = None) -> float:
        return float(MEANS[arm])

    def best(self, context: Any = None) -> float:
        return 0.9


class OwnProblem:
    fixed = True

    def instance(self, rng: Any) -> OwnInstance:
        return OwnInstance()


class OwnTSC(bt.TSC):
    """A built-in policy with code of the user's in it."""


def test_a_policy_of_the_users_own_runs_beside_ours() -> None:
    policies = {"TSC": bt.TSC, "uniform": Uniformly, "own": OwnTSC}
    runs = bt.simulate(policies, BOUNDED, horizon=300, seeds=3)
    assert runs.engine["uniform"] == runs.engine["own"] == "readable"
    assert runs.engine["TSC"] == bt.engine()
    assert runs.policies == ("TSC", "uniform", "own")
    assert np.isnan(runs.evaluations["uniform"]).all()
    assert runs.evaluations["own"].min() > 1
    assert len(runs.table()) == 3
    expected = 300 * (0.9 - MEANS.mean())  # of choosing uniformly
    error = np.sqrt(300 * 3) * MEANS.std() / 3
    assert abs(runs.regret["uniform"][:, -1].mean() - expected) < 4 * error


def test_a_problem_of_the_users_own_draws_from_a_numpy_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """On either engine: the user's code may call any method of a Generator."""
    given: set[type] = set()
    reward = OwnInstance.reward

    def seen(self: OwnInstance, arm: Any, rng: Any, context: Any = None) -> float:
        given.add(type(rng))
        return reward(self, arm, rng, context)

    monkeypatch.setattr(OwnInstance, "reward", seen)
    own = bt.simulate([bt.TSC], OwnProblem(), horizon=200, seeds=40)
    assert given == {np.random.Generator}
    assert own.engine == {"TSC": "readable"}
    assert own.arms == TREE.arms
    ours = bt.simulate([bt.TSC], FITTING["means"][0], horizon=200, seeds=40)
    ends = [runs.regret["TSC"][:, -1] for runs in (own, ours)]
    assert abs(ends[0].mean() - ends[1].mean()) < 4 * np.sqrt((ends[0].var() + ends[1].var()) / 40)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_factory_is_called_once_for_every_seed_and_policy(jobs: int) -> None:
    calls: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        def factory(tree: bt.Tree, *, rng: np.random.SeedSequence) -> bt.Policy:
            calls[name, tuple(rng.spawn_key)] += 1
            return bt.TSC(tree, rng=rng)

        return factory

    bt.simulate({"one": counting("one"), "two": counting("two")}, BOUNDED, horizon=10, seeds=4, jobs=jobs)
    assert len(calls) == 8
    assert set(calls.values()) == {1}


def stepwise(
    name: str, factory: Callable[..., bt.Policy], problem: Any, seed: int, horizon: int
) -> tuple[list[float], list[Any]]:
    """A run by hand: regret after every step, and the arms played."""
    streams = Streams(np.random.SeedSequence(5))
    instance = problem.instance(streams.instance(seed))
    policy = factory(instance.tree, rng=streams.policy(seed, name))
    contexts, rewards = streams.contexts(seed), streams.rewards(seed, name)
    sum_, regret, arms = 0.0, [], []
    for _ in range(horizon):
        x = instance.context(contexts)
        arm = policy.choose(x)
        policy.update(arm, instance.reward(arm, rewards, x), x)
        sum_ += instance.best(x) - instance.expected(arm, x)
        regret.append(sum_)
        arms.append(arm)
    return regret, arms


@pytest.mark.parametrize(("name", "problem"), CASES, ids=IDS)
def test_the_stepwise_interface_gives_the_same_run(name: str, problem: bt.problems.Problem) -> None:
    factory = fitted(name, problem)
    runs = bt.simulate({name: factory}, problem, horizon=600, seeds=[3], checkpoints=600, rng=5)
    regret, arms = stepwise(name, factory, problem, 3, 600)
    assert runs.regret[name][0].tolist() == regret
    assert runs.plays[name][0].tolist() == [arms.count(arm) for arm in TREE.arms]


@needs_native
@pytest.mark.parametrize(("name", "problem"), CASES, ids=IDS)
def test_the_readable_engine_gives_the_same_run_draw_for_draw(name: str, problem: bt.problems.Problem) -> None:
    factory = fitted(name, problem)
    with engines.using("native", shortcuts=False):
        runs = bt.simulate({name: factory}, problem, horizon=150, seeds=2, checkpoints=150)
    with engines.using("readable"):
        readable = bt.simulate(
            {name: lambda tree, rng: factory(tree, rng=native_stream(rng))},
            problem,
            horizon=150,
            seeds=2,
            checkpoints=150,
        )
    assert readable.engine == {name: "readable"}
    assert np.array_equal(readable.regret[name], runs.regret[name])
    assert np.array_equal(readable.plays[name], runs.plays[name])
    assert np.array_equal(readable.evaluations[name], runs.evaluations[name])


@needs_native
@pytest.mark.parametrize("name", ["TS", "TSC", "UCB1", "TSMax", "LinTS", "LinUCB"])
def test_the_readable_engine_on_numpys_stream_agrees_in_distribution(name: str) -> None:
    tree = bt.Tree({"a": list(range(20)), "b": list(range(20, 40))})
    grid = np.linspace(0.05, 0.95, 40)
    theta = np.stack([grid, 0.5 - grid], axis=1)
    contextual = name.startswith("Lin")
    problem = bt.problems.linear_from(tree, theta) if contextual else bt.problems.bernoulli(tree, grid)
    options: dict[str, Any] = {"horizon": 50, "seeds": 80, "checkpoints": [5, 20, 50]}
    runs = bt.simulate({name: policy_class(name)}, problem, **options)
    with engines.using("readable"):
        readable = bt.simulate({name: policy_class(name)}, problem, rng=1, **options)
    one, two = runs.regret[name], readable.regret[name]
    error = np.sqrt((one.var(axis=0, ddof=1) + two.var(axis=0, ddof=1)) / 80)
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 4 * error).all()


def warmed(tree: bt.Tree, *, rng: Any) -> bt.Policy:
    policy = bt.TSC(tree, rng=rng)
    policy.update_many([2] * 60 + [arm for arm in tree.arms if arm != 2] * 20, [1] * 60 + [0] * 120)
    return policy


def test_a_warm_policy_goes_on_from_what_it_knows() -> None:
    runs = bt.simulate({"warm": warmed, "cold": bt.TSC}, BOUNDED, horizon=200, seeds=25)
    assert runs.engine["warm"] == bt.engine()
    assert runs.compare("warm", "cold").z < -4
    regret, _ = stepwise("warm", warmed, BOUNDED, 1, 200)
    again = bt.simulate({"warm": warmed}, BOUNDED, horizon=200, seeds=[1], checkpoints=200, rng=5)
    assert again.regret["warm"][0].tolist() == regret


@pytest.mark.parametrize(
    "tree",
    [bt.Tree({"b": [6, 4, 5], "a": [3, 1, 0, 2]}), bt.Tree([2, 0]), bt.Tree({"q": [4, 2], "r": [1]})],
    ids=["reordered", "two arms", "three arms"],
)
def test_arms_match_the_instance_by_id(tree: bt.Tree) -> None:
    def factory(given: bt.Tree, *, rng: Any, kind: type[bt.TSC]) -> bt.Policy:
        return kind(tree, rng=rng)

    runs = bt.simulate({"TSC": partial(factory, kind=bt.TSC)}, BOUNDED, horizon=100, seeds=3)
    own = bt.simulate({"TSC": partial(factory, kind=OwnTSC)}, BOUNDED, horizon=100, seeds=3)
    assert (runs.engine["TSC"], own.engine["TSC"]) == (bt.engine(), "readable")
    assert np.array_equal(runs.regret["TSC"], own.regret["TSC"])
    assert np.array_equal(runs.plays["TSC"], own.plays["TSC"])
    played = {arm for arm, plays in zip(runs.arms, runs.plays["TSC"].sum(axis=0), strict=True) if plays}
    assert played <= set(tree.arms)
    assert np.allclose(runs.regret["TSC"][:, -1], (runs.plays["TSC"] * (0.9 - MEANS)).sum(axis=1))


def test_on_builds_on_another_tree() -> None:
    problem = bt.problems.bernoulli({"flat": bt.Tree(7), "deep": TREE}, MEANS)
    got: dict[str, int] = {}

    def noting(tree: bt.Tree, *, rng: Any) -> bt.Policy:
        got["depth"] = tree.depth
        return bt.HTS(tree, rng=rng)

    runs = bt.simulate([bt.HTS, bt.on("deep", bt.HTS), bt.on("deep", partial(noting))], problem, horizon=50, seeds=2)
    assert runs.policies == ("HTS", "HTS on deep", "noting on deep")
    assert got == {"depth": 2}
    assert runs.evaluations["HTS"].tolist() == [7.0, 7.0]
    assert runs.evaluations["HTS on deep"].max() < 7
    assert runs.clusters["HTS"] == [{}, {}]  # plays are counted by the clusters of the first tree, which has none


@pytest.mark.parametrize("name", list(bt.problems.examples()))
def test_every_problem_runs_with_every_policy_that_fits(name: str) -> None:
    problem = bt.problems.examples()[name]
    dim = problem.instance(0).dim
    fit = [name for name in NAMES if name.startswith("Lin") == (dim is not None)]
    make = with_gaussian if name == "gaussian" else partial(policy_class, dim=dim)
    policies = {name: make(name) for name in fit}
    runs = bt.simulate(policies, problem, horizon=30, seeds=2)
    assert set(runs.engine.values()) == {bt.engine()}
    for regret in runs.regret.values():
        assert regret.shape == (2, 30)
        assert (np.diff(regret, axis=1, prepend=0) >= 0).all()
    assert [sum(seed.values()) for seed in runs.clusters["UCB1" if dim is None else "LinTS"]] == [30, 30]


def test_streams_have_numbers_of_their_own() -> None:
    streams = Streams(np.random.SeedSequence(5))
    seeds = [streams.instance(0), streams.instance(1), streams.policy(0, "a"), streams.policy(0, "b")]
    firsts = [int(seed.generate_state(1)[0]) for seed in seeds]
    draws = [stream.random() for stream in (streams.contexts(0), streams.rewards(0, "a"), streams.rewards(0, "b"))]
    assert len({*firsts}) == 4
    assert len({*draws}) == 3
    assert streams.contexts(0).random() == draws[0]
    kind = generator if native is None else native_stream
    assert isinstance(streams.contexts(0), type(kind(0)))


def test_a_problem_of_the_users_own_is_given_a_generator() -> None:
    given: list[Any] = []

    class Asking(OwnProblem):
        def instance(self, rng: Any) -> OwnInstance:
            given.append(rng)
            return super().instance(rng)

    bt.simulate([bt.TS], Asking(), horizon=2, seeds=2)
    assert all(isinstance(rng, np.random.Generator) for rng in given)
