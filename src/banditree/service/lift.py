"""What an experiment is worth: rewards per decision in each group, and an interval of the difference that stays valid.

The interval is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform
central limit theory and asymptotic confidence sequences" (Annals of Statistics 52, 2024): it holds at all times at
once, so that one may look as often as one likes and stop whenever one likes. Units, not decisions, are what it counts:
the decisions of one visitor are not independent.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import math
from array import array
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditree.base.files import Json
from banditree.base.words import count
from banditree.service.events import Cohort, Event, Kind

Verdict = Literal["better", "worse", "cannot tell"]
Number = float | NDArray[np.float64]
Entry = tuple[str | None, float, float]  # a unit, and decisions and reward that are added to it
Earned = tuple[str, float, bool]  # an arm, its reward, and whether it is learned

ALPHA = 0.05  # one minus the coverage of the interval
TIGHTEST = 2_000  # units at which the interval is tightest, compared with others that are valid at all times
MIN_UNITS = 30  # in each group before anything is said
MAX_RATIO = 1e9  # of the groups' rewards; beyond it a ratio says nothing
MAX_FORECAST = 1e9  # decisions; beyond it "how many more" says nothing


@dataclass
class Moments:
    """Sums over the units of a group, where a unit has got ``d`` decisions and earned ``r``."""

    units: int = 0
    d: float = 0.0
    r: float = 0.0
    dd: float = 0.0
    dr: float = 0.0
    rr: float = 0.0
    largest: float = 0.0  # the largest reward of a unit, in size

    @property
    def mean(self) -> float:
        """Reward per decision."""
        return self.r / self.d if self.d else 0.0


def variance_of_difference(policy: Moments, control: Moments, largest: Number) -> tuple[Number, Number]:
    r"""Variances of the groups' rewards per decision, ratios of sums over units: :math:`\sum (r_u - m d_u)^2 / D^2`.

    A small group may have seen too few of the rare rewards that make up the variance; so each is taken to vary at least
    as much as both groups do together. One more unit with the largest reward keeps it from being zero by chance.
    """
    residuals = [_residuals(sums) + largest**2 for sums in (policy, control)]
    pooled = (residuals[0] + residuals[1]) / (policy.units + control.units)
    of_policy, of_control = (
        np.maximum(residual, pooled * sums.units) / sums.d**2
        for residual, sums in zip(residuals, (policy, control), strict=True)
    )
    return of_policy, of_control


def _residuals(sums: Moments) -> Number:
    mean = sums.r / sums.d
    squares: Number = np.maximum(sums.rr - 2 * mean * sums.dr + mean**2 * sums.dd, 0.0)
    return squares


def radius(variance: Number, units: Number) -> Number:
    r"""Half the width of the interval, for a mean with this variance after ``units`` units.

    .. math:: \sqrt{v} \sqrt{\frac{2 (t \rho^2 + 1)}{t \rho^2} \log \frac{\sqrt{t \rho^2 + 1}}{\alpha}}
    """
    rho2 = (-2 * math.log(ALPHA) + math.log(-2 * math.log(ALPHA)) + 1) / TIGHTEST
    growth = units * rho2 + 1
    return np.sqrt(variance * 2 * growth / (units * rho2) * np.log(np.sqrt(growth) / ALPHA))


@dataclass(frozen=True)
class Lift:
    """The policy's group compared with the control group, as the report shows it."""

    difference: float
    interval: tuple[float, float] | None  # None until there are enough units
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    verdict: Verdict
    sentence: str
    more_decisions: int | None  # about how many more until it can be told

    def to_dict(self) -> Json:
        return asdict(self)


