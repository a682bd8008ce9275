"""Problems that change over time, in both engines, and problems that keep state."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from banditree.problems import DriftingInstance, drifting, linear, open_bandit, strong_dominance, unstructured
from banditree.stream import native_stream
from tests.support.helpers import needs_native

PROBLEM = unstructured(n_arms=12, n_clusters=3)


def test_until_the_first_change_it_is_the_problem_itself() -> None:
    still = bt.simulate([bt.TS, bt.TSC], PROBLEM, horizon=300, seeds=3, checkpoints=300)
    moving = bt.simulate([bt.TS, bt.TSC], drifting(PROBLEM, every=200), horizon=300, seeds=3, checkpoints=300)
    for name in still.policies:
        assert np.array_equal(still.regret[name][:, :200], moving.regret[name][:, :200])
        assert not np.array_equal(still.regret[name][:, 200:], moving.regret[name][:, 200:])


def test_the_truth_changes_every_so_many_steps() -> None:
    instance, stream = drifting(PROBLEM, every=3).instance(7), np.random.default_rng(0)
    assert instance.means is not None
    assert np.array_equal(instance.means, instance.truth(0))
    seen = []
    for _ in range(9):
        assert instance.context(stream) is None
        seen.append(instance.means)
        assert instance.best() == instance.means.max()
        assert instance.expected(5) == instance.means[5]
    for t, means in enumerate(seen):
        assert np.array_equal(means, instance.truth(t // 3))
    assert len({tuple(means) for means in seen}) == 3
    assert instance.tree == PROBLEM.instance(7).tree


def test_arms_keep_their_ids_where_the_order_changes() -> None:
    class Shuffled:
        def instance(self, rng: Any) -> bt.problems.Instance:
            draws = np.random.default_rng(rng)
            order = draws.permutation(5)
            means = order / 10 + draws.random() / 10  # the mean of an arm tells its id
            return bt.problems.Instance({"flat": bt.Tree(order.tolist())}, bt.problems.Bernoulli(), means=means)

    instance = drifting(Shuffled(), every=2).instance(1)
    for change in range(4):
        assert (instance.truth(change) * 10).astype(int).tolist() == list(instance.arms)


@needs_native
@pytest.mark.parametrize("every", [1, 40, 511, 512, 700])
@pytest.mark.parametrize(
    ("name", "problem"), [("TSC", PROBLEM), ("UCT", PROBLEM), ("LinTSC", linear(12, 3, spread=0.5, dim=2))]
)
def test_both_engines_give_the_same_run_draw_for_draw(name: str, problem: Any, every: int) -> None:
    moving, algorithm = drifting(problem, every=every), bt.ALGORITHMS[name]
    horizon = 40 if every == 1 else 1100
    options: dict[str, Any] = {"horizon": horizon, "seeds": 1, "checkpoints": horizon, "batch": 3}
    with engines.using("native", shortcuts=False):
        runs = bt.simulate({name: algorithm}, moving, **options)

    dim = problem.instance(0).dim
    parameters: dict[str, Any] = {} if dim is None else {"dim": dim}

    def on_stream(tree: bt.Tree, *, rng: Any) -> bt.Policy:
        return algorithm(tree, rng=native_stream(rng), **parameters)

    with engines.using("readable"):
        readable = bt.simulate({name: on_stream}, moving, **options)
    assert (runs.engine[name], readable.engine[name]) == ("native", "readable")
    assert np.array_equal(runs.regret[name], readable.regret[name])


def test_regret_is_against_the_best_of_the_time() -> None:
    class First:
        """Always the first arm."""

        def __init__(self, tree: bt.Tree, *, rng: Any) -> None:
            self.arm = tree.arms[0]

        def choose(self, context: Any = None) -> Any:
            return self.arm

        def update(self, arm: Any, reward: float, context: Any = None) -> None:
            """It does not learn."""

    moving = drifting(PROBLEM, every=10)
    runs = bt.simulate([First], moving, horizon=25, seeds=[4], rng=9)
    instance = moving.instance(np.random.SeedSequence(9, spawn_key=(4, 0)))
    gaps = [instance.truth(k).max() - instance.truth(k)[0] for k in range(3)]
    assert runs.regret["First"][0, -1] == pytest.approx(10 * gaps[0] + 10 * gaps[1] + 5 * gaps[2], rel=1e-12)


def test_order_number_and_jobs_do_not_matter() -> None:
    moving = drifting(PROBLEM, every=30)
    with engines.using("readable"):
        both = bt.simulate([bt.TS, bt.TSC], moving, horizon=100, seeds=3)
        other = bt.simulate([bt.TSC, bt.TS], moving, horizon=100, seeds=3, jobs=2)
        alone = bt.simulate([bt.TSC], moving, horizon=100, seeds=3)
    assert all(np.array_equal(both.regret[name], other.regret[name]) for name in both.policies)
    assert np.array_equal(both.regret["TSC"], alone.regret["TSC"])


def test_what_cannot_drift_is_refused() -> None:
    class Same:
        def instance(self, rng: Any) -> bt.problems.Instance:
            return bt.problems.Instance({"flat": bt.Tree(2)}, bt.problems.Bernoulli(), means=np.array([0.1, 0.2]))

    for problem in (open_bandit(), Same()):
        with pytest.raises(ValueError, match="never change"):
            drifting(problem)
    for wrong in ("strong_dominance", drifting(PROBLEM)):
        with pytest.raises(TypeError, match="problem="):
            drifting(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every=0"):
        drifting(strong_dominance(), every=0)


class Turning:
    """Two arms that change places after 50 steps; it keeps count itself."""

    def __init__(self) -> None:
        self.tree, self.step = bt.Tree(["a", "b"]), 0
        self.trees = {"flat": self.tree}

    def context(self, rng: Any) -> None:
        self.step += 1

    def expected(self, arm: Any, context: Any = None) -> float:
        return 0.9 if (arm == "a") == (self.step <= 50) else 0.1

    def reward(self, arm: Any, rng: Any, context: Any = None) -> float:
        return float(rng.random() < self.expected(arm))

    def best(self, context: Any = None) -> float:
        return 0.9


class Draws:
    def instance(self, rng: Any) -> Turning:
        return Turning()


class Keeps:
    """Hands out the same object for every seed and policy."""

    def __init__(self) -> None:
        self.only = Turning()

    def instance(self, rng: Any) -> Turning:
        return self.only


@pytest.mark.parametrize("problem", [Draws(), Keeps()], ids=["a new object", "the same object"])
def test_a_problem_that_remembers_meets_every_policy_afresh(problem: Any) -> None:
    names = ["TS", "UCB1"]
    both = bt.simulate([bt.TS, bt.UCB1], problem, horizon=100, seeds=3)
    turned = bt.simulate([bt.UCB1, bt.TS], problem, horizon=100, seeds=[2, 0, 1])
    alone = {name: bt.simulate([bt.ALGORITHMS[name]], problem, horizon=100, seeds=3) for name in names}
    for name in names:
        assert np.array_equal(both.regret[name], alone[name].regret[name])
        assert np.array_equal(both.regret[name], turned.regret[name][[1, 2, 0]])
        assert both.regret[name][:, -1].min() > 0.8 * 10  # a policy that met no change would go on at once


def test_an_object_that_cannot_be_copied_is_named() -> None:
    class Locked(Turning):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    problem = Keeps()
    problem.only = Locked()
    with pytest.raises(bt.errors.ProblemFailed, match="the same object again"):
        bt.simulate([bt.TS], problem, horizon=10, seeds=1)


def test_forgetting_wins_after_a_change_and_loses_a_little_without_one() -> None:
    policies: dict[str, Any] = {"keeps": bt.TS, "forgets": partial(bt.TS, half_life=300)}
    still = unstructured(n_arms=10, n_clusters=3)
    moving = bt.simulate(policies, drifting(still, every=500), horizon=2500, seeds=24).compare("forgets", "keeps")
    lost = bt.simulate(policies, still, horizon=2500, seeds=24).compare("forgets", "keeps")
    assert moving.z < -4
    assert lost.z > 4
    assert lost.difference < -moving.difference


def test_it_says_what_it_is() -> None:
    assert repr(drifting(PROBLEM, every=9)) == "drifting(problem=unstructured(n_arms=12, n_clusters=3), every=9)"
    assert isinstance(drifting(PROBLEM).instance(0), DriftingInstance)
