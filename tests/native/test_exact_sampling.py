"""Thompson's choice at one node by the native shortcut, against numerically integrated win probabilities.

A million choices at each node. Every p-value must be above P_FLOOR, which a right sampler misses once in a million
suites; the same statistics catch each error planted in a sampler that works the same way.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import stream
from banditree.policy import engines
from tests.support import winning
from tests.support.winning import P_FLOOR, Pair, p_values, win_probabilities

native = pytest.importorskip("banditree._native")

CHOICES = 1_000_000
Node = list[tuple[float, float, int]]  # a, b and how many children have them


def fractions(k: int) -> Node:
    """Evidence as rewards between 0 and 1 leave it: no two children alike."""
    plays = np.random.default_rng(0).integers(0, 12, size=k)
    rewards = np.random.default_rng(1).random(k) * plays
    return [(1 + float(r), 1 + float(n - r), 1) for n, r in zip(plays, rewards, strict=True)]


NODES: dict[str, Node] = {
    "two alike": [(2, 3, 2)],
    "two unlike": [(30, 12, 1), (3, 2, 1)],
    "three young": [(1, 1, 1), (1, 2, 1), (2, 1, 1)],
    "a few alike, about as many as leaders": [(7, 4, 5)],
    "untouched": [(1, 1, 5000)],
    "equal": [(7, 4, 1000)],
    "in the middle of a run": [
        (1, 1, 3000), (1, 2, 1200), (2, 1, 300), (2, 2, 200), (1, 3, 150), (3, 1, 60), (2, 3, 50), (20, 6, 30),
        (61, 20, 9), (300, 120, 1),
    ],
    "all near 0": [(1, 1e6, 50), (2, 1e6, 10)],
    "all near 1": [(1e6, 1, 30), (1e6, 2, 30), (1e6, 1.5, 5)],
    "sharp ones and others": [(1e5, 1e5, 40), (100_400, 99_600, 2), (50, 50, 3), (1, 1e6, 20)],
    "too sharp for the tangent": [(6e7, 6e7, 4), (60_003_000, 59_997_000, 2)],
    "fractional": fractions(60),
    "nearly flat": [(1, 1 + 1e-7, 3), (1, 1.5, 3), (1.25, 1, 3), (1 + 1e-6, 1 + 1e-6, 4)],
    "as flat as the tangent bears": [(1, 1 + 1.5e-6, 20), (1, 1 + 1.9e-6, 20), (4, 2, 3)],
    "a low leader below many modes": [(1, 50, 1), (30, 300, 500)],
}  # fmt: skip


def shuffled(node: Node) -> list[Pair]:
    pairs = [(float(a), float(b)) for a, b, n in node for _ in range(n)]
    return [pairs[i] for i in np.random.default_rng(len(pairs)).permutation(len(pairs))]


def policy_of(pairs: list[Pair], rng: int = 5) -> bt.TS:
    """A flat policy whose arms have these posteriors; every node of it takes the shortcut."""
    prior = {arm: bt.Beta(*pair) for arm, pair in enumerate(pairs)}
    with engines.using("native"):
        policy = bt.TS(bt.Tree(len(pairs)), prior=prior, rng=rng)
    policy._state.walk.native.min_wide = 2
    return policy


@pytest.mark.parametrize("name", NODES)
def test_choices_have_the_law_of_the_argmax(name: str) -> None:
    pairs = shuffled(NODES[name])
    picks = policy_of(pairs)._state.walk.choose_many(CHOICES, None)
    assert picks is not None
    found = p_values(picks, pairs)
    assert min(found.values()) > P_FLOOR, found


PLANTED = shuffled([(1, 1, 8), (1, 2, 6), (2, 2, 4), (6, 3, 3), (2.5, 1.25, 2)])


def test_the_mechanism_itself_passes() -> None:
    """The same steps in NumPy, without an error in them: so that what fails below is the error."""
    picks = winning.picks(PLANTED, 200_000, np.random.default_rng(1))
    assert min(p_values(picks, PLANTED).values()) > P_FLOOR


@pytest.mark.parametrize("bias", winning.BIASES)
def test_a_planted_bias_is_caught(bias: str) -> None:
    picks = winning.picks(PLANTED, 200_000, np.random.default_rng(1), bias)
    assert min(p_values(picks, PLANTED).values()) < P_FLOOR


def test_win_probabilities_known_in_closed_form() -> None:
    # P(U > V^(1/2)) = 1/3 for U, V uniform; four alike share; P(Beta(1, b) > Beta(1, c)) = c / (b + c).
    assert win_probabilities([(1, 1), (2, 1)]) == pytest.approx([1 / 3, 2 / 3], abs=1e-9)
    assert win_probabilities([(30, 7)] * 4) == pytest.approx([1 / 4] * 4, abs=1e-9)
    assert win_probabilities([(1, 1e6), (1, 3e6)]) == pytest.approx([3 / 4, 1 / 4], abs=1e-9)


def same_as_plain(k: int) -> bool:
    """Whether a flat policy of k arms, as it comes, makes the choices of one that draws from every arm."""
    choices: list[list[int]] = []
    for shortcuts in (True, False):
        with engines.using("native", shortcuts=shortcuts):
            policy = bt.TS(bt.Tree(k), rng=3)
        policy.update(0, 1)
        choices.append(list(policy.choose_many(200)))
    return choices[0] == choices[1]


def test_wide_nodes_take_the_shortcut_and_narrow_ones_do_not() -> None:
    with engines.using("native"):
        min_wide = bt.TS(bt.Tree(2))._state.walk.native.min_wide
    assert same_as_plain(min_wide - 1)
    assert not same_as_plain(min_wide)


@pytest.mark.parametrize("k", [2, 3, 16, 47])
@pytest.mark.parametrize("kind", [bt.HTS, bt.UCT])
def test_among_untouched_children_any_is_as_likely_and_none_is_looked_at(kind: Any, k: int) -> None:
    """One number below k for each level of the way down; after one reward its cluster is walked as usual."""
    tree = bt.Tree({f"c{i}": [f"{i}-{j}" for j in range(k)] for i in range(k)})
    with engines.using("native"):
        policy = kind(tree, rng=5)
    n = 40 * k * k
    chosen = Counter(policy.choose() for _ in range(n))
    assert sum((chosen[arm] - 40) ** 2 / 40 for arm in tree.arms) < k * k - 1 + 5 * np.sqrt(2 * (k * k - 1))
    twin = stream.native_stream(5)
    steps = [twin.integers(k) for _ in range(2 * n)]
    assert chosen == Counter(f"{one}-{two}" for one, two in zip(steps[::2], steps[1::2], strict=True))
    policy.update("1-1", 1)
    again = sum(policy.choose().startswith("1-") for _ in range(20_000)) / 20_000
    if kind is bt.UCT:
        assert again == 0  # the others come first, which were never tried
    else:
        expected = 2 / (k + 1)  # Beta(2, 1) against k - 1 uniforms: the integral of 2 x times x^(k - 1)
        assert abs(again - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)


def test_untouched_children_with_priors_of_their_own_are_not_alike() -> None:
    with engines.using("native"):
        policy = bt.TS(bt.Tree(3), prior={1: bt.Beta(30, 1)}, rng=6)
    assert Counter(policy.choose() for _ in range(300))[1] > 250


def test_priors_below_1_are_drawn_plainly() -> None:
    choices: list[list[int]] = []
    for min_wide in (2, 2**31 - 1):
        with engines.using("native"):
            policy = bt.TS(bt.Tree(100), prior={arm: bt.Beta(0.5, 1) for arm in range(100)}, rng=4)
        policy._state.walk.native.min_wide = min_wide
        choices.append(list(policy.choose_many(100)))
    assert choices[0] == choices[1]


def test_the_cost_does_not_grow_with_equal_children() -> None:
    """Draws taken from the stream, counted: below the mode too, where a tangent is of no use at first."""
    for pair in ((1.0, 1.0), (2.0, 2.0), (30.0, 300.0), (1.0, 20.0), (20.0, 1.0)):
        words = {k: words_drawn([pair] * k, 200) / 200 for k in (100, 10_000)}
        assert words[100] < 60, (pair, words)
        assert words[10_000] < 60, (pair, words)


def words_drawn(pairs: list[Pair], choices: int) -> int:
    policy, twin = policy_of(pairs, rng=9), stream.native_stream(9)
    assert policy._state.walk.choose_many(choices, None) is not None
    stream_of: Any = policy._stream
    end = stream_of.state().tolist()
    for n in range(10**6):
        if twin.state().tolist() == end:
            return n
        twin.bits()
    raise AssertionError("more than a million words")
