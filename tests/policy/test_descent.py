"""The walk: steps, ties, blocks of decisions, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditree as bt
from banditree.errors import InvalidValue
from banditree.policy import descent, engines
from banditree.policy.state import hold
from banditree.stream import generator
from banditree.testing import alike
from tests.support.helpers import DIM, NAMES, SHOP, TREES, events, feed, make, needs_native


@dataclasses.dataclass(frozen=True)
class ByName(bt.Rule):
    """A fixed score for each node number."""

    values: tuple[float, ...] = ()

    def score(self, view: bt.View) -> Any:
        return np.array(self.values)[view.children][:, None]


def test_each_step_goes_to_the_highest_score() -> None:
    """SHOP's nodes: root 0, shoes 1, hats 2, s1 3, s2 4, h1 5, h2 6, h3 7."""
    for values, arm in [
        ((0, 1, 0, 0, 1, 9, 9, 9), "s2"),
        ((0, 1, 2, 9, 9, 0, 5, 1), "h2"),
        ((0, -1, -2, -4, -3, 9, 9, 9), "s2"),
        ((0, 1, np.inf, 9, 9, -np.inf, -np.inf, 0), "h3"),
    ]:
        policy = bt.Policy(SHOP, belief=bt.Beta(), rule=ByName(values), rng=0)
        assert policy.choose() == arm
        assert set(policy.choose_many(5)) == {arm}


def test_a_score_that_is_not_a_number_is_refused() -> None:
    policy = bt.Policy(SHOP, belief=bt.Beta(), rule=ByName((0, 1, np.nan, 0, 0, 0, 0, 0)), rng=0)
    for attempt in (policy.choose, lambda: policy.choose_many(3)):
        with pytest.raises(InvalidValue, match=r"ByName.*not a number"):
            attempt()
    policy.update("s1", 1)  # still in order


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_best_is_the_highest_of_each_column(k: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(3, size=(k, m)).astype(float)
    found = descent.highest(scores, rng, bt.Thompson())
    assert (scores[found, np.arange(m)] == scores.max(axis=0)).all()


def test_nothing_is_drawn_where_there_is_nothing_to_choose(engine: str) -> None:
    """One child: no step of the stream."""
    tree = bt.Tree({"only": {"still": ["a"]}})
    policy = bt.HTS(tree, rng=3)
    stream: Any = policy._stream
    before = str(stream.state() if engine == "native" else stream.bit_generator.state)
    assert policy.choose() == "a"
    assert policy.choose_many(3).tolist() == ["a"] * 3
    assert str(stream.state() if engine == "native" else stream.bit_generator.state) == before


@pytest.mark.parametrize("name", NAMES)
def test_blocks_change_nothing_but_the_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few decisions at a time follow the same beliefs as all at once; linear indices, without ties, exactly."""
    chosen = []
    for block in (descent.BLOCK, 7):
        monkeypatch.setattr(descent, "BLOCK", block)
        with engines.using("readable"):
            policy = make(name, TREES["uneven"], 1)
        feed(policy, events(policy.tree, 40, 2, policy.dim))
        X = None if policy.dim is None else np.tile([1.0, -1.0, 0.5], (600, 1))
        chosen.append(Counter(policy.choose_many(600, contexts=X).tolist()))
    assert alike(chosen[0], chosen[1])
    if name.startswith("LinU"):
        assert chosen[0] == chosen[1]
        assert len(chosen[0]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch(name: str, engine: str) -> None:
    policy = make(name, SHOP)
    X = None if policy.dim is None else np.empty((0, DIM))
    assert policy.choose_many(0, contexts=X).tolist() == []
    policy.update_many([], [], contexts=X)
    policy.update_many(np.array([], int), np.array([]), contexts=X)


@needs_native
def test_single_steps_refuse_what_is_not_ready() -> None:
    """None and False, having done nothing: the policy then finds out why."""
    with engines.using("native"):
        policy = make("LinTSC", SHOP)
    walk, arm = policy._state.walk, SHOP.arms[0]
    x = np.ones(DIM)
    odd: Any
    for odd in (None, x.tolist(), x[:2], x.astype(np.float32), np.full(DIM, np.nan), np.ones((1, DIM)), "x"):
        assert walk.choose(odd) is None
        assert walk.update(arm, 1.0, odd) is False
    for odd in (None, "1", np.nan, np.inf, [1.0], np.array([1.0]), object()):
        assert walk.update(arm, odd, x) is False
    assert walk.choose(x) in SHOP.arms
    assert walk.update(arm, 1.0, x) is True
    with hold(policy):
        assert walk.choose(x) is None
        assert walk.update(arm, 1.0, x) is False
    assert walk.choose(x) in SHOP.arms


def test_the_generator_of_the_readable_engine_is_the_users() -> None:
    rng = np.random.default_rng(3)
    with engines.using("readable"):
        policy = bt.TS(SHOP, rng=rng)
    assert policy._stream is rng
    assert generator(rng) is rng


@pytest.mark.parametrize("shape", ["(3,)", "(3, 2)", "()", "(1, 3)"])
def test_scores_of_another_shape_are_told(shape: str) -> None:
    @dataclasses.dataclass(frozen=True)
    class Wrong(bt.Rule):
        def score(self, view: bt.View) -> Any:
            mean = view.mean()
            return {"(3,)": mean[:, 0], "(3, 2)": np.tile(mean, 2), "()": 1.0, "(1, 3)": mean.T}[shape]

    policy = bt.Policy(bt.Tree(3), belief=bt.Beta(), rule=Wrong(), rng=1)
    for call in (policy.choose, lambda: policy.choose_many(3)):
        with pytest.raises(
            InvalidValue, match=rf"Wrong\(\) gave scores of shape {re.escape(shape)}; it must give \(k, m\)"
        ):
            call()
