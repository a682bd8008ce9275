"""How likely one policy is to be better than another, and by how much, from runs in worlds that the data allow.

Given are the differences d(w, r) of the regret of two policies in world w, run r. In each world there is an expected
difference theta(w); a run adds luck: d(w, r) = theta(w) + luck. What is asked is how theta is distributed over worlds,
because which of them is the real one is what the data leave open. That distribution may be skewed (a tree that saves
little in most worlds and much in some), so the worlds themselves are used, in three steps.

1. *Take out the luck.* World means d(w) vary by V = Var(theta) + n, where n, the variance that luck leaves in a mean of
   R runs, is known from how runs of the same world differ. Of V, the share n / V is luck. The world means are drawn
   together around their own mean until their variance is that of theta, and of what is not known of the mean:

       theta(w) = d + s (d(w) - d),    s^2 = 1 - share (1 - 1/W).

   (Shrinking to the posterior means would make them too alike; see Louis 1984, "Estimating a population of parameter
   values".) With few worlds, n / V is not known exactly: its expected value is taken, as below.
2. *A further world.* The real world is one more draw beside these W. It falls below the k-th smallest with
   probability k / (W + 1), whatever the distribution, and in between in proportion.
3. *Beyond the last world* on either side, the distribution goes on as Student's t with W - 1 degrees of freedom does,
   scaled so that it meets the last world. For a 95% interval that plays a part only with fewer than 39 worlds.

The expected share of luck. Given the share b, W - 1 degrees of freedom and F = V / n as observed, the likelihood is
b^a exp(-a F b) with a = (W - 1) / 2; with the prior 1 / b on (0, 1] (Jeffreys' for the variance of world means, and no
variance of theta below 0) the expected value of b is that of Gamma(a, rate a F) cut off at 1:

    E[b] = (1 / F) (1 - 1 / M),    M = 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...,    x = a F.

It is 1 / F where luck is small, never above 1, and below 1 where all variance may be luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditree.simulation.statistics import chance_below, student

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OverWorlds:
    """The expected difference in a world that the data allow, as a distribution."""

    values: Floats  # (worlds,) ascending
    luck: float  # share of the variance of world means that was taken for luck

    @classmethod
    def of(cls, differences: Floats) -> OverWorlds:
        """From (worlds, runs), with at least 2 runs in each of at least 2 worlds.

        >>> OverWorlds.of(np.array([[1.0, 1.0], [2.0, 2.0], [6.0, 6.0]])).values
        array([1., 2., 6.])
        """
        worlds, runs = differences.shape
        means = differences.mean(axis=1)  # (worlds,)
        among, noise = float(means.var(ddof=1)), float(differences.var(axis=1, ddof=1).mean()) / runs
        luck = share_of_luck(among, noise, worlds)
        scale = math.sqrt(1 - luck * (1 - 1 / worlds))
        return cls(np.sort(means.mean() + scale * (means - means.mean())), luck)

    def below(self, x: float) -> float:
        """The probability that the expected difference is below ``x``; half of it where it is ``x``.

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
        """The difference that is not reached with probability ``p``.

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
        """Where the last world stands, in Student's t: it has 1 / (W + 1) beyond it."""
        n = len(self.values)
        return student(n, (n - 1) / (n + 1))


def share_of_luck(among: float, noise: float, worlds: int) -> float:
    """The expected share of the variance of world means, ``among``, that is luck, of variance about ``noise``.

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
