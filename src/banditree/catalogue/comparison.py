"""Compare policies over simulated worlds: which is better, how likely, by how much, and what each loses at the end.

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

from banditree.base.intervals import chance_below, student
from banditree.base.tables import Table
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds
from banditree.tree.shape import Floats

MIN_CHANCE = 0.9  # the data can tell if one policy is better with at least this probability
MIN_SHARE = 0.02  # a smaller saving that the data cannot tell from none does not justify a tree, or a deeper one
CLOSE = 0.05  # within this share, the policy that loses less per decision at the end is preferred
CLEARLY_LESS = 0.9  # a loss per decision is clearly less if below this share of the other
MAX_HORIZONS = 20.0  # times the horizon: nothing is extrapolated beyond it


@dataclass(frozen=True)
class Difference:
    """How much less regret one policy has than another at the horizon, over worlds consistent with the data."""

    policy: str
    rival: str
    saving: float  # expected
    sd: float  # of the expected saving over worlds: the uncertainty about which world is the real one
    interval: tuple[float, float]  # 95% interval of the expected saving over worlds
    share: float  # the saving as a share of the rival's regret
    chance: float  # probability that the policy is better in the real world
    noise: float  # standard error of the saving, from the luck of the simulation
    by_seeds: float  # share of the interval's variance that more runs and worlds would remove

    @property
    def is_decisive(self) -> bool:
        """Whether the data can tell which is better: the one with less regret on average wins in nearly all worlds."""
        return (self.chance if self.saving > 0 else 1 - self.chance) >= MIN_CHANCE and self._beyond_luck

    @property
    def matters(self) -> bool:
        """Whether the difference is worth acting on: the data can tell, or it is neither small nor luck."""
        return self.is_decisive or (abs(self.share) >= MIN_SHARE and self._beyond_luck)

    @property
    def _beyond_luck(self) -> bool:
        """Whether other seeds would most likely favour the same policy."""
        return abs(self.saving) > 2 * self.noise


@dataclass(frozen=True)
class Overtaking:
    """The policy that will be ahead, and after how many decisions, if losses per decision stay as at the end."""

    policy: str
    at: float


@dataclass(frozen=True)
class WorldRuns:
    """Several runs of every policy in every world, and the comparisons they allow."""

    runs: Runs  # with replicates
    one_world: bool  # the means are known, so all worlds are the same

    def regret(self, policy: str) -> Floats:
        """The regret of every run: (worlds, runs, times)."""
        return self.runs.replicates[policy]

    def mean(self, policy: str, at: int = -1) -> float:
        """The expected regret at a checkpoint."""
        return float(self.runs.regret[policy][:, at].mean())

    def compare(self, policy: str, rival: str, at: int = -1) -> Difference:
        """Compare the regret of two policies. With known means, runs differ by luck alone."""
        saved = (self.regret(rival) - self.regret(policy))[:, :, at]  # (worlds, runs)
        mean = float(saved.mean())
        if self.one_world:
            every = over_seeds(saved.ravel())
            sd, noise, interval, by_seeds = every.se, every.se, every.interval, 1.0
            chance = chance_below(mean / sd, saved.size) if sd > 0 else 0.5 + 0.5 * float(np.sign(mean))
        else:
            worlds, (among, luck) = OverWorlds.of(saved), variances(saved)
            sd, noise = over_seeds(worlds.values).sd, math.sqrt(among / len(saved))
            interval = worlds.quantile(0.025), worlds.quantile(0.975)
            chance = 1 - worlds.below(0.0)
            by_seeds = 1 - max(among - luck, 0.0) / sd**2 if sd > 0 else 1.0
        lost = self.mean(rival, at)
        return Difference(
            policy=policy,
            rival=rival,
            saving=mean,
            sd=sd,
            interval=interval,
            share=mean / lost if lost > 0 else 0.0,
            chance=chance,
            noise=noise,
            by_seeds=by_seeds,
        )

    def luck(self, policy: str, rival: str) -> float:
        """The share of the variance between worlds that is luck; 1 if the means are known."""
        return 1.0 if self.one_world else OverWorlds.of((self.regret(rival) - self.regret(policy))[:, :, -1]).luck

    def bad_run(self, policy: str) -> float:
        """The regret that one run in twenty exceeds."""
        return float(np.quantile(self.regret(policy)[:, :, -1], 0.95))

    # At the end

    def losses(self, policy: str, quarter: int = 3) -> Floats:
        """The reward lost per decision in a quarter of the horizon, by default the last: (worlds,)."""
        times, regret = self.runs.times, self.runs.regret[policy]
        first, last = (int(np.searchsorted(times, times[-1] * part / 4)) for part in (quarter, quarter + 1))
        if first == last:  # the horizon is only a few decisions
            return regret[:, -1] / float(times[-1])
        losses: Floats = (regret[:, last] - regret[:, first]) / float(times[last] - times[first])
        return losses

    def loss(self, policy: str, quarter: int = 3) -> float:
        """The mean of `losses` over worlds."""
        return float(self.losses(policy, quarter).mean())

    def has_stalled(self, policy: str) -> bool:
        """Whether its loss per decision has stopped falling, so that its regret grows linearly."""
        return self.loss(policy) > CLEARLY_LESS * self.loss(policy, 2)

    def learner(self, leader: str, others: list[str]) -> str:
        """Return the policy close behind ``leader`` that loses least per decision at the end, or ``leader`` itself.

        It must lose clearly less at the end, beyond the luck of the runs.
        """
        close = [
            other
            for other in others
            if other != leader
            and self.compare(leader, other).share < CLOSE
            and self.loss(other) < CLEARLY_LESS * self.loss(leader)
            and _above_luck(self.losses(leader) - self.losses(other))
        ]
        return min(close, key=self.loss, default=leader)

    def overtaking(self, leader: str) -> Overtaking | None:
        """Find the first policy to overtake ``leader`` if losses per decision stay as they are at the end."""
        horizon, later = float(self.runs.times[-1]), []
        for name in self.runs.policies:
            gained = self.losses(leader) - self.losses(name)  # (worlds,) per decision
            behind = self.mean(name) - self.mean(leader)
            if name != leader and behind > 0 and _above_luck(gained):
                later.append((horizon + behind / float(gained.mean()), name))
        at, policy = min(later, default=(math.inf, ""))
        return Overtaking(policy, at) if at <= MAX_HORIZONS * horizon else None

    def table(self, *, count_wins: bool = True) -> Table:
        """Tabulate regret, that of a bad run and the loss per decision at the end, one row per policy, best first.

        With ``count_wins``, also the share of worlds that a policy is best in.
        """
        final = np.array([regret[:, -1] for regret in self.runs.regret.values()])  # (policies, worlds)
        wins = np.bincount(final.argmin(axis=0), minlength=len(final)) / final.shape[1]
        share = dict(zip(self.runs.policies, wins.tolist(), strict=True))
        columns = ("policy", "regret", "interval", "bad_run", "loss", *(["best"] if count_wins else []))
        rows = [
            (
                row.policy,
                row.mean,
                _not_negative(row.interval),
                self.bad_run(row.policy),
                self.loss(row.policy),
                share[row.policy],
            )
            for row in self.runs.table()
        ]
        return Table(columns, [row[: len(columns)] for row in rows])

    def pays_from(self, policy: str, rival: str) -> int | None:
        """Return the time after which ``policy`` stays ahead of ``rival``, beyond the luck of the simulation."""
        first = None
        for at in range(len(self.runs.times) - 1, -1, -1):
            difference = self.compare(policy, rival, at)
            if difference.saving <= student(len(self.runs.seeds)) * difference.noise:
                break
            first = int(self.runs.times[at])
        return first


def _not_negative(interval: tuple[float, float]) -> tuple[float, float]:
    """Regret is at least 0, and so are the ends of its interval."""
    return max(interval[0], 0.0), max(interval[1], 0.0)


def _above_luck(values: Floats) -> bool:
    """Whether the mean over worlds is above 0 with 95% confidence."""
    return bool(over_seeds(values).interval[0] > 0)


# The distribution over worlds


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
