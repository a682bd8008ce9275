"""Compare policies over simulated worlds: what one saves against another, and what each still loses at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.over_worlds import OverWorlds, variances
from banditree.report.intervals import chance_below, student
from banditree.simulation.runs import Runs
from banditree.simulation.statistics import over_seeds

Floats = NDArray[np.float64]
SURE = 0.9  # the data can tell if one policy is better with at least this probability
SMALL = 0.02  # a smaller saving that the data cannot tell from none does not justify a tree, or a deeper one
CLOSE = 0.05  # within this share, the policy that loses less per decision at the end is preferred
LESS = 0.9  # a loss per decision is clearly less if below this share of the other
FAR = 20.0  # times the horizon: nothing is extrapolated beyond it


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
    def told(self) -> bool:
        """Whether the data can tell which is better: the one with less regret on average wins in nearly all worlds."""
        return (self.chance if self.saving > 0 else 1 - self.chance) >= SURE and self._beyond_luck

    @property
    def matters(self) -> bool:
        """Whether the difference is worth acting on: the data can tell, or it is neither small nor luck."""
        return self.told or (abs(self.share) >= SMALL and self._beyond_luck)

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
            found, (among, luck) = OverWorlds.of(saved), variances(saved)
            sd, noise = over_seeds(found.values).sd, math.sqrt(among / len(saved))
            interval = found.quantile(0.025), found.quantile(0.975)
            chance = 1 - found.below(0.0)
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

    # At the end

    def losses(self, policy: str, quarter: int = 3) -> Floats:
        """The reward lost per decision in a quarter of the horizon, by default the last: (worlds,)."""
        times, regret = self.runs.times, self.runs.regret[policy]
        first, last = (int(np.searchsorted(times, times[-1] * part / 4)) for part in (quarter, quarter + 1))
        if first == last:  # the horizon is only a few decisions
            return regret[:, -1] / float(times[-1])
        found: Floats = (regret[:, last] - regret[:, first]) / float(times[last] - times[first])
        return found

    def stalled(self, policy: str) -> bool:
        """Whether its loss per decision has stopped falling, so that its regret grows linearly."""
        return float(self.losses(policy).mean()) > LESS * float(self.losses(policy, 2).mean())

    def learns_more(self, policy: str, rival: str) -> bool:
        """Whether ``policy`` loses clearly less per decision at the end than ``rival``, beyond the luck of the runs."""
        ours, theirs = self.losses(policy), self.losses(rival)
        return float(ours.mean()) < LESS * float(theirs.mean()) and _above_luck(theirs - ours)

    def learner(self, leader: str, others: list[str]) -> str:
        """Return the policy close behind ``leader`` that loses least per decision at the end, or ``leader`` itself."""
        close = [
            each
            for each in others
            if each != leader and self.compare(leader, each).share < CLOSE and self.learns_more(each, leader)
        ]
        return min(close, key=lambda each: float(self.losses(each).mean()), default=leader)

    def overtaking(self, leader: str) -> Overtaking | None:
        """Find the first policy to overtake ``leader`` if losses per decision stay as they are at the end."""
        horizon, found = float(self.runs.times[-1]), []
        for name in self.runs.policies:
            gained = self.losses(leader) - self.losses(name)  # (worlds,) per decision
            behind = self.mean(name) - self.mean(leader)
            if name != leader and behind > 0 and _above_luck(gained):
                found.append((horizon + behind / float(gained.mean()), name))
        if not found or min(found)[0] > FAR * horizon:
            return None
        return Overtaking(min(found)[1], min(found)[0])

    def pays_from(self, policy: str, rival: str) -> int | None:
        """Return the time after which ``policy`` stays ahead of ``rival``, beyond the luck of the simulation."""
        found = None
        for at in range(len(self.runs.times) - 1, -1, -1):
            difference = self.compare(policy, rival, at)
            if difference.saving <= student(len(self.runs.seeds)) * difference.noise:
                break
            found = int(self.runs.times[at])
        return found


def _above_luck(values: Floats) -> bool:
    """Whether the mean over worlds is above 0 with 95% confidence."""
    return bool(over_seeds(values).interval[0] > 0)
