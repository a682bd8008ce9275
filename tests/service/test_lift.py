"""The control group and its interval: it covers the truth however often one looks, and says better only if it is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from banditree.service import lift
from banditree.service.events import Cohort, Event, Kind
from banditree.service.lift import Account, Lift, Moments, compare, in_control
from banditree.service.settings import Plan, Settings
from banditree.service.state import State
from banditree.service.views import outlook
from banditree.tree import Tree
from tests.support.serving import inside

SERVICES, DECISIONS = 1000, 4000
Array = NDArray[Any]


class Simulated:
    """Many services at once, each with decisions in order: their groups, units and rewards, and the true means.

    Rewards come late, and one in five after the window has closed: it does not count, in either group. A decision
    counts once its window has closed, which is in the order of the decisions, so that to look all the time is to look
    after every decision.
    """

    def __init__(
        self, seed: int, *, share: float, rate: float, gain: float = 0.0, learning: float = 0.0, repeat: int = 1
    ):
        rng = np.random.default_rng(seed)
        shape = (SERVICES, DECISIONS)
        self.unit = (
            rng.integers(DECISIONS // repeat, size=shape)
            if repeat > 1
            else np.tile(np.arange(DECISIONS), (SERVICES, 1))
        )
        of_units = rng.random((SERVICES, DECISIONS)) < share
        self.control = np.take_along_axis(of_units, self.unit, 1)
        liking = np.exp(0.8 * rng.standard_normal(shape) - 0.32) if repeat > 1 else np.ones(shape)  # by unit, mean 1
        step = np.arange(DECISIONS)
        in_time = 0.8
        means = rate * in_time * np.where(self.control, 1.0, 1 + gain + learning * step / (step + 1000))
        self.means = means
        chances = np.minimum(means * np.take_along_axis(liking, self.unit, 1), 1.0)
        self.rewards = (rng.random(shape) < chances).astype(float)

    def moments(self, is_member: Array) -> Moments:
        """The sums of one group after every decision: arrays of (services, decisions)."""
        d, r = is_member.astype(float), self.rewards * is_member
        key = (self.unit + np.arange(SERVICES)[:, None] * DECISIONS).ravel()
        order = np.argsort(key, kind="stable")
        key, unit_d, unit_r = key[order], d.ravel()[order], r.ravel()[order]
        first = np.r_[True, key[1:] != key[:-1]]
        start = np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))
        sums_d, sums_r = np.cumsum(unit_d) - unit_d, np.cumsum(unit_r) - unit_r
        before_d, before_r = sums_d - sums_d[start], sums_r - sums_r[start]

        def over_time(values: Array) -> Any:
            unsorted = np.empty(len(values))
            unsorted[order] = values
            return unsorted.reshape(d.shape).cumsum(1)

        return Moments(
            units=over_time((before_d == 0) & (unit_d > 0)),
            d=over_time(unit_d),
            r=over_time(unit_r),
            dd=over_time(unit_d * (2 * before_d + unit_d)),
            dr=over_time((before_d + unit_d) * (before_r + unit_r) - before_d * before_r),
            rr=over_time(unit_r * (2 * before_r + unit_r)),
        )

    def look_all_the_time(self) -> tuple[float, float]:
        """How often the interval covers the truth at all times, and how often it says better at any time."""
        policy, control = self.moments(~self.control), self.moments(self.control)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance: Any = sum(lift.variance_of_difference(policy, control, 1.0))
            half = lift.radius(variance, policy.units + control.units)
            difference = policy.r / policy.d - control.r / control.d
            truth = (self.means * ~self.control).cumsum(1) / policy.d - (self.means * self.control).cumsum(
                1
            ) / control.d
        is_told = (np.minimum(policy.units, control.units) >= lift.MIN_UNITS) & (policy.r + control.r > 0)
        covers = ~(is_told & (np.abs(difference - truth) > half)).any(1)
        better = (is_told & (difference - half > 0)).any(1)
        return float(covers.mean()), float(better.mean())


@pytest.mark.parametrize(
    "world",
    [
        {"share": 0.1, "rate": 0.05},
        {"share": 0.5, "rate": 0.5},
        {"share": 0.1, "rate": 0.1, "repeat": 4},
        {"share": 0.2, "rate": 0.1, "learning": 1.0},
    ],
)
def test_looked_at_all_the_time_the_interval_covers_the_truth(world: Any) -> None:
    covers, better = Simulated(7, **world).look_all_the_time()
    assert covers >= 0.94
    if "learning" not in world:
        assert better <= 0.03


def test_an_interval_for_one_look_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lift, "radius", lambda variance, units: 1.96 * np.sqrt(variance))
    covers, better = Simulated(7, share=0.5, rate=0.5).look_all_the_time()
    assert covers < 0.8
    assert better > 0.1


def test_a_real_gain_is_found_and_a_loss_too() -> None:
    _, better = Simulated(7, share=0.5, rate=0.4, gain=0.25).look_all_the_time()
    assert better > 0.9
    gain = compare(sums(1000, 400), sums(1000, 200))
    loss = compare(sums(1000, 200), sums(1000, 400))
    assert (gain.verdict, loss.verdict) == ("better", "worse")
    assert gain.ratio == 2
    assert gain.interval is not None
    assert gain.interval[0] < 0.2 < gain.interval[1]
    unclear = compare(sums(200, 20), sums(200, 16))
    assert unclear.verdict == "cannot tell"
    assert unclear.more_decisions is not None
    assert unclear.more_decisions > 400
    more = (400 + unclear.more_decisions) / 400
    assert compare(sums(200 * more, 20 * more), sums(200 * more, 16 * more)).verdict == "better"


def sums(decisions: float, successes: float) -> Moments:
    """Of a group whose units have one decision each."""
    return Moments(round(decisions), decisions, successes, decisions, successes, successes, 1.0)


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e100])
def test_the_unit_of_rewards_changes_the_numbers_alone(size: float) -> None:
    """Squares of 1e-200 are 0: nothing can be said, and the report is no error."""

    def compared(size: float) -> Lift:
        one, other = (Moments(400, 400, n * size, 400, n * size, n * size**2, size) for n in (80, 40))
        return compare(one, other)

    found, known = compared(size), compared(1.0)
    assert found.verdict == ("cannot tell" if size == 1e-200 else known.verdict)
    assert found.ratio == pytest.approx(known.ratio)
    assert found.ratio_interval == (None if size == 1e-200 else pytest.approx(known.ratio_interval))


def test_a_control_group_that_earns_next_to_nothing_gives_numbers_that_json_can_write() -> None:
    group = Moments(400, 400, 80, 400, 80, 80, 1.0)
    ends = compare(group, Moments(400, 400, 1e-6, 400, 1e-6, 80, 1.0)).ratio_interval
    assert ends is not None
    assert np.isfinite(ends).all()
    assert compare(group, Moments(400, 400, 1e-300, 400, 1e-300, 80, 1.0)).ratio is None


def test_sums_over_units_are_those_of_the_definition() -> None:
    rng = random.Random(1)
    account, by_unit = Account(), dict[str, list[float]]()
    for step in range(300):
        unit = f"u{rng.randrange(40)}"
        account.add([Event(step, Kind.DECISION, f"d{step}", unit=unit, cohort=Cohort.POLICY)])
        d = by_unit.setdefault(unit, [0.0, 0.0])
        d[0] += 1
        if rng.random() < 0.3:
            value = rng.random()
            account.add([Event(step, Kind.REWARD, f"d{step}", value=value, unit=unit, cohort=Cohort.POLICY)])
            d[1] += value
    moments = account.moments(Cohort.POLICY)
    rows = list(by_unit.values())
    assert moments.units == len(rows)
    assert moments.d == sum(d for d, _ in rows) == 300
    for name, value in (
        ("r", sum(r for _, r in rows)),
        ("dd", sum(d * d for d, _ in rows)),
        ("dr", sum(d * r for d, r in rows)),
        ("rr", sum(r * r for _, r in rows)),
    ):
        assert getattr(moments, name) == pytest.approx(value)


def test_decisions_whose_window_is_open_are_left_out_of_both_groups() -> None:
    state = State("main", Settings(policy="TSC", control=0.5, reward_window=10.0))
    start: list[Event] = [Event(0, Kind.ARMS, body={"add": {"a": ["x"], "b": ["y"]}})]
    for place, cohort in enumerate((Cohort.POLICY, Cohort.CONTROL)):
        for at, name in ((0, f"old{place}"), (9_000_000, f"new{place}")):
            start.append(Event(at, Kind.DECISION, name, arm="a", cohort=cohort))
    start.sort(key=lambda event: event.at)
    rewards = [event._replace(at=9_000_000, kind=Kind.REWARD, value=1.0) for event in start[1:]]
    state.apply([event._replace(n=n) for n, event in enumerate([*start, *rewards], 1)])
    later = state.moments_at(16_000_000)
    assert [(later[cohort].d, later[cohort].r) for cohort in (Cohort.POLICY, Cohort.CONTROL)] == [(1, 1), (1, 1)]
    assert state.account.moments(Cohort.POLICY).d == 0  # looking has changed nothing
    late = rewards[0]._replace(at=16_000_000, position=1, value=5.0, n=10)  # too late
    state.apply([late])
    assert state.account.moments(Cohort.POLICY) == later[Cohort.POLICY]
    restored = State.from_bytes(state.to_bytes(), "main", state.settings)
    assert restored.to_bytes() == state.to_bytes()
    restored.apply([Event(30_000_000, Kind.TIME, n=11)])
    assert restored.account.moments(Cohort.CONTROL).d == 2


def test_a_unit_is_always_in_the_same_group_and_the_share_is_right() -> None:
    groups = [in_control("main", "salt", f"visitor-{i}", 0.1) for i in range(20_000)]
    assert groups == [in_control("main", "salt", f"visitor-{i}", 0.1) for i in range(20_000)]
    assert abs(np.mean(groups) - 0.1) < 4 * np.sqrt(0.09 / 20_000)
    others = [in_control("other", "salt", f"visitor-{i}", 0.1) for i in range(20_000)]
    both = np.mean(np.logical_and(groups, others))
    assert abs(both - 0.01) < 4 * np.sqrt(0.01 / 20_000)  # another experiment mixes afresh


ARMS = {f"{kind}{i}": [kind] for kind in ("shoes", "hats") for i in range(3)}


def test_a_service_finds_out_what_it_is_worth(tmp_path: Path) -> None:
    """One arm earns; the policy finds it, and the control group chooses at random."""
    settings = Settings(policy="TS", control=0.3)
    rng = random.Random(2)
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):
        empty = http.get("/v1/report").json()
        assert empty["groups"]["control"] == {"decisions": 0, "units": 0, "reward": None}
        assert empty["lift"]["verdict"] == "cannot tell"
        assert empty["lift"]["interval"] == [-1, 1]  # true of any two rates
        seen: dict[str, set[str]] = {}
        for _ in range(500):
            unit = f"v{rng.randrange(350)}"
            decision = http.post("/v1/decisions", json={"unit": unit}).json()
            seen.setdefault(unit, set()).add(decision["group"])
            if decision["group"] == "control":
                assert decision["propensity"] == pytest.approx(1 / 6)
            reward = float(rng.random() < (0.9 if decision["arm"] == "hats1" else 0.05))
            http.put(f"/v1/decisions/{decision['id']}/reward", json={"reward": reward})
        assert all(len(groups) == 1 for groups in seen.values())
        report = http.get("/v1/report").json()
        assert report["groups"]["policy"]["decisions"] + report["groups"]["control"]["decisions"] == 500
        assert report["groups"]["policy"]["units"] + report["groups"]["control"]["units"] == len(seen)
        result = report["lift"]
        assert result["verdict"] == "better"
        assert result["interval"][0] < result["difference"] < result["interval"][1]
        plays = http.get("/v1/tree", params={"depth": 0}).json()["nodes"][0]["plays"]
        assert plays == report["groups"]["policy"]["decisions"]  # nothing is learned from the control group
        log = [line.split(",") for line in http.get("/v1/log", params={"format": "csv"}).text.splitlines()]
        assert {"group", "unit"} <= set(log[0])


def test_the_control_policy_may_be_one_item_or_another_policy_that_learns_alone(tmp_path: Path) -> None:
    fixed = Plan(ARMS, Settings(policy="TSC", control=0.5, control_policy="item:hats1"), "fixed")
    other = Plan(ARMS, Settings(policy="TSC", control=0.5, control_policy="TS", learn_control=True), "other")
    with inside(fixed, other, store=tmp_path / "decisions.db") as (service, http):
        for step in range(60):
            decision = http.post("/v1/experiments/fixed/decisions", json={"unit": f"v{step}"}).json()
            if decision["group"] == "control":
                assert (decision["arm"], decision["propensity"]) == ("hats1", 1.0)
            excluded = http.post("/v1/experiments/fixed/decisions", json={"unit": f"v{step}", "exclude": ["hats1"]})
            assert excluded.json()["arm"] != "hats1"
            decision = http.post("/v1/experiments/other/decisions", json={"unit": f"v{step}"}).json()
            http.put(f"/v1/experiments/other/decisions/{decision['id']}/reward", json={"reward": 1})
        state = service.engine.states["other"]
        assert state.policy[()].plays == 60
        assert state.control is not None
        assert 10 < state.control[()].plays < 50


@pytest.mark.parametrize(("arms", "is_named"), [(1000, False), (3, True)])
def test_an_item_is_named_only_if_it_stands_out(arms: int, is_named: bool) -> None:
    policy = Settings(policy="TSC").build(Tree.from_paths([("hats", f"hat{i}") for i in range(arms)]))
    (sentence,) = outlook(policy.to_bytes(), None)["sentences"]
    assert ("hat" in sentence) == is_named