def compare(policy: Moments, control: Moments, bound: float | None = None) -> Lift:
    """Compare the two groups. Until there are enough units, the interval is that of the ``bound`` on differences."""
    difference = policy.mean - control.mean
    ratio = policy.mean / control.mean if control.mean > abs(policy.mean) / MAX_RATIO else None
    units = policy.units + control.units
    largest = max(policy.largest, control.largest)  # of both: a group without a reward is not known to earn nothing
    if min(policy.units, control.units) < MIN_UNITS or largest**2 == 0:  # squares of 1e-200 cannot be computed with
        interval = None if bound is None else (-bound, bound)
        sentence = f"Cannot tell yet: fewer than {MIN_UNITS} units in a group, or no reward so far."
        return Lift(difference, interval, ratio, None, "cannot tell", sentence, None)
    variances = [float(variance) for variance in variance_of_difference(policy, control, largest)]
    half = float(radius(sum(variances), units))
    low, high = difference - half, difference + half
    ratio_interval = None
    if ratio is not None and ratio > 0:
        relative = math.hypot(math.sqrt(variances[0]) / policy.mean, math.sqrt(variances[1]) / control.mean)
        factor = math.exp(min(relative * float(radius(1.0, units)), 600.0))  # which JSON can write
        ratio_interval = ratio / factor, ratio * factor
    percent = "" if ratio is None else f", {ratio - 1:+.1%}"
    numbers = f"{difference:+.3g} per decision{percent} (95% interval {low:+.3g} to {high:+.3g})"
    verdict: Verdict = "better" if low > 0 else "worse" if high < 0 else "cannot tell"
    more = None
    sentence = f"The policy is {verdict} than the control group: {numbers}."
    if verdict == "cannot tell":
        more = _more_decisions(difference, sum(variances), units, policy.d + control.d)
        sentence = f"Cannot tell yet whether the policy is better than the control group: {numbers}."
        sentence += "" if more is None else f" About {count(more, 'more decision')} may settle it."
    return Lift(difference, (low, high), ratio, ratio_interval, verdict, sentence, more)


def _more_decisions(difference: float, variance: float, units: float, decisions: float) -> int | None:
    """Estimate how many more decisions make the interval narrow enough, if the difference stays as it is."""
    if difference == 0:
        return None
    low, high = 0.0, 60.0  # powers of 2 by which the data must grow
    for _ in range(50):
        middle = (low + high) / 2
        growth = 2.0**middle
        if radius(variance / growth, units * growth) < abs(difference):
            high = middle
        else:
            low = middle
    more = decisions * (2.0**high - 1)
    return math.ceil(more) if more < MAX_FORECAST else None


@dataclass
class Group:
    """One group: its sums over units, and the sums of each unit.

    A decision without a unit is a unit of its own, whose sums are not kept: it is one decision, and has one reward.
    """

    moments: Moments = field(default_factory=Moments)
    sums: MutableMapping[str, tuple[float, float]] = field(default_factory=dict)  # unit -> decisions and reward

    def add(self, entries: Iterable[Entry]) -> None:
        """Add decisions and their rewards to units, in order."""
        units, sum_d, sum_r, dd, dr, rr, largest = vars(self.moments).values()
        sums = self.sums
        known, none = sums.get, (0.0, 0.0)
        for unit, more_d, more_r in entries:
            if unit is None:
                d, r = none if more_d > 0 else (1.0, 0.0)
                new_d, new_r = d + more_d, r + more_r
            else:
                d, r = known(unit, none)
                sums[unit] = new_d, new_r = d + more_d, r + more_r
            dr += new_d * new_r - d * r
            if more_d:  # adding 0 changes nothing
                units += (d == 0) - (new_d == 0)
                sum_d += more_d
                dd += more_d * (2 * d + more_d)
            if more_r:
                sum_r += more_r
                rr += more_r * (2 * r + more_r)
                if new_r > largest or -new_r > largest:
                    largest = abs(new_r)
        self.moments = Moments(units, sum_d, sum_r, dd, dr, rr, largest)


