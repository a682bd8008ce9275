"""Arrays that users pass are read with care: masked, misaligned, unordered, or changed meanwhile by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree.errors import BanditreeError, InvalidType, InvalidValue
from tests.support.helpers import NAMES, make, masked, misaligned, same, state

Array = NDArray[Any]


@pytest.mark.parametrize("name", NAMES)
def test_masked_arrays_are_refused_everywhere_and_change_nothing(name: str, engine: str) -> None:
    policy = make(name, bt.Tree(4))
    x = np.ones(3) if policy.dim else None
    X = np.ones((2, 3)) if policy.dim else None
    calls: list[Callable[[], Any]] = [
        lambda: policy.update_many(masked([0, 10**8]), [1, 1], contexts=X),
        lambda: policy.update_many(masked([0, 1]), [1, 1], contexts=X),
        lambda: policy.update_many([0, 1], masked([1.0, 1.0]), contexts=X),
        lambda: policy.update(0, np.ma.masked, x),
        lambda: policy.update(0, np.ma.array(1.0, mask=True), x),
    ]
    if policy.dim:
        calls += [
            lambda: policy.update_many([0, 1], [1, 1], contexts=masked(X)),
            lambda: policy.update_many([0, 1], [1, 1], contexts=[masked(np.ones(3)), np.ones(3)]),
            lambda: policy.choose_many(contexts=masked(X)),
            lambda: policy.choose(masked(np.ones(3))),
            lambda: policy.update(0, 1.0, masked(np.ones(3))),
            lambda: policy.table(masked(np.ones(3))),
        ]
    before = state(policy)
    for call in calls:
        with pytest.raises(InvalidType, match="masked"):
            call()
        assert same(before, state(policy))


def test_masked_means_are_refused() -> None:
    with pytest.raises(InvalidType, match="masked"):
        bt.problems.bernoulli(bt.Tree(2), masked([0.1, 0.9]))


@pytest.mark.parametrize("arms", [{"a", "b"}, frozenset("ab")])
def test_a_set_of_arms_has_no_order(arms: Any, engine: str) -> None:
    policy = bt.TS(bt.Tree(["a", "b"]), rng=0)
    with pytest.raises(InvalidType, match="no order"):
        policy.update_many(arms, [1, 0])


@pytest.mark.parametrize("reward", [np.timedelta64(1), np.timedelta64(1, "s"), np.datetime64(1, "s")])
def test_times_are_not_rewards(reward: Any, engine: str) -> None:
    policy = bt.TS(bt.Tree(2), rng=0)
    before = state(policy)
    with pytest.raises(InvalidType, match="number"):
        policy.update(0, reward)
    with pytest.raises(InvalidType, match="number"):
        policy.update_many([0], [reward])
    with pytest.raises(InvalidType, match="number"):
        policy.update_many([0], np.array([reward]))
    assert same(before, state(policy))


def test_arrays_that_are_not_aligned_are_learned_all_the_same(engine: str) -> None:
    plain, odd = (bt.LinTSC(bt.Tree({"a": 3, "b": 3}), dim=3, rng=0) for _ in range(2))
    rng = np.random.default_rng(0)
    for n in (5, 2000):  # few and many take other ways
        arms, rewards, X = rng.integers(6, size=n), rng.random(n), rng.standard_normal((n, 3))
        plain.update_many(arms, rewards, contexts=X)
        odd.update_many(misaligned(arms), misaligned(rewards), contexts=misaligned(X))
        assert plain.choose(X[0]) == odd.choose(misaligned(X[0]))
        plain.update(1, 0.5, X[1])
        odd.update(1, 0.5, misaligned(X[1]))
        assert np.array_equal(plain.choose_many(contexts=X), odd.choose_many(contexts=misaligned(X)))
    assert same(state(plain), state(odd))


def test_the_places_of_arms_are_an_array_of_their_own() -> None:
    tree, arms = bt.Tree(4), np.array([0, 1, 2])
    places = tree.positions(arms)
    arms[:] = 10**8
    assert places.tolist() == [0, 1, 2]


def test_a_thread_that_writes_to_the_arrays_meanwhile_does_no_harm(engine: str) -> None:
    """Every reward goes to an arm that is there, or the call is refused."""
    policy = bt.TS(bt.Tree(50), rng=0)
    arms, rewards = np.zeros(5000, np.int64), np.ones(5000)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            arms[:] = 10**8
            arms[:] = 3

    other = threading.Thread(target=disturb)
    other.start()
    learned = 0
    try:
        for _ in range(300):
            try:
                policy.update_many(arms, rewards)
                learned += len(arms)
            except BanditreeError:
                continue
    finally:
        stop.set()
        other.join()
    assert policy.table()[0].plays == learned


@pytest.mark.parametrize(
    "build",
    [
        lambda: bt.Tree(10**30),
        lambda: bt.Tree({"a": 10**400}),
        lambda: bt.Beta(10**400, 1),
        lambda: bt.Beta(1, 10**400),
        lambda: bt.Gaussian(sd=10**400),
        lambda: bt.Gaussian(mean=-(10**400)),
        lambda: bt.LinTS(bt.Tree(2), dim=10**30),
        lambda: bt.LinTS(bt.Tree(100_000), dim=30_000),
        lambda: bt.Policy(bt.Tree(2), belief=bt.Linear(dim=2, v=10**400), rule=bt.Thompson()),
        lambda: bt.TS(bt.Tree(2), rng=0).update(0, 10**400),
        lambda: bt.TS(bt.Tree(2), rng=0).choose_many(10**400),
    ],
)
def test_numbers_beyond_all_bounds_get_a_sentence(build: Callable[[], Any]) -> None:
    with pytest.raises(InvalidValue) as caught:
        build()
    assert len(str(caught.value)) < 200
