"""Decisions that are made elsewhere: lists, the policy and its weights over HTTP, and batches of what clients did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import banditree as bt
from banditree.service import commands, edge, guard, schema
from banditree.service.app import Service
from banditree.service.events import iso, now
from banditree.service.lift import in_control
from banditree.service.settings import Plan, Settings
from tests.support.serving import inside

ARMS = {"s1": ["shoes"], "s2": ["shoes"], "h1": ["hats"], "h2": ["hats"], "h3": ["hats"]}
HALF = Settings(policy="TSC", control=0.5)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[tuple[Service, httpx.Client]]:
    with inside(Plan(ARMS, HALF), store=tmp_path / "decisions.db") as opened:
        yield opened


def event(http: httpx.Client) -> int:
    return int(http.get("/v1/policy").headers["banditree-event"])


def row(http: httpx.Client, id_: str, arm: str = "s1", group: str = "policy", **more: Any) -> dict[str, Any]:
    return {"id": id_, "arm": arm, "propensity": 0.25, "group": group, "event": event(http)} | more


def send(http: httpx.Client, *decisions: Any, rewards: Any = (), exposures: Any = ()) -> Any:
    answer = http.post("/v1/batch", json={"decisions": decisions, "exposures": exposures, "rewards": rewards})
    assert answer.status_code == 200, answer.text
    return answer.json()


# Lists


def test_a_list_of_requests_gets_a_list_of_answers(at: Any) -> None:
    _, http = at
    answer = http.post("/v1/decisions", json=[{"id": "a"}, {"only": ["nowhere"]}, {"unit": "u", "k": 2}, 7])
    assert answer.status_code == 200
    first, unknown, slate, number = answer.json()
    assert http.get("/v1/decisions/a").json()["arm"] == first["arm"]
    assert unknown["status"] == 422
    assert "nowhere" in unknown["error"]
    assert len(slate["arms"]) == 2
    assert number == {"error": "the body: input should be an object", "status": 422}
    rewards = [{"id": "a", "reward": 1}, {"id": "a", "reward": 1}, {"id": "gone", "reward": 1}, {"id": slate["id"]}]
    done = http.post("/v1/rewards", json=rewards).json()
    assert done[:2] == [{"id": "a", "status": "applied"}, {"id": "a", "status": "duplicate"}]
    assert (done[2]["id"], done[2]["status"], done[3]["status"]) == ("gone", 404, 422)
    assert http.post("/v1/rewards", json={"id": slate["id"], "reward": 0, "position": 1}).json()["status"] == "applied"


def test_a_list_counts_as_what_it_asks_for(at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, http = at
    assert len(http.post("/v1/decisions", json=[{}] * schema.MAX_LIST).json()) == schema.MAX_LIST
    assert http.post("/v1/decisions", json=[{}] * (schema.MAX_LIST + 1)).status_code == 422
    monkeypatch.setattr(guard, "MAX_IN_FLIGHT", 10)
    assert http.post("/v1/decisions", json=[{}] * 10).status_code == 200
    full = http.post("/v1/decisions", json=[{}] * 11)
    assert (full.status_code, "retry-after" in full.headers) == (503, True)
    assert http.post("/v1/decisions", json=[{}] * 10).status_code == 200  # room was given back


def test_a_decision_says_how_likely_it_was_over_both_groups(tmp_path: Path) -> None:
    settings = Settings(policy="TSC", control=0.25, control_policy="item:h1")
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):
        asked = {"only": ["s1", "h1", "gone", "h2"], "exclude": ["h2"]}  # one arm of each cluster is left
        made = http.post("/v1/decisions", json=[asked] * 100).json()
        assert {(its["group"], its["arm"]) for its in made} == {("policy", "s1"), ("policy", "h1"), ("control", "h1")}
        for its in made:
            assert its["unknown"] == ["gone"]
            assert its["propensity"] == (0.5 if its["group"] == "policy" else 1)
            assert its["propensity_overall"] == pytest.approx(0.75 * 0.5 + 0.25 * (its["arm"] == "h1"))
        rows = [json.loads(line) for line in http.get("/v1/log").text.splitlines()]
        assert [row["propensity_overall"] for row in rows] == [its["propensity_overall"] for its in made]
        http.post("/v1/pause")
        assert "propensity_overall" not in http.post("/v1/decisions").json()


# The policy and its weights


def test_the_policy_is_that_of_the_service(at: Any) -> None:
    service, http = at
    given = http.get("/v1/policy")
    about = json.loads(given.headers["banditree-standing"])
    assert Settings(**about["settings"]) == HALF
    assert (about["salt"], about["paused"]) == (service.engine.salt, False)
    assert bt.from_bytes(given.content).to_bytes() == service.engine.states["main"].policy.to_bytes()
    tag = {"if-none-match": given.headers["etag"]}
    assert http.get("/v1/policy", headers=tag).status_code == 304
    decision = next(
        made for made in (http.post("/v1/decisions").json() for _ in range(99)) if made["group"] == "policy"
    )
    assert http.get("/v1/policy", headers=tag).status_code == 304  # decisions change nothing
    http.put(f"/v1/decisions/{decision['id']}/reward", json={"reward": 1})
    learned = http.get("/v1/policy", headers=tag)
    assert learned.status_code == 200
    assert bt.from_bytes(learned.content).table()[0].plays == 1
    tag = {"if-none-match": learned.headers["etag"]}
    for change in ("pause", "resume"):
        http.post(f"/v1/{change}")
        paused = http.get("/v1/policy", headers=tag)
        assert json.loads(paused.headers["banditree-standing"])["paused"] == (change == "pause")
    assert http.get("/v1/policy?group=control").status_code == 404


def test_a_control_policy_that_learns_is_given_too(tmp_path: Path) -> None:
    settings = Settings(policy="TSC", control=0.5, control_policy="TS")
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):
        before = http.get("/v1/policy?group=control")
        made = next(
            made for made in (http.post("/v1/decisions").json() for _ in range(99)) if made["group"] == "control"
        )
        http.put(f"/v1/decisions/{made['id']}/reward", json={"reward": 1})
        tag = {"if-none-match": before.headers["etag"]}
        assert bt.from_bytes(http.get("/v1/policy?group=control", headers=tag).content).table()[0].plays == 1


def test_weights_are_exact_probabilities(at: Any) -> None:
    _, http = at
    answer = http.get("/v1/weights").json()
    assert answer["event"] == event(http)
    assert answer["weights"] == pytest.approx(
        {"s1": 1 / 4, "s2": 1 / 4, "h1": 1 / 6, "h2": 1 / 6, "h3": 1 / 6}, abs=1e-9
    )
    assert round(sum(answer["weights"].values()) * edge.BILLION) == edge.BILLION
    flag = http.get("/v1/weights?format=flagd").json()["flags"]["main"]
    fractions = dict(flag["targeting"]["fractional"])
    assert {arm: weight / edge.BILLION for arm, weight in fractions.items()} == answer["weights"]
    http.post("/v1/pause")
    assert set(http.get("/v1/weights").json()["weights"].values()) == {0.2}  # by the control policy
    assert http.get("/v1/weights?context=[").status_code == 422


def test_weights_in_a_context(tmp_path: Path) -> None:
    features = bt.Features({"device": ["phone", "tablet"]}).to_dict()
    with inside(Plan(ARMS, Settings(features=features)), store=tmp_path / "decisions.db") as (service, http):
        for _ in range(60):
            made = http.post("/v1/decisions", json={"context": {"device": "phone"}}).json()
            http.put(f"/v1/decisions/{made['id']}/reward", json={"reward": float(made["arm"] == "s1")})
        phone = http.get("/v1/weights", params={"context": '{"device": "phone"}'}).json()["weights"]
        policy = service.engine.states["main"].policy
        exact = policy.propensities(context={"device": "phone"})
        assert list(phone.values()) == pytest.approx(exact.tolist(), abs=2e-9)
        wrong = http.get("/v1/weights")
        assert wrong.status_code == 422
        assert "device" in wrong.json()["error"]


def test_weights_are_rounded_to_a_whole() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 1000):
        chances = rng.dirichlet(np.full(n, 0.1))
        weights = edge.quantise(chances)
        assert weights.sum() == edge.BILLION
        assert np.abs(weights / edge.BILLION - chances).max() <= 1 / edge.BILLION + 1e-15


# Batches


def test_a_batch_is_recorded_once(at: Any) -> None:
    service, http = at
    unit = next(f"u{i}" for i in range(99) if not in_control("main", service.engine.salt, f"u{i}", 0.5))
    decisions = [
        row(http, "a", unit=unit, at="2026-01-02T03:04:05Z", steps=[0.5, 0.5]),
        row(http, "b", "h1", "control", only=["h1", "h2"], exclude=["h2"]),
        row(http, "c", arms=["s1", "h2"], propensities=[0.25, 0.2], k=2),
    ]
    rewards = [{"id": "a", "reward": 1}, {"id": "b", "reward": 1}, {"id": "c", "reward": 0, "position": 1}]
    assert send(http, *decisions, rewards=rewards) == {"accepted": 6, "duplicate": 0, "refused": []}
    before = service.engine.states["main"].to_bytes()
    assert send(http, *decisions, rewards=rewards) == {"accepted": 0, "duplicate": 6, "refused": []}
    assert service.engine.states["main"].to_bytes() == before
    looked = http.get("/v1/decisions/a").json()
    assert (looked["at"], looked["path"], looked["reward"]) == ("2026-01-02T03:04:05.000000Z", ["shoes", "s1"], 1)
    rows = [json.loads(line) for line in http.get("/v1/log").text.splitlines()]
    assert [(its["group"], its["reward"], its["propensity"]) for its in rows] == [
        ("policy", 1, 0.25),
        ("control", 1, 0.25),
        ("policy", None, 0.25),
    ]
    assert rows[1]["only"] == ["h1", "h2"]
    assert service.engine.states["main"].policy.table()[0].plays == 2  # nothing is learned from the control group
    groups = http.get("/v1/report").json()["groups"]
    assert (groups["policy"]["decisions"], groups["control"]["decisions"]) == (2, 1)


def test_rows_that_cannot_be_are_refused_one_by_one(at: Any) -> None:
    service, http = at
    unit = next(f"u{i}" for i in range(99) if in_control("main", service.engine.salt, f"u{i}", 0.5))
    good = row(http, "good")
    cases = {
        "no arm 'z1'": row(http, "1", "z1"),
        "not in the group": row(http, "2", unit=unit),
        "not among those": row(http, "3", exclude=["s1"]),
        "k different": row(http, "4", k=2),
        "propensity": row(http, "5") | {"propensity": 0},
        "by name": row(http, "6", context={"device": "phone"}),
        "one probability": row(http, "7", arms=["s1", "s2"], k=2),
        "Extra": row(http, "8", colour="red"),
    }
    answer = send(http, *cases.values(), good, 7, rewards=[{"id": "nowhere", "reward": 1}, {"id": "good", "reward": 3}])
    assert answer["accepted"] == 1
    assert [its.get("id") for its in answer["refused"]] == [*"12345678", None, "nowhere", "good"]
    for part, its in zip(cases, answer["refused"], strict=False):
        assert part.lower() in its["error"].lower()
    assert answer["refused"][-2]["status"] == 404
    again = send(http, good | {"propensity": 0.5})
    assert "another decision" in again["refused"][0]["error"]
    assert service.engine.states["main"].decisions == 1
    assert http.post("/v1/batch", content=b"{").status_code == 400
    assert http.post("/v1/batch", content=b" " * (guard.MAX_BODY_BYTES + 1)).status_code == 413


def test_a_decision_is_judged_by_its_own_time(at: Any) -> None:
    service, http = at
    early = row(http, "early")
    http.post("/v1/arms", json={"add": {"n1": ["hats"]}, "remove": ["s1"], "move": {"s2": ["hats"]}})
    moved = row(http, "moved", "s2", event=early["event"])
    late, too_early = row(http, "late"), row(http, "too early", "n1", event=early["event"])
    paused = http.post("/v1/pause") and row(http, "paused", "n1")
    http.post("/v1/resume")
    answer = send(http, early, moved, late, too_early, paused, paused | {"id": "control", "group": "control"})
    assert answer["accepted"] == 3
    assert [its["error"] for its in answer["refused"]] == [
        f"there was no arm 's1' at event {late['event']}",
        f"there was no arm 'n1' at event {early['event']}",
        f"at event {paused['event']} the experiment was paused: everybody was in the control group",
    ]
    rows = {its["id"]: its for its in map(json.loads, http.get("/v1/log").text.splitlines())}
    assert rows["moved"]["path"] == ["shoes", "s2"]
    assert rows["early"]["tree"] < rows["control"]["tree"]
    ahead = row(http, "ahead", "n1", event=10**6)  # of another process, which has folded more
    assert send(http, ahead)["accepted"] == 1
    assert service.engine.states["main"].decisions == 4


def test_windows_go_by_the_clock_of_the_client(tmp_path: Path) -> None:
    settings = Settings(policy="TSC", reward_window=60.0)
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, http):
        long_ago = now() - 3600 * 10**6
        times = [iso(long_ago + seconds * 10**6) for seconds in (0, 30, 90)]
        decisions = [row(http, id_, at=times[0]) for id_ in ("in time", "late", "unsaid")]
        rewards: list[Any] = [
            {"id": "in time", "reward": 1, "at": times[1]},
            {"id": "late", "reward": 1, "at": times[2]},
        ]
        assert send(http, *decisions, rewards=[*rewards, {"id": "unsaid", "reward": 1}])["accepted"] == 6
        assert service.engine.states["main"].policy.table()[0].plays == 2


def test_what_was_decided_elsewhere_is_as_if_it_had_been_decided_here(tmp_path: Path) -> None:
    """The same decisions and rewards, made here and sent in a batch, fold to the same policy and the same report."""
    plan = Plan(ARMS, HALF)
    with inside(plan, store=tmp_path / "here.db") as (here, http):
        made = http.post("/v1/decisions", json=[{"unit": f"u{i}"} for i in range(300)]).json()
        rewards = [{"id": its["id"], "reward": float(its["arm"] == "h1")} for its in made]
        assert Counter(its["status"] for its in http.post("/v1/rewards", json=rewards).json()) == {"applied": 300}
        salt, policy = here.engine.salt, here.engine.states["main"].policy.to_bytes()
        report = http.get("/v1/report").json()
    with inside(plan, store=tmp_path / "there.db") as (there, http):
        there.engine.salt = salt
        names = ("id", "arm", "arms", "propensity", "steps", "group", "at")
        rows = [{name: its[name] for name in names} | {"unit": f"u{i}", "event": 2} for i, its in enumerate(made)]
        assert send(http, *rows, rewards=rewards) == {"accepted": 600, "duplicate": 0, "refused": []}
        assert there.engine.states["main"].policy.to_bytes() == policy
        assert http.get("/v1/report").json() == report


# Exposures


@pytest.mark.parametrize("window", [None, 60.0])
def test_only_what_was_seen_counts(tmp_path: Path, window: float | None) -> None:
    settings = Settings(policy="TSC", exposure=True, reward_window=window, default_reward=window and 0.0)
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, http):
        ids = [f"d{i}" for i in range(6)]
        http.post("/v1/decisions", json=[{"id": id_, "unit": id_} for id_ in ids])

        def expose(id_: str) -> Any:
            return http.post(f"/v1/decisions/{id_}/exposure")

        assert [expose("d0").json()["status"] for _ in range(2)] == ["applied", "duplicate"]
        http.put("/v1/decisions/d0/reward", json={"reward": 1})
        http.put("/v1/decisions/d1/reward", json={"reward": 1})  # which says that it was seen
        assert send(http, exposures=[{"id": "d2"}, {"id": "gone"}])["refused"][0]["status"] == 404
        assert http.delete("/v1/decisions/d3").status_code == 200
        assert http.delete("/v1/decisions/d2").status_code == expose("d3").status_code == 409
        looked = {id_: http.get(f"/v1/decisions/{id_}").json() for id_ in ids}
        assert [looked[id_]["exposed"] for id_ in ids] == [True, True, True, False, False, False]
        state = service.engine.states["main"]
        later = now() + 10**9  # all windows have closed
        sums = state.moments_at(later)["all"]
        assert (sums.d, sums.units, sums.r) == (3, 3, 2)
        again = type(state).from_bytes(state.to_bytes(), "main", settings)
        assert again.moments_at(later)["all"] == sums
        described = [commands.rewards_of(service.engine.log.find("main", [id_])[id_], settings, later) for id_ in ids]
        default = {} if window is None else {0: 0.0}
        assert described == [{0: 1.0}, {0: 1.0}, default, {}, {}, {}]


def test_without_the_option_nobody_reports_exposures(at: Any) -> None:
    _, http = at
    id_ = http.post("/v1/decisions").json()["id"]
    answer = http.post(f"/v1/decisions/{id_}/exposure")
    assert (answer.status_code, "setting exposure" in answer.json()["error"]) == (409, True)
