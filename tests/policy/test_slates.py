"""Slates: k different arms from one draw for each node, the best first."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.helpers import DIM, NAMES, TREES, events, feed, make, needs_native
from tests.support.walk_law import law
from tests.support.winning import P_FLOOR, chi_square

ORDERS = 4000


def test_on_a_flat_tree_they_are_the_highest_draws() -> None:
    """The same draws, sorted: one Beta for each arm, in order."""
    with engines.using("readable"):
        policy = bt.TS(bt.Tree(9), rng=5)
        policy.update_many([0, 1, 2, 2, 8], [1, 0, 1, 1, 1])
    twin = np.random.default_rng(np.random.SeedSequence(5))
    a, b = np.ones(9), np.ones(9)
    a[[0, 2, 8]] += [1, 2, 1]
    b[1] += 1
    for k in (1, 4, 9):
        draws = twin.beta(a[:, None], b[:, None], (9, 1))[:, 0]
        assert policy.slate(k) == np.argsort(-draws)[:k].tolist()
    draws = twin.beta(a[1:, None], b[1:, None], (8, 1))[:, 0]
    assert policy.slate(3, exclude=[0]) == (1 + np.argsort(-draws)[:3]).tolist()


def test_clusters_come_one_after_the_other(engine: str) -> None:
    tree = bt.Tree({"x": ["a", "b", "c"], "y": ["d", "e"], "z": ["f"]})
    policy = feed(bt.TSC(tree, rng=3), events(tree, 30, 4))
    for _ in range(50):
        clusters = [tree.path(arm)[0] for arm in policy.slate(6)]
        runs = [cluster for at, cluster in enumerate(clusters) if at == 0 or clusters[at - 1] != cluster]
        assert len(runs) == 3
        short = [tree.path(arm)[0] for arm in policy.slate(3, exclude=["b"])]
        assert short[0] != "x" or short[1] == "x"  # two are left in x


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_the_first_is_a_choice_and_the_rest_follow(name: str, shape: str, engine: str) -> None:
    """The first arm has the law of a choice; a whole slate is a permutation of what is allowed."""
    tree = TREES[shape]
    policy = make(name, tree, 1)
    feed(policy, events(tree, 25, 2, policy.dim))
    x = None if policy.dim is None else np.array([1.0, -0.5, 0.25])
    assert sorted(policy.slate(tree.n_arms, x), key=str) == sorted(tree.arms, key=str)
    n = 1500 if engine == "native" else 200
    seen = Counter(policy.slate(1, x)[0] for _ in range(n))
    counts = np.array([seen[arm] for arm in tree.arms])
    assert chi_square(counts, law(policy, None, x)) > P_FLOOR


@needs_native
def test_the_second_of_two_is_the_second_highest_draw() -> None:
    """P(order) of three Betas, from many draws of NumPy's own: two samples of the same size."""
    policy = bt.TS(bt.Tree(3), rng=1)
    policy.update_many([0, 0, 1, 2, 2], [1, 1, 0, 1, 0])
    slates = Counter(tuple(policy.slate(3)) for _ in range(ORDERS))
    draws = np.random.default_rng(2).beta([3, 1, 2], [1, 2, 2], (200 * ORDERS, 3))
    expected = Counter(map(tuple, np.argsort(-draws, axis=1).tolist()))
    orders = sorted(expected)
    counts = np.array([slates[order] for order in orders])
    chances = np.array([expected[order] for order in orders]) / (200 * ORDERS)
    assert chi_square(counts, chances) > P_FLOOR
    assert chi_square(counts, chances[::-1]) < P_FLOOR  # the control


def test_explored_slates_are_any_order_of_any_arms(engine: str) -> None:
    """All 60 ordered threes of five allowed arms, equally often; first-come shuffles would not be."""
    policy = bt.TSC(bt.Tree({"x": ["a", "b", "c"], "y": ["d", "e", "f"]}), explore=1.0, rng=4)
    slates = Counter(tuple(policy.slate(3, exclude=["b"])) for _ in range(ORDERS))
    every = list(permutations(["a", "c", "d", "e", "f"], 3))
    counts = np.array([slates[order] for order in every])
    assert counts.sum() == ORDERS
    assert chi_square(counts, np.full(60, 1 / 60)) > P_FLOOR
    assert chi_square(counts, np.linspace(0.5, 1.5, 60) / 60) < P_FLOOR  # the control


def test_ties_come_in_any_order(engine: str) -> None:
    """UCB before any reward: every arm has an infinite index."""
    policy = bt.UCB1(bt.Tree(4), rng=1)
    slates = Counter(tuple(policy.slate(4)) for _ in range(ORDERS))
    counts = np.array([slates[order] for order in permutations(range(4))])
    assert chi_square(counts, np.full(24, 1 / 24)) > P_FLOOR
    policy.update_many([0, 1, 2], [1, 0, 0])
    slates = Counter(tuple(policy.slate(4)) for _ in range(200))
    assert set(slates) == {(3, 0, 1, 2), (3, 0, 2, 1)}


def test_beliefs_do_not_change(engine: str) -> None:
    policy = bt.TSC(bt.Tree(5), rng=1)
    before = policy.to_bytes()
    policy.slate(5)
    assert policy.to_bytes() == before


@pytest.mark.parametrize(
    ("k", "limits", "error", "says"),
    [
        (0, {}, InvalidValue, "k=0 must be"),
        (6, {}, InvalidValue, "k=6 .*of which 5 are allowed"),
        (5, {"exclude": [2]}, InvalidValue, "k=5 .*of which 4 are allowed"),
        (2, {"only": [2]}, InvalidValue, "k=2 .*of which 1 are allowed"),
        (2.0, {}, InvalidType, "k=2.0"),
        ("2", {}, InvalidType, "k='2'"),
    ],
)
def test_what_is_refused(k: Any, limits: dict[str, Any], error: type[Exception], says: str, engine: str) -> None:
    with pytest.raises(error, match=says):
        bt.TS(bt.Tree(5)).slate(k, **limits)


def test_contexts(engine: str) -> None:
    policy = make("LinTSC", bt.Tree({"x": [0, 1], "y": [2]}))
    assert sorted(policy.slate(3, np.ones(DIM))) == [0, 1, 2]
    with pytest.raises(InvalidValue, match="needs a context of 3 numbers"):
        policy.slate(2)
    with pytest.raises(InvalidValue, match="takes no context"):
        bt.TS(bt.Tree(3)).slate(2, np.ones(3))


@needs_native
def test_wide_slates_are_the_same_on_both_engines() -> None:
    slates = []
    for engine in ("native", "readable"):
        with engines.using(engine, shortcuts=False):
            policy = bt.TS(bt.Tree(300), rng=native_stream(1))
        policy.update_many(range(0, 300, 7), [1.0] * 43)
        slates.append([policy.slate(20, exclude=range(0, 300, 14)) for _ in range(5)])
    assert slates[0] == slates[1]
