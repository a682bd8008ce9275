"""Estimate how likely one policy is to be better than another, and by how much, from runs in simulated worlds.

The data are the differences d(w, r) of the regret of two policies in world w, run r. Each world has an expected
difference theta(w), and a run adds luck: d(w, r) = theta(w) + luck. The question is how theta is distributed over
worlds, because we do not know which of them is the real one. That distribution may be skewed (a tree that saves little
in most worlds and much in some), so it is estimated from the worlds themselves, in three steps.

1. *Remove the luck.* The world means d(w) have variance V = Var(theta) + n, where n, the variance that luck leaves in a
   mean of R runs, is estimated from how runs in the same world differ. The share n / V of the variance is luck. The
   world means are shrunk towards their overall mean d until their variance is that of theta plus that of d:

       theta(w) = d + s (d(w) - d),    s^2 = 1 - share (1 - 1/W).

   (Shrinking to the posterior means would make them too alike; see Louis 1984, "Estimating a population of parameter
   values".) With few worlds, n / V is not known exactly, so its expected value is used, as derived below.
2. *Add the real world.* The real world is one more draw beside these W. It falls below the k-th smallest with
   probability k / (W + 1), whatever the distribution; between two worlds the probability is interpolated.
3. *Extrapolate beyond the last world* on either side with Student's t with W - 1 degrees of freedom, scaled so that it
   meets the last world. For a 95% interval this matters only with fewer than 39 worlds.

The expected share of luck. Given the share b, W - 1 degrees of freedom and the observed F = V / n, the likelihood is
b^a exp(-a F b) with a = (W - 1) / 2; with the prior 1 / b on (0, 1] (Jeffreys' prior for the variance of world means;
the variance of theta cannot be negative) the expected value of b is that of Gamma(a, rate a F) truncated at 1:

    E[b] = (1 / F) (1 - 1 / M),    M = 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...,    x = a F.

It is about 1 / F if luck is small, never above 1, and below 1 even if all of the variance may be luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditree.report.intervals import chance_below, student
from banditree.simulation.statistics import over_seeds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OverWorlds:
    """The distribution over worlds of the expected difference between two policies."""

    values: Floats  # (worlds,) ascending
    luck: float  # share of the variance of world means that was attributed to luck

    @classmethod
    def of(cls, differences: Floats) -> OverWorlds:
        """Estimate it from differences (worlds, runs), with at least 2 runs in each of at least 2 worlds.

        >>> OverWorlds.of(np.array([[1.0, 1.0], [2.0, 2.0], [6.0, 6.0]])).values
        array([1., 2., 6.])
        """
        worlds, means = len(differences), differences.mean(axis=1)  # (worlds,)
        luck = share_of_luck(*variances(differences), worlds)
        scale = math.sqrt(1 - luck * (1 - 1 / worlds))
        return cls(np.sort(means.mean() + scale * (means - means.mean())), luck)

    def below(self, x: float) -> float:
        """Return the probability that the expected difference is below ``x``; ties count half.

        >>> worlds = OverWorlds(np.array([1.0, 2.0, 3.0]), 0.0)
        >>> worlds.below(1.0), worlds.below(2.5), worlds.below(2.0) + worlds.below(-2.0) < 0.51
        (0.25, 0.625, False)
        """
        values, n = self.values, len(self.values)
        if values[0] < x < values[-1]:
            left, right = (int(np.searchsorted(values, x, side)) for side in ("left", "right"))
            if left < right:
                return (left + right + 1) / 2 / (n + 1)
            return (left + float((x - values[left - 1]) / (values[left] - values[left - 1]))) / (n + 1)
        if values[0] == values[-1]:
            return 0.5 if x == values[0] else float(x > values[0])
        last = values[0] if x <= values[0] else values[-1]
        reach = self._edge * (x - self._median) / (last - self._median) if last != self._median else math.inf
        return chance_below(math.copysign(abs(reach), x - self._median), n)

    def quantile(self, p: float) -> float:
        """Return the difference that is not exceeded with probability ``p``.

        >>> OverWorlds(np.arange(1.0, 40.0), 0.0).quantile(0.975)
        39.0
        """
        n = len(self.values)
        rank = p * (n + 1)
        if 1 <= rank <= n:
            return float(np.interp(rank, np.arange(1, n + 1), self.values))
        last = self.values[0] if rank < 1 else self.values[-1]
        return float(self._median + (last - self._median) * student(n, abs(1 - 2 * p)) / self._edge)

    @property
    def _median(self) -> float:
        return float(np.median(self.values))

    @cached_property
    def _edge(self) -> float:
        """The quantile of Student's t at the last world, beyond which the probability is 1 / (W + 1)."""
        n = len(self.values)
        return student(n, (n - 1) / (n + 1))


def variances(differences: Floats) -> tuple[float, float]:
    """Compute the variance of world means, and the part of it that is luck: n in the formulas above.

    >>> np.round(variances(np.array([[1.0, 3.0], [5.0, 5.0]])), 9).tolist()
    [4.5, 0.5]
    """
    within = over_seeds(differences.T).sd ** 2  # (worlds,)
    return over_seeds(differences.mean(axis=1)).sd ** 2, float(within.mean()) / differences.shape[1]


def share_of_luck(among: float, noise: float, worlds: int) -> float:
    """Estimate which share of ``among``, the variance of world means, is luck, given that luck has variance ``noise``.

    >>> share_of_luck(10.0, 0.0, 50), round(share_of_luck(10.0, 1.0, 50), 3), share_of_luck(1.0, 1.0, 50) < 1
    (0.0, 0.1, True)
    """
    if noise == 0:
        return 0.0
    a = (worlds - 1) / 2
    x = a * among / noise
    total = term = 1.0  # of M
    k = 0
    while 1e-12 * total < term < 1e12:
        k += 1
        term *= x / (a + k)
        total += term
    return a / x * (1 - 1 / total) if x > 0 else a / (a + 1)
