"""Turn ``rng`` into a random stream: a NumPy Generator, or the native stream with a similar interface."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditree.base.arrays import Array, Floats
from banditree.errors import InvalidType, InvalidValue, MissingExtra
from banditree.errors.checks import whole

Size = int | tuple[int, ...] | None

native: ModuleType | None  # the compiled module, None if this install has none
try:
    native = importlib.import_module("banditree._native")
except ModuleNotFoundError:
    native = None

if TYPE_CHECKING:

    class _Native:  # what native/bindings/stream.cpp binds
        def __init__(self, words: Array) -> None: ...
        def bits(self) -> int: ...
        def seed(self, words: Array) -> None: ...
        def state(self) -> NDArray[np.uint64]: ...
        def random_fill(self, n: int) -> Floats: ...
        def integers_fill(self, k: int, n: int) -> NDArray[np.int64]: ...
        def standard_normal_fill(self, n: int) -> Floats: ...
        def standard_exponential_fill(self, n: int) -> Floats: ...
        def standard_gamma_fill(self, shape: Floats, m: int) -> Floats: ...
        def beta_fill(self, a: Floats, b: Floats, m: int) -> Floats: ...
        def beta_log_odds_fill(self, a: Floats, b: Floats, m: int) -> Floats: ...
else:
    _Native = object if native is None else native.Stream


class Stream(_Native):
    """The native engine's random stream, for Python: arrays are filled in C order, and a float equals an array of one.

    Made by `native_stream`. Native functions accept it directly, so both engines can draw from one stream.
    """

    def random(self, size: Size = None) -> Any:
        return _fill(self.random_fill, size)

    def standard_normal(self, size: Size = None) -> Any:
        return _fill(self.standard_normal_fill, size)

    def standard_exponential(self, size: Size = None) -> Any:
        return _fill(self.standard_exponential_fill, size)

    def integers(self, k: int, size: Size = None) -> Any:
        whole("k", k, 1, 2**63)
        return _fill(lambda n: self.integers_fill(k, n), size)

    def standard_gamma(self, shape: ArrayLike, size: Size = None) -> Any:
        return _per_element(self.standard_gamma_fill, size, shape)

    def beta(self, a: ArrayLike, b: ArrayLike, size: Size = None) -> Any:
        return _per_element(self.beta_fill, size, a, b)

    def beta_log_odds(self, a: ArrayLike, b: ArrayLike, size: Size = None) -> Any:
        return _per_element(self.beta_log_odds_fill, size, a, b)


# Texts, because numpy.random takes an eighth of the time of `import banditree`, and is imported when it is needed.
Rng: TypeAlias = "np.random.Generator | Stream"  # what the engines draw from
Seed: TypeAlias = "int | np.integer | np.random.SeedSequence | Rng | None"  # what users give as ``rng``


def _fill(fill: Callable[[int], Array], size: Size) -> object:
    if size is None:
        return fill(1)[0].item()
    return fill(int(np.prod(size, dtype=np.int64))).reshape(size)


def _per_element(fill: Callable[..., Floats], size: Size, *params: ArrayLike) -> object:
    """Draw once for each element of the parameters, broadcast together and to ``size``."""
    try:
        arrays = [np.asarray(param, dtype=np.float64) for param in params]
        shape = np.broadcast_shapes(*(array.shape for array in arrays)) if size is None else size
        rows = [np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(-1) for array in arrays]  # (elements,) each
        draws = fill(*rows, 1).reshape(shape)
    except ValueError as error:  # from the native check of the values, or from NumPy's check of the shapes
        raise InvalidValue(str(error)) from None
    return draws if draws.ndim else draws.item()


def beta_log_odds(rng: Rng, a: ArrayLike, b: ArrayLike, size: Size = None) -> Any:
    """Draw ln(p / (1 - p)) for p ~ Beta(a, b): finite and distinct where p itself would round to 0 or 1.

    This is ln G(a) - ln G(b) with independent gamma draws. For a < 1, G(a) has the law of G(a + 1) exp(-E / a), with E
    standard exponential, so no power of a small number is ever computed.

    >>> bool(np.isfinite(beta_log_odds(np.random.default_rng(1), 1e-10, 1e-10, size=100)).all())
    True
    """
    if isinstance(rng, Stream):
        return rng.beta_log_odds(a, b, size)
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return _log_gamma(rng, a, size) - _log_gamma(rng, b, size)


def _log_gamma(rng: np.random.Generator, shape: Floats, size: Size) -> Any:
    small = shape < 1
    draws = np.log(rng.standard_gamma(np.where(small, shape + 1, shape), size))
    if small.any():
        # The floor keeps the quotient finite, as in the native stream.
        draws = draws - np.where(small, rng.standard_exponential(np.shape(draws)) / np.maximum(shape, 1e-306), 0.0)
    return draws


def seed_sequence(rng: Seed = None) -> np.random.SeedSequence:
    """Return the seed that ``rng`` stands for: fresh entropy for None, four words drawn from a Generator.

    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if rng is None:
        return np.random.SeedSequence()
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**64, size=4, dtype=np.uint64).tolist())
    if isinstance(rng, Stream):
        return np.random.SeedSequence([rng.bits() for _ in range(4)])
    if isinstance(rng, bool | np.timedelta64) or not isinstance(rng, int | np.integer):
        raise InvalidType(
            f"rng={rng!r} must be an int, a numpy SeedSequence, a numpy Generator, or None for a fresh seed"
        )
    if rng < 0:
        raise InvalidValue(f"rng={rng} must be at least 0 to serve as a seed")
    return np.random.SeedSequence(int(rng))


