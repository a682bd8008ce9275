"""Sum x x' and r x without rounding, for nodes whose contexts are so large or so similar that doubles lose digits.

Numbers are Python ints in fixed point, so sums are exact in any order. What derives from them is rounded once, at the
end: B = precision I + gram is at least the precision in every direction, and the unit is far below the least precision
allowed, so the intermediate errors are small relative to B in every direction too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # of Python ints

BITS = 150  # contexts are stored in units of 2^-BITS
UNIT = 2 * BITS  # and sums of products in units of 2^-UNIT; the least precision allowed, 1e-50, is about 2^-166


@dataclass(frozen=True, eq=False)
class Sums:
    """The evidence of one node: sum of x x' (dim, dim) and of r x (dim,), in units of 2^-UNIT."""

    gram: Ints
    moment: Ints

    @classmethod
    def of(cls, gram: Floats, moment: Floats) -> Self:
        """Convert sums that doubles hold accurately enough."""
        return cls(fixed(gram, UNIT), fixed(moment, UNIT))

    @classmethod
    def of_rewards(cls, contexts: Floats, rewards: Floats) -> Self:
        """Sum over rewards (n,) in contexts (n, dim)."""
        x, r = fixed(contexts, BITS), fixed(rewards, BITS)
        return cls(x.T @ x, r @ x)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.gram + other.gram, self.moment + other.moment)

    def scaled(self, factor: float) -> Sums:
        """Multiply the sums by a factor from 0 to 1; anything below the unit is cut off."""
        times = int(fixed(np.array(factor), BITS)[()])
        return Sums((self.gram * times) >> BITS, (self.moment * times) >> BITS)

    def rounded(self) -> tuple[Floats, Floats]:
        """Return gram and moment as doubles."""
        return floats(self.gram, UNIT), floats(self.moment, UNIT)

    def solved(self, precision: float, prior: Floats) -> tuple[Floats, Floats]:
        """Solve for the posterior with B = precision I + gram and f = prior + moment: U and B^-1 f, each rounded once.

        U is upper triangular with U U' = B^-1, so that x' B^-1 x = |U' x|^2 is a sum of squares, in which nothing
        cancels. By B = L D L' with L unit lower triangular, U = L^-T D^-1/2.
        """
        d = len(self.moment)
        least = int(fixed(np.array(precision), UNIT)[()])
        shift = max(least.bit_length() - 128, 0)  # 128 bits below the precision are enough, and faster
        b = (self.gram + np.diag([least] * d)) >> shift
        f, least = self.moment + fixed(prior, UNIT), least >> shift
        # No entry of L or L^-1 exceeds sqrt(greatest pivot / least pivot), and no pivot is below the precision. Errors
        # in L are multiplied by two such entries, so at least 128 bits after the point are correct.
        bits = 128 + (max(b.diagonal()) // least).bit_length()
        low, pivots = np.zeros((d, d), object), np.zeros(d, object)
        for k in range(d):
            column, pivots[k] = b[k + 1 :, k], max(b[k, k], least)  # below it only if doubles had lost digits
            low[k + 1 :, k] = (column << bits) // pivots[k]
            b[k + 1 :, k + 1 :] -= np.outer(column, column) // pivots[k]
        inverse = np.diag([1 << bits] * d).astype(object)  # L^-1
        for i in range(1, d):
            inverse[i, :i] = -(low[i, :i] @ inverse[:i, :i]) >> bits
        along = ((inverse @ f) >> shift) // pivots
        try:
            root = floats(inverse, bits) / np.sqrt(floats(pivots, UNIT - shift))[:, None]
            return np.ascontiguousarray(root.T), floats(inverse.T @ along, 2 * bits)
        except OverflowError:
            raise InvalidValue("contexts and rewards are too large to compute with; scale them") from None

    def terms(self) -> Floats:
        """Split the sums into doubles that add up to them exactly, the greatest first: (terms, dim + 1, dim)."""
        rest = np.vstack([self.gram, self.moment])
        found: list[Floats] = []
        while rest.any() or not found:
            found.append(floats(rest, UNIT))
            rest = rest - fixed(found[-1], UNIT)
        return np.array(found)

    @classmethod
    def of_terms(cls, terms: Floats) -> Self:
        """Rebuild the sums that `terms` split; terms of 0 have no effect."""
        both = fixed(terms, UNIT).sum(axis=0)
        return cls(both[:-1], both[-1])


def fixed(array: Floats, bits: int) -> Ints:
    """Convert doubles to ints in units of 2^-bits; anything smaller is cut off."""
    if not np.isfinite(array).all():
        raise InvalidValue("linear evidence is not finite")
    mantissa, exponent = np.frexp(array)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    pairs = zip(whole.ravel().tolist(), (exponent + (bits - 53)).ravel().tolist(), strict=True)
    found = np.empty(whole.size, object)
    found[:] = [number << shift if shift >= 0 else number >> -shift for number, shift in pairs]
    return found.reshape(whole.shape)


def floats(array: Ints, bits: int) -> Floats:
    """Convert ints in units of 2^-bits to the nearest doubles."""
    one = 1 << bits
    return np.array([number / one for number in array.ravel().tolist()], np.float64).reshape(array.shape)
