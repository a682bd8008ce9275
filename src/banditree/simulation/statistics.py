"""Summarise over seeds: mean, standard deviation, standard error, and 95% intervals by Student's t."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.intervals import student_interval


@dataclass(frozen=True)
class OverSeeds:
    """Mean, standard deviation and standard error over seeds, of one number or of an array."""

    mean: Any
    sd: Any  # NaN for a single seed
    se: Any
    seeds: int

    @property
    def interval(self) -> tuple[Any, Any]:
        """The ends of a 95% interval for the mean, by Student's t."""
        return student_interval(self.mean, self.se, self.seeds)

    def half_width(self, band: str) -> Any:
        """Return half the width of a band around the mean: "sd", "se", or that of the 95% "interval"."""
        return self.interval[1] - self.mean if band == "interval" else self.se if band == "se" else self.sd


def over_seeds(values: Floats) -> OverSeeds:
    """Summarise an array with one row per seed: (seeds, ...).

    >>> summary = over_seeds(np.array([1.0, 2.0, 4.0, 5.0]))
    >>> summary.mean, round(summary.sd, 4), round(summary.se, 4)
    (3.0, 1.8257, 0.9129)
    """
    n = len(values)
    mean = values.mean(axis=0)
    sd = values.std(axis=0, ddof=1) if n > 1 else np.full_like(mean, np.nan)
    se = sd / math.sqrt(n)
    if values.ndim == 1:
        mean, sd, se = float(mean), float(sd), float(se)
    return OverSeeds(mean, sd, se, n)