def generator(rng: Seed = None) -> Rng:
    """Return the stream for the readable engine; a Generator or a `Stream` is used as it is."""
    if isinstance(rng, np.random.Generator | Stream):
        return rng
    return np.random.default_rng(seed_sequence(rng))


def native_stream(rng: Seed = None) -> Stream:
    """Return the stream for the native engine; a `Stream` is used as it is."""
    if isinstance(rng, Stream):
        return rng
    if native is None:
        raise MissingExtra("this install has no native engine and no native stream; reinstall with a C++ compiler")
    return Stream(seed_sequence(rng).generate_state(4, np.uint64))


# ---------------------------------------------------------------- the streams of a simulation

INSTANCE, CONTEXTS, REWARDS, POLICY = range(4)  # keys of the random streams, by use


@dataclass(frozen=True)
class Streams:
    """The random streams of a simulation, each derived from one seed by a key, so that their order never matters."""

    root: np.random.SeedSequence

    def seed(self, *key: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.root.entropy, spawn_key=(*self.root.spawn_key, *key))

    def instance(self, seed: int) -> np.random.SeedSequence:
        return self.seed(seed, INSTANCE)

    def contexts(self, seed: int, *, custom: bool = False) -> Rng:
        """The stream of contexts; ``custom`` is for a user's own instance, which expects a NumPy Generator."""
        return _stream(self.seed(seed, CONTEXTS), custom)

    def rewards(self, seed: int, name: str, replicate: int = 0, *, custom: bool = False) -> Rng:
        """The stream of a policy's rewards; policies of the same name, "" for all, have the same."""
        return _stream(self.seed(seed, REWARDS, *_key(name, replicate)), custom)

    def policy(self, seed: int, name: str, replicate: int = 0) -> np.random.SeedSequence:
        return self.seed(seed, POLICY, *_key(name, replicate))


def key_of(name: str) -> int:
    """Return the part of a stream's key that stands for a policy's name."""
    return zlib.crc32(name.encode())


def _key(name: str, replicate: int) -> tuple[int, ...]:
    """Return the key of a replicate; the first one draws what it would draw without replicates."""
    return (key_of(name), replicate) if replicate else (key_of(name),)


def _stream(seed: np.random.SeedSequence, custom: bool) -> Rng:
    return generator(seed) if custom or native is None else native_stream(seed)
