"""Results do not depend on the jobs, the backend, the other policies, the checkpoints or the other seeds."""

from __future__ import annotations

from functools import partial
from typing import Any

import joblib
import numpy as np
import pytest

import banditree as bt
from banditree.simulation.runs import Runs
from tests.simulation.test_simulate import Uniformly

PROBLEM = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
CONTEXTUAL = bt.problems.linear(n_arms=12, n_clusters=3, spread=0.5, dim=3)
POLICIES: dict[str, Any] = {"TS": bt.TS, "TSC": bt.TSC, "UCT": bt.UCT, "own": Uniformly}
LINEAR = {"LinTS": partial(bt.LinTS, dim=3), "LinUCBC": partial(bt.LinUCBC, dim=3)}


def simulated(policies: Any = POLICIES, problem: Any = PROBLEM, **options: Any) -> Runs:
    return bt.simulate(policies, problem, **({"horizon": 120, "seeds": 5, "checkpoints": 12, "rng": 3} | options))


@pytest.fixture(scope="module")
def expected() -> Runs:
    return simulated()


def same(one: Runs, two: Runs) -> bool:
    """Whether the policies in both have the same runs."""
    names = [name for name in one.policies if name in two.policies]
    assert names
    assert one.seeds == two.seeds
    assert np.array_equal(one.times, two.times)
    return all(
        np.array_equal(one.regret[name], two.regret[name])
        and np.array_equal(one.evaluations[name], two.evaluations[name], equal_nan=True)
        and one.clusters[name] == two.clusters[name]
        and one.engine[name] == two.engine[name]
        for name in names
    )


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_jobs_do_not_matter(expected: Runs, jobs: int) -> None:
    assert same(expected, simulated(jobs=jobs))


def test_contexts_are_the_same_for_all_and_jobs_do_not_matter_to_them() -> None:
    both = simulated(LINEAR, CONTEXTUAL)
    assert same(both, simulated(LINEAR, CONTEXTUAL, jobs=2))
    alone = simulated({"LinUCBC": LINEAR["LinUCBC"]}, CONTEXTUAL)
    assert same(both, alone)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_backend_does_not_matter(expected: Runs, backend: str) -> None:
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert same(expected, simulated())


def test_instances_drawn_in_processes_are_the_same() -> None:
    problem = bt.problems.bumps(n_arms=12, n_clusters=3)
    policies = {"TSC": bt.TSC, "HTS": bt.on("ward", bt.HTS)}
    assert problem.slow
    assert same(simulated(policies, problem, seeds=3), simulated(policies, problem, seeds=3, jobs=2))


def test_order_and_number_of_policies_do_not_matter(expected: Runs) -> None:
    assert same(expected, simulated(dict(reversed(POLICIES.items()))))
    for name, factory in POLICIES.items():
        assert same(expected, simulated({name: factory}))


def test_checkpoints_do_not_matter(expected: Runs) -> None:
    often = simulated(checkpoints=120)
    given = simulated(checkpoints=[120, 70, 70, 10])
    assert given.times.tolist() == [10, 70, 120]
    for name in POLICIES:
        assert np.array_equal(often.regret[name][:, often.times % 10 == 0], expected.regret[name])
        assert np.array_equal(given.regret[name], expected.regret[name][:, [0, 6, 11]])
    assert simulated(checkpoints=[50]).times.tolist() == [50, 120]
    assert simulated(horizon=3, checkpoints=100).times.tolist() == [1, 2, 3]


def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(expected: Runs) -> None:
    shorter = simulated(horizon=60, checkpoints=6)
    assert all(np.array_equal(shorter.regret[name], expected.regret[name][:, :6]) for name in POLICIES)


def test_a_seed_alone_is_that_seed_of_many() -> None:
    many = simulated(seeds=20)
    alone = simulated(seeds=[17])
    some = simulated(seeds=np.array([17, 2]))
    assert (alone.seeds, some.seeds) == ((17,), (17, 2))
    for name in POLICIES:
        assert np.array_equal(alone.regret[name][0], many.regret[name][17])
        assert np.array_equal(some.regret[name], many.regret[name][[17, 2]])


def test_rng_may_be_an_int_a_seed_sequence_or_a_generator(expected: Runs) -> None:
    sequence = np.random.SeedSequence(3)
    assert same(expected, simulated(rng=sequence))
    assert same(expected, simulated(rng=sequence))  # not used up
    assert sequence.n_children_spawned == 0
    child = np.random.SeedSequence(3, spawn_key=(4,))
    assert same(simulated(rng=child), simulated(rng=child))
    one, two = (simulated(rng=np.random.default_rng(8)) for _ in range(2))
    assert same(one, two)


def test_another_rng_a_fresh_one_or_another_name_gives_other_numbers(expected: Runs) -> None:
    renamed = simulated({"other": bt.TSC})
    assert not np.array_equal(renamed.regret["other"], expected.regret["TSC"])
    for rng in (4, None, np.random.SeedSequence(3, spawn_key=(0,))):
        assert not same(expected, simulated(rng=rng))


def test_all_policies_meet_the_same_instance() -> None:
    met: dict[str, list[Any]] = {"a": [], "b": []}

    class Spy(Uniformly):
        def __init__(self, tree: bt.Tree, rng: Any, name: str) -> None:
            super().__init__(tree, rng)
            met[name].append(tree)

    simulated({"a": partial(Spy, name="a"), "b": partial(Spy, name="b")}, horizon=1)
    assert all(one is two for one, two in zip(met["a"], met["b"], strict=True))
    assert len(set(met["a"])) > 1  # and another one for another seed