class Account:
    """The groups of an experiment, folded from its decisions and rewards.

    With a reward window, a decision is settled once its window has closed, in whichever group it is. Without one, it
    counts at once.
    """

    def __init__(self, *, only_exposed: bool = False) -> None:
        self.groups: defaultdict[str, Group] = defaultdict(Group)
        self._counted = Kind.EXPOSURE if only_exposed else Kind.DECISION

    def add(self, events: Iterable[Event]) -> None:
        """Count decisions, their rewards and withdrawals, in order; those of a pause are in no group."""
        entries: defaultdict[str, list[Entry]] = defaultdict(list)
        slates: set[str] = set()  # those among the events
        for event in events:
            kind, value, unit, cohort = event.kind, event.value, event.unit, event.cohort or Cohort.ALL
            if cohort == Cohort.PAUSED:
                continue
            if kind == self._counted:
                if unit is None and value is not None:
                    unit = _slate_unit(event)
                    slates.add(unit)
                entries[cohort].append((unit, 1.0, 0.0))
                continue
            if kind in (Kind.DECISION, Kind.EXPOSURE) or (kind == Kind.WITHDRAWAL and self._counted == Kind.EXPOSURE):
                continue  # what was exposed cannot be withdrawn
            if unit is None:
                slate = _slate_unit(event)
                unit = slate if slate in slates or slate in self.groups[cohort].sums else None
            entries[cohort].append((unit, -1.0, 0.0) if kind == Kind.WITHDRAWAL else (unit, 0.0, value or 0.0))
        for cohort, of_cohort in entries.items():
            self.groups[cohort].add(of_cohort)

    def settle(self, cohort: str | None, unit: str | None, outcomes: Sequence[Earned]) -> None:
        """Count a decision with all that it has earned."""
        if cohort != Cohort.PAUSED:
            self.groups[cohort or Cohort.ALL].add([(unit, 1.0, _total(outcomes))])

    @property
    def largest(self) -> float:
        """The largest sum of rewards of a unit, without its sign."""
        return max((group.moments.largest for group in self.groups.values()), default=0.0)

    def moments(self, cohort: str) -> Moments:
        """Return the sums of a group."""
        return self.groups[cohort].moments if cohort in self.groups else Moments()

    def moments_with(self, settled: Iterable[tuple[str | None, str | None, Sequence[Earned]]]) -> dict[str, Moments]:
        """Return the sums of the groups as they are once these decisions, too, are settled; nothing changes."""
        entries: dict[str, list[Entry]] = {cohort: [] for cohort in self.groups}
        for cohort, unit, outcomes in settled:
            if cohort != Cohort.PAUSED:
                entries.setdefault(cohort or Cohort.ALL, []).append((unit, 1.0, _total(outcomes)))
        sums = {}
        for cohort, of_cohort in entries.items():
            group = self.groups.get(cohort, Group())
            copy = Group(group.moments, ChainMap({}, group.sums))  # what is added goes into the first mapping
            copy.add(of_cohort)
            sums[cohort] = copy.moments
        return sums

    # Snapshots

    def to_dict(self) -> Json:
        groups = {}
        for cohort, group in self.groups.items():
            sums = array("d", (x for pair in group.sums.values() for x in pair))
            groups[cohort] = {
                "moments": vars(group.moments),
                "units": list(group.sums),
                "sums": base64.b64encode(sums.tobytes()).decode(),
            }
        return {"groups": groups}

    @classmethod
    def from_dict(cls, saved: Json, *, only_exposed: bool = False) -> Account:
        account = cls(only_exposed=only_exposed)
        for cohort, group in saved["groups"].items():
            sums = array("d")
            sums.frombytes(base64.b64decode(group["sums"]))
            pairs = zip(sums[::2], sums[1::2], strict=True)
            account.groups[cohort] = Group(Moments(**group["moments"]), dict(zip(group["units"], pairs, strict=True)))
        for _, cohort, unit, reward in saved.get("pending", ()):  # of version 0.3: their windows have closed since
            account.groups[cohort].add([(unit, 1.0, reward)])
        return account


def _total(outcomes: Sequence[Earned]) -> float:
    return sum(reward for _, reward, _ in outcomes)


def _slate_unit(event: Event) -> str:
    """Return a unit for a slate without one, which has several rewards; no unit of a request can have this name."""
    return f"\0{event.id}"


