"""The native random stream: its bits against the reference recurrence, its samplers against the laws they claim.

Every statistical test has a fixed seed. A Kolmogorov-Smirnov or chi-square test fails below P_FLOOR: with some 60 of
them a right sampler fails somewhere with probability 1e-6. Moments and counts must lie within 6 standard errors, 2e-9.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from banditree import stream
from banditree.errors import BanditreeError, InvalidType, InvalidValue, MissingExtra
from banditree.stream import Stream, beta_log_odds, generator, native_stream, seed_sequence

native = pytest.importorskip("banditree._native")

Floats = NDArray[np.float64]
P_FLOOR = 1e-6 / 60
ERRORS = 6.0
N = 200_000

SHAPES = [0.05, 0.5, 1.0, 1.5, 3.0, 100.0, 1e6]
PLAIN_PAIRS = [(1, 1), (1, 2), (1, 50), (50, 1), (2, 3), (7.5, 1.2), (30, 70), (3.7, 1e5)]
PAIRS = [*PLAIN_PAIRS, (0.5, 0.5), (1e-3, 1e-3), (1e-3, 5)]
SMALL_PAIRS = [(1e-3, 1e-3), (1e-3, 5), (5, 1e-3), (0.3, 0.7), (1e-10, 2e-10), (2, 3), (300, 20)]


def ks(draws: Floats, cdf: Callable[[Floats], Floats], low: float = -math.inf, high: float = math.inf) -> float:
    """P-value of the largest gap between the draws' share below a point and ``cdf``, over the draws between the bounds.

    Draws outside the bounds still count as below or above, so that a law may have atoms there.
    """
    ordered = np.sort(draws)
    points = np.unique(ordered[(ordered > low) & (ordered < high)])
    share = np.searchsorted(ordered, points, side="right") / len(ordered)
    gap = np.abs(share - cdf(points)).max()
    return float(stats.kstwobign.sf(gap * math.sqrt(len(ordered))))


def close(value: float, expected: float, standard_error: float) -> bool:
    return abs(value - expected) < ERRORS * standard_error


def log_gamma_cdf(shape: float) -> Callable[[Floats], Floats]:
    """P(ln G <= t). Far to the left G^shape / Gamma(shape + 1) is the whole of the incomplete gamma function."""

    def cdf(t: Floats) -> Floats:
        left = np.exp(np.minimum(shape * t - special.gammaln(shape + 1), 0))
        share: Floats = np.where(t < -30, left, special.gammainc(shape, np.exp(np.clip(t, -30, 700))))
        return share

    return cdf


def log_odds_cdf(a: float, b: float) -> Callable[[Floats], Floats]:
    """P(logit of Beta(a, b) <= t). Far to the left it is p^a / (a B(a, b)), p = e^t; to the right likewise."""

    def below(a: float, b: float, t: Floats) -> Floats:
        far = np.exp(np.minimum(a * t - math.log(a) - special.betaln(a, b), 0))
        share: Floats = np.where(t < -36, far, special.betainc(a, b, special.expit(np.maximum(t, -36))))
        return share

    return lambda t: np.where(t < 0, below(a, b, np.minimum(t, 0)), 1 - below(b, a, np.minimum(-t, 0)))


# ---------------------------------------------------------------- bits


def xoshiro(words: list[int]) -> Iterator[int]:
    """The published recurrence, in whole numbers."""
    mask = 2**64 - 1

    def rotate(x: int, k: int) -> int:
        return (x << k | x >> (64 - k)) & mask

    s = list(words)
    while True:
        yield (rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask
        shifted = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)


def test_bits_follow_the_reference_recurrence() -> None:
    rng = native_stream(11)
    reference = list(itertools.islice(xoshiro([int(word) for word in rng.state()]), 1000))
    assert [rng.bits() for _ in range(1000)] == reference


def test_state_is_the_seed_sequence_and_may_not_be_zero() -> None:
    words = np.random.SeedSequence(5).generate_state(4, np.uint64)
    assert np.array_equal(native_stream(5).state(), words)
    assert np.array_equal(native_stream(np.random.SeedSequence(5)).state(), words)
    with pytest.raises(ValueError, match="all zero"):
        native.Stream(np.zeros(4, np.uint64))
    with pytest.raises(ValueError, match="4 words"):
        native.Stream(np.ones(3, np.uint64))


def test_random_has_53_bits() -> None:
    rng, twin = native_stream(3), native_stream(3)
    assert rng.random(1000).tolist() == [(twin.bits() >> 11) * 2.0**-53 for _ in range(1000)]
    assert ks(native_stream(4).random(N), lambda x: x) > P_FLOOR


@pytest.mark.parametrize("k", [1, 7, 1000])
def test_integers_are_uniform(k: int) -> None:
    draws = native_stream(k).integers(k, N)
    counts = np.bincount(draws, minlength=k)
    assert len(counts) == k
    assert k == 1 or stats.chisquare(counts).pvalue > P_FLOOR


def test_integers_draw_again_where_a_word_is_too_many() -> None:
    # For k = 3/8 of 2^64 a bare high word gives residues 0, 1, 2 the shares 3/8, 3/8, 2/8.
    k = 3 * 2**61
    draws = native_stream(2).integers(k, N)
    assert stats.chisquare(np.bincount(draws % 3)).pvalue > P_FLOOR
    words = native_stream(2)
    bare = np.array([words.bits() * k >> 64 for _ in range(10_000)])
    assert stats.chisquare(np.bincount(bare % 3)).pvalue < P_FLOOR


# ---------------------------------------------------------------- ln and exp


def errors_in_last_place(values: Floats, ours: Callable[[float], float], exact: Callable[[Decimal], Decimal]) -> float:
    with localcontext() as context:
        context.prec = 50
        worst = 0.0
        for value in values.tolist():
            reference = exact(Decimal(value))
            spacing = math.ulp(float(reference))
            worst = max(worst, float(abs(Decimal(ours(value)) - reference) / Decimal(spacing)))
    return worst


def test_ln_and_exp_are_accurate_to_one_unit() -> None:
    rng = np.random.default_rng(0)
    wide, near = np.exp(rng.uniform(-708, 709, 4000)), rng.uniform(0.4, 2.2, 4000)
    beside = 1 + rng.choice([-1, 1], 1000) * 10 ** rng.uniform(-15.9, -1, 1000)
    edges = np.array([5e-324, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308, 0.5**0.5, 2**0.5])
    for values in (wide, near, beside[beside != 1], edges):
        assert errors_in_last_place(values, native.ln, Decimal.ln) <= 1
    for values in (rng.uniform(-745, 709.78, 4000), rng.uniform(-1, 1, 4000), rng.normal(size=1000) * 1e-9):
        assert errors_in_last_place(values, native.exp, Decimal.exp) <= 1


def test_ln_and_exp_at_the_ends() -> None:
    inf = math.inf
    assert (native.ln(0), native.ln(1), native.ln(inf)) == (-inf, 0, inf)
    assert (native.exp(-inf), native.exp(-746), native.exp(0), native.exp(710), native.exp(inf)) == (0, 0, 1, inf, inf)
    assert all(map(math.isnan, (native.ln(-1), native.ln(math.nan), native.exp(math.nan))))


def test_ln_is_plain_arithmetic_to_the_last_bit() -> None:
    # The same steps in Python, where nothing is fused, kept wider, or left to a C library.
    def ln(x: float) -> float:
        m, k = math.frexp(x)
        m, k = (m, k) if m >= 0.5**0.5 else (2 * m, k - 1)
        f = m - 1
        s = f / (2 + f)
        q = s * s
        even, odd = 2 / 23, 2 / 21
        for n in (19, 15, 11, 7, 3):
            even = 2 / n + q * q * even
        for n in (17, 13, 9, 5):
            odd = 2 / n + q * q * odd
        low = s * (f - q * (even + q * odd)) - k * float.fromhex("0x1.9ef35793c7673p-41")
        return k * float.fromhex("0x1.62e42fefa2p-1") + (f - low)

    values = np.random.default_rng(1).uniform(0.2, 5, 5000).tolist()
    assert [struct.pack("d", native.ln(x)) for x in values] == [struct.pack("d", ln(x)) for x in values]


# ---------------------------------------------------------------- normal and exponential


def test_normal_law() -> None:
    draws = native_stream(21).standard_normal(4_000_000)
    assert ks(draws[:N], special.ndtr) > P_FLOOR
    cells = np.bincount((special.ndtr(draws) * 2000).astype(int), minlength=2000)
    assert stats.chisquare(cells).pvalue > P_FLOOR
    odd_factorial = [1, 1, 3, 15, 105, 945, 10395]  # E x^(2k)
    for k in range(1, 7):
        moment = odd_factorial[k // 2] if k % 2 == 0 else 0
        assert close((draws**k).mean(), moment, math.sqrt((odd_factorial[k] - moment**2) / len(draws)))


def test_normal_tails() -> None:
    rng, n, edge = native_stream(22), 40_000_000, 4.038849846109505  # where the ziggurat hands over to its tail
    chunks = (rng.standard_normal(n // 40) for _ in range(40))
    far = np.concatenate([chunk[np.abs(chunk) > 3] for chunk in chunks])
    for bound in (3.0, edge, 4.5):
        share = special.ndtr(-bound)
        for tail in (far > bound, far < -bound):
            assert close(tail.sum() / n, share, math.sqrt(share / n))
    beyond = np.abs(far[np.abs(far) > edge])
    assert ks(beyond, lambda x: 1 - special.ndtr(-x) / special.ndtr(-edge)) > P_FLOOR
    # Beyond the edge the mean is the hazard m and the variance 1 + edge m - m^2.
    mean = stats.norm.pdf(edge) / special.ndtr(-edge)
    assert close(beyond.mean(), mean, math.sqrt((1 + edge * mean - mean**2) / len(beyond)))


def test_exponential_law() -> None:
    draws = native_stream(23).standard_exponential(N)
    assert draws.min() > 0
    assert ks(draws, lambda x: -np.expm1(-x)) > P_FLOOR
    assert close(draws.mean(), 1, 1 / math.sqrt(N))


# ---------------------------------------------------------------- gamma and Beta


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_law(shape: float) -> None:
    draws = native_stream(31).standard_gamma(shape, N)
    assert ks(draws, lambda x: special.gammainc(shape, x)) > P_FLOOR
    assert close(draws.mean(), shape, math.sqrt(shape / N))
    # The variance of a sample variance is (kurtosis - 1) var^2 / n; a gamma's kurtosis is 3 + 6 / shape.
    assert close(draws.var(), shape, shape * math.sqrt((2 + 6 / shape) / N))


@pytest.mark.parametrize("shape", [1e-300, 1e-10, 1e-3, 0.9, 2.0])
def test_log_gamma_law(shape: float) -> None:
    rng = native_stream(32)
    draws = np.array([native.Stream.log_gamma_draw(rng, shape) for _ in range(50_000)])
    assert np.isfinite(draws).all()
    assert len(np.unique(draws)) == len(draws)
    assert ks(draws, log_gamma_cdf(shape)) > P_FLOOR


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_beta_law(a: float, b: float) -> None:
    draws = native_stream(41).beta(a, b, N)
    assert ((draws >= 0) & (draws <= 1)).all()
    # Draws of a small shape may round to exactly 0 or 1.
    assert ks(draws, lambda x: special.betainc(a, b, x), low=1e-300, high=1.0) > P_FLOOR
    mean, var, excess = (float(moment) for moment in stats.beta.stats(a, b, moments="mvk"))
    assert close(draws.mean(), mean, math.sqrt(var / N))
    assert close(draws.var(), var, var * math.sqrt((2 + excess) / N))


@pytest.mark.parametrize("kind", ["native", "numpy"])
@pytest.mark.parametrize(("a", "b"), SMALL_PAIRS)
def test_log_odds_law(a: float, b: float, kind: str) -> None:
    rng = native_stream(42) if kind == "native" else np.random.default_rng(42)
    draws = beta_log_odds(rng, a, b, 100_000)
    assert len(np.unique(draws)) == len(draws)
    assert ks(draws, log_odds_cdf(a, b)) > P_FLOOR


@pytest.mark.parametrize("kind", ["native", "numpy"])
def test_log_odds_stay_finite(kind: str) -> None:
    rng = native_stream(43) if kind == "native" else np.random.default_rng(43)
    ends = np.array([5e-324, 1e-300, 1e-3, 1.0, 1e80, 1e300])
    assert np.isfinite(beta_log_odds(rng, ends[:, None], ends, (50, 6, 6))).all()


def test_beta_of_extreme_shapes_is_a_number() -> None:
    ends = np.array([5e-324, 1e-300, 1e-3, 1.0, 1e80, 1e308])
    draws = native_stream(44).beta(ends[:, None], ends, (50, 6, 6))
    assert ((draws >= 0) & (draws <= 1)).all()
    assert np.allclose(native_stream(45).beta(1e90, 3e90, 10), 0.25, rtol=1e-12)


def test_a_biased_sampler_is_caught() -> None:
    rng = np.random.default_rng(51)
    assert ks(native_stream(52).standard_normal(N) + 0.03, special.ndtr) < P_FLOOR
    # Marsaglia and Tsang's gamma without its rejection.
    x, d = rng.standard_normal(N), 1 - 1 / 3
    v = (1 + x / math.sqrt(9 * d)) ** 3
    assert ks(d * v[v > 0], lambda t: special.gammainc(1.0, t)) < P_FLOOR
    # The naive boost of a small shape: most draws underflow to exactly 0.
    naive = rng.standard_gamma(1.001, N) * rng.random(N) ** (1 / 1e-3)
    logs = np.log(naive[naive > 0])
    assert ks(logs, log_gamma_cdf(1e-3)) < P_FLOOR
    # Log odds of the wrong prior, a little off.
    assert ks(native_stream(53).beta_log_odds(1.1e-3, 1e-3, N), log_odds_cdf(1e-3, 1e-3)) < P_FLOOR


# ---------------------------------------------------------------- arrays of draws


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (2, 3), (40, 60), (0.5, 3), (1e-3, 1e-3), (1e80, 1)])
def test_fills_are_single_draws(a: float, b: float) -> None:
    rng, twin = native_stream(61), native.Stream(native_stream(61).state())
    pair, swapped = np.array([a, b], float), np.array([b, a], float)
    for fill, draw in ((rng.beta_fill, twin.beta), (rng.beta_log_odds_fill, twin.beta_log_odds)):
        singles = [[draw(*parameters) for _ in range(500)] for parameters in ((a, b), (b, a))]
        assert fill(pair, swapped, 500).tolist() == singles
        assert np.array_equal(rng.state(), twin.state())
    singles = [[twin.standard_gamma(shape) for _ in range(100)] for shape in (a, b)]
    assert rng.standard_gamma_fill(pair, 100).tolist() == singles
    assert rng.standard_normal(100).tolist() == [twin.standard_normal() for _ in range(100)]
    assert rng.standard_exponential(100).tolist() == [twin.standard_exponential() for _ in range(100)]
    assert rng.integers(7, 100).tolist() == [twin.integers(7) for _ in range(100)]


def test_arrays_broadcast_in_c_order() -> None:
    a, b = np.array([[1.0], [2.0]]), np.array([3.0, 4.0, 0.5])
    rng, twin = native_stream(62), native_stream(62)
    draws = rng.beta(a, b)
    assert draws.tolist() == [[twin.beta(row, column) for column in b] for row in a[:, 0]]
    assert rng.beta(a, b[:1], (2, 5)).shape == (2, 5)
    assert rng.standard_gamma(b, (4, 3)).shape == rng.random((4, 3)).shape == (4, 3)
    for scalar in (
        rng.random(),
        rng.standard_normal(),
        rng.standard_exponential(),
        rng.standard_gamma(2),
        rng.beta(1, 2),
    ):
        assert type(scalar) is float
    assert type(rng.integers(5)) is int


def test_log_odds_of_a_stream_are_its_own() -> None:
    assert np.array_equal(beta_log_odds(native_stream(63), 0.5, 2, 9), native_stream(63).beta_log_odds(0.5, 2, 9))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.beta(0, 1),
        lambda rng: rng.beta([1, 2], [3, -1]),
        lambda rng: rng.beta_log_odds(math.nan, 1),
        lambda rng: rng.standard_gamma(math.inf),
        lambda rng: rng.beta([1, 2], [1, 2, 3]),
        lambda rng: rng.integers(0),
        lambda rng: native.Stream.integers(rng, 0),
        lambda rng: rng.beta_fill(np.ones(2), np.ones(3), 1),
        lambda rng: native.Stream.beta(rng, 1, -1),
    ],
)
def test_a_refused_draw_leaves_the_stream_alone(draw: Callable[[Stream], Any]) -> None:
    rng = native_stream(64)
    before = rng.state()
    with pytest.raises(ValueError, match=r"must|mismatch"):
        draw(rng)
    assert np.array_equal(rng.state(), before)


# ---------------------------------------------------------------- what rng may be


def test_a_seed_gives_one_stream() -> None:
    for make in (generator, native_stream):
        assert make(7).random(5).tolist() == make(np.int64(7)).random(5).tolist()
        assert make(7).random(5).tolist() == make(np.random.SeedSequence(7)).random(5).tolist()
        assert make(7).random(5).tolist() != make(8).random(5).tolist()
        assert make(None).random(5).tolist() != make(None).random(5).tolist()


def test_a_generator_is_drawn_from_or_passed_through() -> None:
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    first, second = native_stream(rng), native_stream(rng)
    assert first.random() != second.random()
    assert native_stream(np.random.default_rng(1)).random() == native_stream(np.random.default_rng(1)).random()
    assert generator(first) is first
    assert native_stream(first) is first
    assert seed_sequence(native_stream(2)).entropy == seed_sequence(native_stream(2)).entropy


@pytest.mark.parametrize(
    ("bad", "error"), [(True, InvalidType), (1.5, InvalidType), ("7", InvalidType), (-1, InvalidValue)]
)
def test_a_bad_seed_is_refused(bad: Any, error: type[BanditreeError]) -> None:
    for make in (seed_sequence, generator, native_stream):
        with pytest.raises(error, match=r"rng=.*must"):
            make(bad)


def test_without_the_native_module_only_its_stream_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "native", None)
    assert isinstance(generator(1), np.random.Generator)
    with pytest.raises(MissingExtra, match="C\\+\\+ compiler"):
        native_stream(1)
