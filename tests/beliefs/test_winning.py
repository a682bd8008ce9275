"""The probability that each child has the highest draw: against other quadratures, closed forms and draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from banditree.beliefs import winning as readable
from banditree.beliefs.winning import log_beta
from banditree.stream import native
from tests.support.helpers import needs_native
from tests.support.winning import NORMAL, P_FLOOR, by_quadrature, chi_square

Floats = np.ndarray[Any, np.dtype[np.float64]]
ENGINES = [readable] if native is None else [readable, native]
engines = pytest.mark.parametrize("engine", ENGINES, ids=lambda module: module.__name__.split(".")[-1].strip("_"))

NOT_NEGLIGIBLE = 1e-12


def floats(first: Any, second: Any) -> tuple[Floats, Floats]:
    return np.array(first, float), np.array(second, float)


def assert_close(found: Floats, expected: Floats, relative: float = 1e-6) -> None:
    """The promise: relative where a probability is not negligible, 1e-9 otherwise; they add up to 1."""
    assert found.shape == expected.shape
    large = expected > NOT_NEGLIGIBLE
    assert np.abs(found[large] / expected[large] - 1).max() < relative
    assert np.abs(found - expected).max() < 1e-9 + relative
    assert abs(found.sum() - 1) < 1e-9
    assert (found >= 0).all()


def beta_case(name: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(5)
    if name == "10 lightly played":
        return floats(1 + rng.integers(0, 3, 10), 1 + rng.integers(0, 6, 10))
    if name == "1,000 lightly played":
        return floats(1 + rng.integers(0, 3, 1000), 1 + rng.integers(0, 6, 1000))
    if name == "32 of 10,000 plays":
        wins = rng.binomial(10_000, 0.5 + 0.01 * rng.standard_normal(32))
        return floats(1 + wins, 10_001 - wins)
    if name == "Beta(0.05, 0.05)":
        return floats(0.05 + (np.arange(20) % 3 == 0), 0.05 + (np.arange(20) % 4 == 0))
    if name == "priors of 0.001":
        return floats(0.001 + rng.integers(0, 3, 20), 0.001 + rng.integers(0, 30, 20))
    if name == "one dominates":
        return floats([900, 8, 7, 30], [100, 10, 9, 40])
    if name == "a million plays":
        return floats([1e6, 1.001e6, 0.999e6], [1e6, 1e6, 1e6])
    if name == "narrow and wide":
        return floats([1e6, 2e5, 0.5, 1, 30, 0.01], [1e6, 2.1e5, 0.5, 2, 31, 0.02])
    assert name == "steep on one side"
    return floats([0.08, 0.08, 0.08, 70, 0.002], [5e11, 5e8, 2e-4, 1e-5, 1.5e7])


BETA_CASES = [
    "10 lightly played",
    "1,000 lightly played",
    "32 of 10,000 plays",
    "Beta(0.05, 0.05)",
    "priors of 0.001",
    "one dominates",
    "a million plays",
    "narrow and wide",
    "steep on one side",
]


@cache
def expected_of(name: str) -> Floats:
    return by_quadrature(*beta_case(name))


@engines
@pytest.mark.parametrize("name", BETA_CASES)
def test_betas_agree_with_another_quadrature(engine: Any, name: str) -> None:
    a, b = beta_case(name)
    assert_close(engine.beta_wins(a, b), expected_of(name))


shapes = st.one_of(
    st.floats(-3, 6).map(lambda x: 10.0**x),
    st.integers(1, 30).map(float),
    st.sampled_from([1e-3, 0.05, 0.5, 1.0, 1e4, 1e6]),
)
beliefs = st.lists(st.tuples(shapes, shapes), min_size=1, max_size=5)
normals = st.lists(st.tuples(st.floats(-3, 3), st.floats(-4, 2).map(lambda x: 10.0**x)), min_size=1, max_size=5)


@engines
@given(pairs=beliefs)
@settings(max_examples=60, deadline=None)
def test_any_betas_agree_with_another_quadrature(engine: Any, pairs: list[tuple[float, float]]) -> None:
    a, b = floats(*zip(*pairs, strict=True))
    assert_close(engine.beta_wins(a, b), by_quadrature(a, b))


@engines
@given(pairs=normals)
@settings(max_examples=60, deadline=None)
def test_any_normals_agree_with_another_quadrature(engine: Any, pairs: list[tuple[float, float]]) -> None:
    mean, sd = floats(*zip(*pairs, strict=True))
    assert_close(engine.normal_wins(mean, sd), by_quadrature(mean, sd, NORMAL))


def beats(a: int, b: int, c: int, d: int) -> float:
    """P(X > Y) for X ~ Beta(a, b), Y ~ Beta(c, d), whole numbers: a sum over i < a."""
    return math.fsum(
        math.exp(special.betaln(c + i, b + d) - math.log(b + i) - special.betaln(1 + i, b) - special.betaln(c, d))
        for i in range(a)
    )


@engines
@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (2, 3, 4, 5), (40, 60, 55, 50), (300, 700, 290, 710), (5, 1, 1, 90)])
def test_two_betas_have_a_closed_form(engine: Any, shape: tuple[int, int, int, int]) -> None:
    a, b, c, d = shape
    first = beats(a, b, c, d)
    assert_close(engine.beta_wins(*floats([a, c], [b, d])), np.array([first, beats(c, d, a, b)]), 1e-9)


@engines
def test_by_hand(engine: Any) -> None:
    """Beta(a, 1) has F(x) = x^a, so child i wins with a_i / sum a; and Beta(1, 2) beats a uniform with 1/3."""
    a, ones = floats([1, 2, 3.5, 0.25], np.ones(4))
    assert engine.beta_wins(a, ones) == pytest.approx(a / a.sum(), rel=1e-10)
    assert engine.beta_wins(*floats([1, 1], [2, 1])) == pytest.approx([1 / 3, 2 / 3], rel=1e-10)
    assert engine.beta_wins(np.ones(7), np.ones(7)) == pytest.approx(np.full(7, 1 / 7), rel=1e-14)
    assert engine.beta_wins(*floats([3], [4])) == pytest.approx([1.0])


@engines
@pytest.mark.parametrize("many", [1e12, 1e20, 1e30, 1e99])
@pytest.mark.parametrize("few", [(1, 2), (0.5, 7), (40, 55)])
def test_with_failures_without_end_betas_are_gammas(engine: Any, few: tuple[float, float], many: float) -> None:
    """many Beta(a, many) tends to a Gamma(a), and one of two Gammas is higher with a chance that is a Beta's."""
    first, second = special.betainc(few[1], few[0], 0.5), special.betainc(few[0], few[1], 0.5)
    assert_close(engine.beta_wins(*floats(few, [many, many])), np.array([first, second]), 1e-8)
    assert_close(engine.beta_wins(*floats([many, many], few)), np.array([second, first]), 1e-8)
    assert engine.beta_wins(*floats([7, *few], [6, many, many])) == pytest.approx([1, 0, 0], abs=1e-9)


