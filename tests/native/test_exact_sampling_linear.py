"""Thompson's rule on linear beliefs takes few exact roots, and chooses what it would with all of them.

The same words of the stream make the same normals either way, so both ways agree choice for choice: no statistics are
needed. The control is a copy of the mechanism in NumPy, whose margin is then left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditree as bt
from banditree.policy import engines
from tests.support.helpers import needs_native

Floats = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = needs_native


def twins(tree: bt.Tree, **options: Any) -> tuple[bt.Policy, bt.Policy]:
    """The same policy with and without shortcuts, on streams of the same seed."""
    found: list[bt.Policy] = []
    for shortcuts in (True, False):
        with engines.using("native", shortcuts=shortcuts):
            found.append(bt.LinHTS(tree, rng=5, **options))
    return found[0], found[1]


@given(
    widths=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    dim=st.integers(1, 10),
    scale=st.sampled_from([1e-90, 1e-40, 1e-15, 1.0, 1e15, 1e25]),
    v=st.sampled_from([1e-20, 0.25, 1e20]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_the_same_choices_as_with_every_root(widths: list[int], dim: int, scale: float, v: float, seed: int) -> None:
    tree = bt.Tree({f"c{i}": [f"{i}-{j}" for j in range(width)] for i, width in enumerate(widths)})
    quick, plain = twins(tree, dim=dim, v=v)
    rng = np.random.default_rng(seed)
    for x in rng.standard_normal((60, dim)) * scale:
        arm = quick.choose(context=x)
        assert arm == plain.choose(context=x)
        reward = float(rng.random())
        for policy in (quick, plain):
            policy.update(arm, reward, context=x)
    many = rng.standard_normal((50, dim)) * scale
    assert np.array_equal(quick.choose_many(contexts=many), plain.choose_many(contexts=many))


@pytest.mark.parametrize("k", [2, 7, 300])
def test_where_all_draws_are_equal_all_arms_have_a_chance(k: int) -> None:
    """In a context of zeros every draw is 0: the tie is broken at random, by the same numbers either way."""
    quick, plain = twins(bt.Tree(k), dim=3)
    zeros = np.zeros(3)
    chosen = [quick.choose(context=zeros) for _ in range(40 * k)]
    assert chosen == [plain.choose(context=zeros) for _ in range(40 * k)]
    counts = np.bincount(chosen, minlength=k)
    assert ((counts - 40) ** 2 / 40).sum() < k - 1 + 5 * np.sqrt(2 * (k - 1))  # chi-square: mean k - 1, variance twice


def test_beliefs_of_very_different_spread_share_a_node() -> None:
    """Thousands of rewards for some arms, none for others: roots from 1e-3 to 1 in one comparison."""
    quick, plain = twins(bt.Tree(20), dim=2)
    rng = np.random.default_rng(0)
    arms, contexts = rng.integers(5, size=20_000), rng.standard_normal((20_000, 2)) * 10
    for policy in (quick, plain):
        policy.update_many(arms, contexts @ [0.3, -0.2], contexts=contexts)
    many = rng.standard_normal((20_000, 2)) / 100
    assert np.array_equal(quick.choose_many(contexts=many), plain.choose_many(contexts=many))


@pytest.mark.parametrize("scale", [1e4, 1e5])
def test_variances_that_rounding_has_taken_below_zero(scale: float) -> None:
    """Many large contexts, all the same: B is nearly singular, and what is left of its inverse there is rounding."""
    for seed in range(20):
        quick, plain = twins(bt.Tree(6), dim=3)
        rng = np.random.default_rng(seed)
        contexts = np.repeat(scale * rng.standard_normal((1, 3)), 240, axis=0)
        arms, rewards = np.tile(np.arange(6), 40), rng.random(240)
        for policy in (quick, plain):
            policy.update_many(arms, rewards, contexts=contexts)
        assert np.array_equal(quick.choose_many(contexts=contexts), plain.choose_many(contexts=contexts))


def rough_winners(mean: Floats, variance: Floats, z: Floats, margin: float) -> Any:
    """The mechanism of `src/native/shortcuts/few_roots.hpp`, for rows of draws: (n, k) -> (n,)."""
    draft = mean + z * np.sqrt(variance.astype(np.float32)).astype(np.float64)
    bar = draft.max(axis=1, keepdims=True) - margin * np.sqrt(variance.max(axis=1, keepdims=True))
    exact = mean + z * np.sqrt(variance)
    return np.where(draft >= bar, exact, -np.inf).argmax(axis=1)


def test_the_margin_is_wide_enough_and_is_needed() -> None:
    """Draws made to nearly tie, by a part in ten million: rounding to single precision often turns their order."""
    rng = np.random.default_rng(1)
    n, k = 100_000, 4
    variance, z = rng.uniform(0.5, 2, (n, k)), rng.uniform(-13, 13, (n, k))  # no |z| of ours is above 12.7
    mean = -z * np.sqrt(variance) + rng.uniform(-1, 1, (n, k)) * 1e-7
    best = (mean + z * np.sqrt(variance)).argmax(axis=1)
    assert np.array_equal(rough_winners(mean, variance, z, 1e-5), best)
    assert (rough_winners(mean, variance, z, 0.0) != best).mean() > 0.1  # the control