def in_control(experiment: str, salt: str, unit: str, share: float) -> bool:
    """Whether a unit belongs to the control group: always the same, in every process and after every restart."""
    digest = hashlib.blake2b(f"{salt}/{experiment}/{unit}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


SAVED = ("at", "cohort", "unit", "arms", "context", "is_exposed")  # of `Open`, beside the rewards
GRACE = 5_000_000  # microseconds that a window stays open, so that rewards given in time and just stored still count


@dataclass
class Open:
    """A decision whose window is open."""

    at: int
    cohort: str | None
    unit: str | None
    arms: list[str]  # by position
    context: object = None
    is_exposed: bool = False
    rewards: dict[int, tuple[str, float, bool]] = field(default_factory=dict)  # position -> arm, value, is it learned

    def outcomes(self, default: float | None) -> Iterator[tuple[str, float, bool]]:
        """Yield arm, reward and whether it is learned, for each position that has a reward, or a default one."""
        for position, arm in enumerate(self.arms):
            if position in self.rewards:
                yield self.rewards[position]
            elif default is not None:
                yield arm, default, True


class Windows:
    """The open windows of one experiment. They close by the times of its events, so that every replica folds the same.

    A window closes a little late, so that the order in which events of the same moment are stored changes nothing.
    """

    def __init__(self, window: float, *, only_exposed: bool = False) -> None:
        self.window, self.only_exposed = round(window * 1e6), only_exposed
        self._grace = min(self.window, GRACE)
        self._heap: list[tuple[int, str]] = []  # times and ids of decisions; a withdrawn one stays until its time
        self._open: dict[str, Open] = {}

    def add(self, event: Event) -> bool:
        """Take in a decision, or what happens to one; returns whether its window is open."""
        assert event.id is not None
        if event.kind == Kind.DECISION:
            body = event.body or {}
            arms = body.get("arms") or [event.arm] * round(event.value or 1)
            context = body["request"].get("context") if "request" in body else None
            heapq.heappush(self._heap, (event.at, event.id))
            is_shadow = body.get("shadow", False)
            self._open[event.id] = Open(event.at, event.cohort, event.unit, [] if is_shadow else arms, context)
            return True
        decision = self._open.get(event.id)
        if decision is None:
            return False
        if event.kind == Kind.WITHDRAWAL:
            del self._open[event.id]
        elif event.kind == Kind.EXPOSURE:
            decision.is_exposed = True
        elif event.learned or event.at <= decision.at + self.window:
            if not decision.arms:  # in shadow mode the reward says what was shown
                decision.arms = [event.arm or ""]
            if event.kind == Kind.REWARD or event.position not in decision.rewards:
                decision.rewards[event.position] = (event.arm or "", event.value or 0.0, bool(event.learned))
        return True

    @property
    def next_close(self) -> float:
        """The time at which the next window closes."""
        return self._heap[0][0] + self.window + self._grace if self._heap else math.inf

    def close(self, at: int) -> Iterator[tuple[str, Open]]:
        """Take out the decisions whose window has closed at a time, in order; yield those that count."""
        while self.next_close < at:
            _, id_ = heapq.heappop(self._heap)
            decision = self._open.pop(id_, None)
            if decision is not None and self._counts(decision):
                yield id_, decision

    def closed(self, at: int) -> Iterator[tuple[str, Open]]:
        """Yield them, and change nothing."""
        places = [0]
        while places:
            place = places.pop()
            if place >= len(self._heap) or self._heap[place][0] + self.window + self._grace >= at:
                continue  # in a heap, all below it are later
            places += [2 * place + 1, 2 * place + 2]
            decision = self._open.get(self._heap[place][1])
            if decision is not None and self._counts(decision):
                yield self._heap[place][1], decision

    def _counts(self, decision: Open) -> bool:
        return decision.is_exposed or not self.only_exposed

    # Snapshots

    def to_list(self) -> list[Any]:
        """Convert to what JSON can hold."""
        return [
            [id_, *(getattr(its, name) for name in SAVED), [[p, *r] for p, r in its.rewards.items()]]
            for id_, its in self._open.items()
        ]

    @classmethod
    def from_list(cls, saved: list[Any], window: float, *, only_exposed: bool = False) -> Windows:
        windows = cls(window, only_exposed=only_exposed)
        for id_, *values, rewards in saved:
            given = {position: (arm, value, learned) for position, arm, value, learned in rewards}
            windows._open[id_] = Open(**dict(zip(SAVED, values, strict=True)), rewards=given)
        windows._heap = sorted((its.at, id_) for id_, its in windows._open.items())  # which is a heap
        return windows