@engines
def test_a_normal_that_is_next_to_sure_is_sure(engine: Any) -> None:
    found = engine.normal_wins(*floats([0, 0, 0], [1e-300, 1, 1]))
    assert found == pytest.approx([1 / 4, 3 / 8, 3 / 8], rel=1e-9)


@engines
@pytest.mark.parametrize(
    ("m", "s"), [((0, 0), (1, 5)), ((0, 1), (1, 2)), ((5, -5), (1, 2)), ((1e6, 1e6 + 1), (1, 1e-3))]
)
def test_two_normals_have_a_closed_form(engine: Any, m: tuple[float, float], s: tuple[float, float]) -> None:
    first = special.ndtr((m[0] - m[1]) / math.hypot(*s))
    second = special.ndtr((m[1] - m[0]) / math.hypot(*s))
    assert_close(engine.normal_wins(*floats(m, s)), np.array([first, second]), 1e-8)


@engines
def test_sure_normals(engine: Any) -> None:
    """sd 0: the highest sure mean wins where all draws are below it; equals share it, lower ones win nothing."""
    mean, sd = floats([0.5, 0.5, 0.2, 0.0, 1.0], [0, 0, 0, 1, 2])
    below = special.ndtr(0.5) * special.ndtr(-0.25)
    found = engine.normal_wins(mean, sd)
    assert found[:3] == pytest.approx([below / 2, below / 2, 0.0], rel=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    with_narrow = engine.normal_wins(*floats([0.5, 0.5, 0.2, 0.0, 1.0], [1e-9, 1e-9, 1e-9, 1, 2]))
    assert found == pytest.approx(with_narrow, abs=1e-8)
    assert engine.normal_wins(*floats([1, 3, 3, -0.0], np.zeros(4))).tolist() == [0, 0.5, 0.5, 0]
    assert engine.normal_wins(*floats([0.0, -0.0], np.zeros(2))).tolist() == [0.5, 0.5]


@engines
@given(pairs=beliefs, seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_children_alike_and_the_order_of_children(engine: Any, pairs: list[tuple[float, float]], seed: int) -> None:
    """Listing a child twice makes two children that win alike; reordered children win as before."""
    many = np.array(pairs + pairs[:2] + pairs[:1], float)
    found = engine.beta_wins(*map(np.ascontiguousarray, many.T))
    k = len(pairs)
    assert (found[k : k + len(pairs[:2])] == found[: len(pairs[:2])]).all()
    order = np.random.default_rng(seed).permutation(len(many))
    moved = engine.beta_wins(*map(np.ascontiguousarray, many[order].T))
    assert moved == pytest.approx(found[order], rel=1e-9, abs=1e-13)


@engines
def test_a_class_is_the_same_as_children_nearly_alike(engine: Any) -> None:
    """Multiplicities, against children told apart by a rounding error, which enter one by one."""
    rng = np.random.default_rng(3)
    a, b = floats(1 + rng.integers(0, 2, 60), 1 + rng.integers(0, 3, 60))
    apart = a * (1 + 1e-13 * np.arange(60))
    assert engine.beta_wins(apart, b) == pytest.approx(engine.beta_wins(a, b), rel=1e-9)


@engines
def test_a_hundred_thousand_arms(engine: Any) -> None:
    """99,999 uniforms and one Beta(3, 1): by hand 3 / (99,999 + 3)."""
    a, b = np.ones(100_000), np.ones(100_000)
    a[-1] = 3
    found = engine.beta_wins(a, b)
    assert found[-1] == pytest.approx(3 / 100_002, rel=1e-9)
    assert found[0] == pytest.approx(1 / 100_002, rel=1e-9)


@engines
def test_a_million_draws(engine: Any) -> None:
    """And an error of one part in twenty in one child's probability is caught by the same test."""
    rng = np.random.default_rng(11)
    a, b = floats([1, 2, 9, 0.3, 40, 2], [1, 3, 11, 0.2, 52, 3])
    mean, sd = floats([0, 0.1, -1, 0.5], [1, 0.5, 2, 0.01])
    draws: list[tuple[Floats, Callable[[], Floats]]] = [
        (engine.beta_wins(a, b), lambda: rng.beta(a, b, (100_000, len(a)))),
        (engine.normal_wins(mean, sd), lambda: rng.normal(mean, sd, (100_000, len(mean)))),
    ]
    for probability, draw in draws:
        k = len(probability)
        counts = sum(np.bincount(draw().argmax(axis=1), minlength=k) for _ in range(10))
        assert chi_square(np.asarray(counts), probability) > P_FLOOR
        wrong = probability.copy()
        wrong[1] *= 1.05
        assert chi_square(np.asarray(counts), wrong / wrong.sum()) < P_FLOOR


@needs_native
@given(
    pairs=st.lists(
        st.tuples(st.floats(-6, 12), st.floats(-6, 12)).map(lambda x: (10 ** x[0], 10 ** x[1])), min_size=1, max_size=12
    )
)
@settings(max_examples=100, deadline=None)
def test_both_engines_agree(pairs: list[tuple[float, float]]) -> None:
    assert native is not None
    a, b = floats(*zip(*pairs, strict=True))
    found, twin = native.beta_wins(a, b), readable.beta_wins(a, b)
    # A belief of 1e12 plays is known to about 1e-16 sqrt(1e12) of its width.
    assert found == pytest.approx(twin, rel=1e-8, abs=1e-12)
    mean, sd = np.log(a), b**0.25
    assert native.normal_wins(mean, sd) == pytest.approx(readable.normal_wins(mean, sd), rel=1e-9, abs=1e-13)


@needs_native
@pytest.mark.parametrize("name", BETA_CASES)
def test_both_engines_agree_closely_on_usual_beliefs(name: str) -> None:
    assert native is not None
    a, b = beta_case(name)
    assert native.beta_wins(a, b) == pytest.approx(readable.beta_wins(a, b), rel=1e-10, abs=1e-13)


@needs_native
def test_the_bits_are_those_of_any_vectors() -> None:
    assert native is not None
    a, b = beta_case("10 lightly played")
    wide = native.beta_wins(a, b)
    try:
        native.use_wider_vectors(False)
        assert native.beta_wins(a, b).tobytes() == wide.tobytes()
    finally:
        native.use_wider_vectors(True)


@needs_native
def test_native_refuses_what_is_not_a_belief() -> None:
    assert native is not None
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(ValueError, match="same length"):
        native.beta_wins(one, two)
    with pytest.raises(ValueError, match="at least one child"):
        native.normal_wins(np.ones(0), np.ones(0))
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"b=.* must be finite and above 0"):
            native.beta_wins(two, np.array([1.0, bad]))
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"sd=.* must be finite and at least 0"):
            native.normal_wins(two, np.array([1.0, bad]))
    with pytest.raises(ValueError, match="mean=nan must be finite"):
        native.normal_wins(np.array([np.nan]), one)


def test_ties_share() -> None:
    assert readable.ties(np.array([1.0, 3.0, 3.0, 2.0])).tolist() == [0, 0.5, 0.5, 0]
    assert readable.ties(np.array([np.inf, np.inf, 5.0])).tolist() == [0.5, 0.5, 0]
    assert readable.ties(np.array([0.1])).tolist() == [1]


def test_ln_b() -> None:
    """B(1, b) = 1 / b, B(2, 3) = 1 / 12, B(1/2, 1/2) = pi. Rounding x / (x + y) costs at most (x + y) 2^-53."""
    x, y = floats([1, 1, 1e9, 2, 0.5], [1e-12, 1e9, 1, 3, 0.5])
    expected = [math.log(1e12), -math.log(1e9), -math.log(1e9), -math.log(12), math.log(math.pi)]
    assert (np.abs(log_beta(x, y) - expected) <= (x + y) * 2.0**-53 + 1e-14).all()
