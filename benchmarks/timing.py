"""Rounds and what is made of them: medians, spreads, and ratios within a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.words import figures


@dataclass(frozen=True)
class Spread:
    """The median of repeated measurements, and the middle half of them."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = np.percentile(values, [25, 50, 75]).tolist()
        return cls(median, low, high, len(values))

    def __mul__(self, unit: float) -> Spread:
        return Spread(self.median * unit, self.low * unit, self.high * unit, self.n)

    def text(self) -> str:
        """``12.3 (12.1 to 12.9)``; the bare number where there was one measurement."""
        if self.n == 1:
            return figures(self.median)
        return f"{figures(self.median)} ({figures(self.low)} to {figures(self.high)})"


def ratio(slow: Sequence[float], fast: Sequence[float]) -> Spread:
    """How many times faster: the ratio within each round, where the machine was in the same mood for both."""
    return Spread.of([a / b for a, b in zip(slow, fast, strict=False)])
