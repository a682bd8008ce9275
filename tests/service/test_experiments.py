"""Many experiments in one service, who may do what, pauses, voids, warm starts, contexts by name, and OpenFeature."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

from banditree.errors import BanditreeError, InvalidValue
from banditree.service import engine, guard, replica
from banditree.service.events import MAIN, Event, Kind, iso, now
from banditree.service.guard import Access
from banditree.service.serve import OPTIONS, plan_of, read_config
from banditree.service.settings import Plan, Settings, Source, parse_context
from banditree.service.state import Voids
from banditree.tree import Tree
from tests.support.serving import ITEMS, holding, inside, until

ARMS = {f"{kind}{i}": [kind] for kind in ("shoes", "hats") for i in range(3)}
TSC = Settings(policy="TSC")


def play(http: httpx.Client, n: int, seed: int = 0, at: str = "/v1", **asked: Any) -> list[str]:
    """Decide and reward; returns the ids."""
    rng, ids = random.Random(seed), []
    for _ in range(n):
        decision = http.post(f"{at}/decisions", json=asked).json()
        answer = http.put(f"{at}/decisions/{decision['id']}/reward", json={"reward": rng.randrange(2)})
        assert answer.status_code == 200, answer.text
        ids.append(decision["id"])
    return ids


# Experiments


def test_experiments_have_their_own_arms_decisions_and_state(tmp_path: Path) -> None:
    store = tmp_path / "decisions.db"
    plans = Plan(ARMS, TSC), Plan({"red": [], "blue": []}, Settings(policy="TS"), "colour")
    with inside(*plans, store=store) as (service, http):
        asked: dict[str, Any] = {"arms": {"a": ["x"], "b": ["y"]}, "policy": "TS", "control": 0.2}
        assert http.put("/v1/experiments/new", json=asked).status_code == 201
        assert http.put("/v1/experiments/new", json=asked).status_code == 200
        assert http.put("/v1/experiments/new", json=asked | {"policy": "TSC"}).status_code == 409
        assert http.put("/v1/experiments/new2", json=asked | {"policy": "X"}).status_code == 422
        assert http.put("/v1/experiments/a b", json=asked).status_code == 422
        spelled = {"arms": {"a": []}, "reward_window": "30m", "sticky": 60, "policy": "LinTS", "context": "age=1..9"}
        assert http.put("/v1/experiments/spelled", json=spelled).status_code == 201
        assert service.engine.states["spelled"].settings.reward_window == 1800
        play(http, 5)
        play(http, 3, at="/v1/experiments/colour")
        play(http, 2, at="/v1/experiments/new")
        for name in ("", "/experiments/colour"):  # the same id in both
            assert http.post(f"/v1{name}/decisions", json={"id": "same"}).status_code == 201
        assert http.get("/v1/decisions/same").json()["experiment"] == "main"
        assert http.get("/v1/experiments/colour/decisions/same").json()["arm"] in ("red", "blue")
        assert http.get("/v1/experiments/nobody/tree").status_code == 404
        assert http.post("/v1/experiments/nobody/decisions").status_code == 404
        listed = {experiment["name"]: experiment for experiment in http.get("/v1/experiments").json()["experiments"]}
        assert {name: experiment["decisions"] for name, experiment in listed.items()} == {
            "main": 6,
            "colour": 4,
            "new": 2,
            "spelled": 0,
        }
        assert listed["colour"] == {"name": "colour", "policy": "TS", "arms": 2, "decisions": 4, "paused": False}
        rows = http.get("/v1/experiments/colour/log").text.splitlines()
        assert len(rows) == 4
        before = {name: state.to_bytes() for name, state in service.engine.states.items()}
    for _ in range(2):  # from the snapshot of the clean end; then from the log alone
        with inside(*plans, store=store) as (service, http):
            assert {name: state.to_bytes() for name, state in service.engine.states.items()} == before
            for state in service.engine.states.values():
                service.engine.log.drop_snapshot(f"{state.name}/{state.settings.key}")
            service.engine.snapshots.n = service.engine.n


def test_a_config_file_has_a_table_for_each_experiment(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS)
    config = tmp_path / "experiments.toml"
    config.write_text(
        '[experiments.main]\nitems = "items.csv"\narm = "item"\npath = "kind,sort"\ncontrol = 0.1\n'
        'reward_window = "30m"\n\n[experiments.flat]\nitems = "items.csv"\narm = "item"\npolicy = "TS"\n'
    )
    main, flat = read_config(config, "refuse")
    assert (main.name, main.settings.control, main.settings.reward_window) == ("main", 0.1, 1800)
    assert main.arms["s1"] == ["shoes", "low"]
    assert (flat.settings.policy, flat.arms["s1"]) == ("TS", [])
    for wrong in ("", "[experiments.x]\n", '[experiments.x]\nitems = "items.csv"\narm = "item"\nonyl = 1\n', "x = 1\n"):
        config.write_text(wrong)
        with pytest.raises(InvalidValue, match=r"experiments"):
            read_config(config, "refuse")
    config.write_text('[experiments.x]\nitems = "items.csv"\narm = "item"\ncontrol = "much"\n')
    with pytest.raises(InvalidValue, match="control"):
        read_config(config, "refuse")


def test_a_config_file_with_any_mistake_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS)
    config = tmp_path / "experiments.toml"
    config.write_text("[experiments]\nmain = 3\n")
    with pytest.raises(InvalidValue, match="must be a table"):
        read_config(config, "refuse")
    odd = ("3", "true", '"x"', "[1]", '["kind", 3]', "{a = 3}", "1979-05-27", "nan", '""', "[[]]")
    for key, value in product(sorted(OPTIONS), odd):
        options = {"items": '"items.csv"', "arm": '"item"'} | {key: value}
        lines = "\n".join(f"{name} = {text}" for name, text in options.items())
        config.write_text(f"[experiments.main]\n{lines}\n")
        with suppress(BanditreeError):  # anything else is a traceback
            read_config(config, "refuse")
    config.write_text('[experiments.main]\nitems = "items.csv"\narm = "item"\nreward_window = [1]\n')
    with pytest.raises(InvalidValue, match=r"reward_window: input should be a valid \w+$"):
        read_config(config, "refuse")


def test_a_busy_experiment_does_not_delay_the_others(tmp_path: Path) -> None:
    """Of waiting commands, one of each experiment is taken in turn."""
    from banditree.service.commands import Decide
    from banditree.service.engine import Queue, Waiting

    queue, future = Queue(), Any
    calm = Waiting(Decide("calm", {}), future, bool)  # type: ignore[arg-type]
    for place in range(500):
        queue.put(Waiting(Decide(f"busy{place}", {}, experiment="busy"), future, bool))  # type: ignore[arg-type]
    queue.put(calm)
    batch = queue.take(256, 0.0, 0)
    assert len(batch) == 256
    assert batch.index(calm) <= 1


def test_a_slow_experiment_leaves_the_others_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of a quick one ask again when they have their answers: that is soon, and not after each slow command."""
    from banditree.service.commands import Decide
    from banditree.service.engine import Queue, Waiting

    monkeypatch.setattr(engine, "EXPECTED_SECONDS", 0.2)  # for a machine with other work
    queue, seconds = Queue(), {"quick": 0.001, "slow": 0.04}
    done: Counter[str] = Counter()

    def ask(name: str) -> None:
        queue.put(Waiting(Decide(None, {}, experiment=name), Any, bool))  # type: ignore[arg-type]

    for name in ["slow"] * 4 + ["quick"] * 2:
        ask(name)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for item in queue.take(256, 0.1, 0):
            name = item.command.experiment
            time.sleep(seconds[name])
            queue.note(name, seconds[name])
            done[name] += 1
            threading.Timer(0.002, ask, [name]).start()
    assert done["slow"] >= 5
    assert done["quick"] > 4 * done["slow"]


def test_rewards_of_another_unit_are_refused(tmp_path: Path) -> None:
    with inside(Plan(ARMS, Settings(rewards="real")), store=tmp_path / "decisions.db") as (_, http):

        def reward(value: float) -> int:
            id_ = http.post("/v1/decisions").json()["id"]
            return http.put(f"/v1/decisions/{id_}/reward", json={"reward": value}).status_code

        assert [reward(value) for value in (0, 0.5, 20, 1e16, -1e9, 3e5)] == [200, 200, 200, 422, 422, 200]


def test_who_paused_or_voided_is_said_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = Access.of("secret")
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db", access=access) as (_, http):
        http.headers["authorization"] = "Bearer secret"
        [id_] = play(http, 1)
        for route, body in (("pause", {}), ("pause", {}), ("void", {"ids": [id_]}), ("resume", {})):
            assert http.post(f"/v1/{route}", json=body).status_code == 200
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    said = [(line["event"], line["by"], line["answer"]) for line in lines if "by" in line]
    by = "127.0.0.1 with token 1"
    assert said == [
        ("paused or resumed", by, {"paused": True}),
        ("voided", by, {"voided": 1}),
        ("paused or resumed", by, {"paused": False}),
    ]
    assert "stopped" in [line["event"] for line in lines]


# Who may


def test_roles(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# who may what\ndecide d-secret\nread r-secret\n\nadmin a-secret\n")
    access = Access.of("all-secret", file)
    requests: list[tuple[str, str, Any, set[str]]] = [
        ("POST", "/v1/decisions", {"id": "d"}, {"decide"}),
        ("PUT", "/v1/decisions/d/reward", {"reward": 1}, {"decide"}),
        ("GET", "/v1/decisions/d", None, {"decide", "read"}),
        ("POST", "/ofrep/v1/evaluate/flags/main", {"context": {"targetingKey": "v"}}, {"decide"}),
        ("GET", "/v1/tree", None, {"read"}),
        ("GET", "/v1/report", None, {"read"}),
        ("GET", "/v1/log", None, {"read"}),
        ("GET", "/metrics", None, {"read"}),
        ("GET", "/v1/experiments/main/arms", None, {"read"}),
        ("POST", "/v1/experiments/main/arms", {}, set()),
        ("POST", "/v1/pause", None, set()),
        ("POST", "/v1/resume", None, set()),
        ("POST", "/v1/void", {"ids": ["x"]}, set()),
        ("PUT", "/v1/experiments/e", {"arms": {"a": []}}, set()),
    ]
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db", access=access) as (_, http):
        for method, path, body, roles in requests:
            for role in ("decide", "read", "admin", "all"):
                headers = {"authorization": f"Bearer {role[0] if role != 'all' else role}-secret"}
                code = http.request(method, path, json=body, headers=headers).status_code
                allowed = role in (*roles, "admin", "all")
                assert (code in (200, 201)) == allowed, (method, path, role, code)
                assert allowed or code == 403
            assert http.request(method, path, json=body).status_code == 401
    for wrong in ("", "decide\n", "write secret\n", "decide \x00\n"):
        file.write_text(wrong)
        with pytest.raises(InvalidValue):
            Access.of(None, file)


# Pauses and voids


def test_while_it_is_paused_the_control_policy_decides_and_nothing_is_learned(tmp_path: Path) -> None:
    settings = Settings(policy="TSC", control=0.2, control_policy="item:hats1")
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, http):
        play(http, 20)
        waiting = http.post("/v1/decisions").json()["id"]
        before = service.engine.states[MAIN].policy.to_bytes()
        decisions = http.get("/v1/report").json()["groups"]
        assert http.post("/v1/pause").json() == {"paused": True}
        assert http.post("/v1/pause").json() == {"paused": True}
        for _ in range(10):
            decision = http.post("/v1/decisions").json()
            assert (decision["arm"], decision["group"]) == ("hats1", "control")
            http.put(f"/v1/decisions/{decision['id']}/reward", json={"reward": 1})
        http.put(f"/v1/decisions/{waiting}/reward", json={"reward": 1})
        assert service.engine.states[MAIN].policy.to_bytes() == before
        assert http.get("/v1/experiments").json()["experiments"][0]["paused"] is True
        report = http.get("/v1/report").json()
        assert {name: group["decisions"] for name, group in report["groups"].items()} == {
            name: group["decisions"] for name, group in decisions.items()
        }
        assert http.post("/v1/resume").json() == {"paused": False}
        groups = {http.post("/v1/decisions").json()["group"] for _ in range(40)}
        assert groups == {"policy", "control"}


@pytest.mark.parametrize("policy", ["ATS", "TSC"])
@pytest.mark.parametrize(("way", "events_for_a_process"), [("ids", 50_000), ("unit", 50_000), ("time", 0)])
def test_what_is_voided_has_never_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, events_for_a_process: int, policy: str
) -> None:
    """Two services see the same decisions and rewards, one of them also bots, which are then voided."""
    monkeypatch.setattr(replica, "MIN_EVENTS", events_for_a_process)
    settings = Settings(policy=policy, half_life=1000)
    rng = random.Random(3)
    rewards = [(f"d{i}", rng.choice(list(ARMS)), rng.randrange(2)) for i in range(40)]
    bots = [(f"bot{i}", rng.choice(list(ARMS)), 1) for i in range(15)]
    states = []
    for place, with_bots in enumerate((True, False)):
        with inside(Plan(ARMS, settings), store=tmp_path / f"{place}.db") as (service, http):

            def show(some: list[Any], unit: str, http: httpx.Client = http) -> None:
                for id_, arm, reward in some:
                    http.post("/v1/decisions", json={"id": id_, "only": [arm], "unit": unit})
                    http.put(f"/v1/decisions/{id_}/reward", json={"reward": reward})

            show(rewards[:20], "human")
            start = iso(now())
            if with_bots:
                show(bots, "bot")
                http.post("/v1/decisions", json={"id": "later", "only": ["hats0"], "unit": "bot"})
            end = iso(now())
            show(rewards[20:], "human")
            if with_bots:
                ids = [id_ for id_, _, _ in bots] + ["later"]
                asked = {"ids": {"ids": ids}, "unit": {"unit": "bot"}, "time": {"from": start, "to": end}}[way]
                assert http.post("/v1/void", json=asked).json() == {"voided": 16}
                assert http.post("/v1/void", json=asked).json() == {"voided": 0}
                assert http.post("/v1/void", json={"ids": ids[:3]}).json() == {"voided": 0}
                late = http.put("/v1/decisions/later/reward", json={"reward": 1})
                assert late.json() == {"status": "late"}
                assert len(http.get("/v1/log").text.splitlines()) == 40
            state = service.engine.states[MAIN]
            states.append(state.policy.to_bytes())
            report = http.get("/v1/report").json()
            assert report["groups"]["policy"]["decisions"] == 40
    assert states[0] == states[1]
    with inside(Plan(ARMS, settings), store=tmp_path / "0.db") as (service, _):  # also after a restart
        assert service.engine.states[MAIN].policy.to_bytes() == states[1]


def test_a_tree_that_was_looked_at_before_a_void_is_made_anew(tmp_path: Path) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (_, http):
        ids = play(http, 4)
        assert http.get("/v1/tree").json()["nodes"][0]["plays"] == 4
        http.post("/v1/void", json={"ids": ids[:1]})  # not the last one that was learned
        assert http.get("/v1/tree").json()["nodes"][0]["plays"] == 3


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"from": "2026-01-01"},
        {"ids": []},
        {"ids": ["a"], "unit": "u"},
        {"from": "soon", "to": "late"},
        {"from": "2026-01-02", "to": "2026-01-01"},
        {"ids": [1]},
    ],
)
def test_a_void_must_say_what(tmp_path: Path, asked: Any) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (_, http):
        assert http.post("/v1/void", json=asked).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/ofrep/v1/evaluate/flags/main", "[" * 200_000),
        ("POST", "/ofrep/v1/evaluate/flags", '{"context": ' + "[" * 200_000),
        ("POST", "/v1/void", "[" * 200_000),
        ("POST", "/v1/pause", '{"now": true}'),
        ("GET", "/v1/tree?under=" + "[" * 20_000, ""),
        ("PUT", "/v1/experiments/new", '{"arms": {"a": []}, "control": 0.5, "control_policy": "item:b"}'),
        ("PUT", "/v1/experiments/new", '{"arms": {"a": []}, "rewards": "money"}'),
        ("PUT", "/v1/experiments/new", '{"arms": {"a": []}, "context": {"features": 5}}'),
        ("PUT", "/v1/decisions//reward", '{"reward": 1}'),
        ("POST", "/v1/experiments/nobody/decisions", "{}"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(
    tmp_path: Path, method: str, path: str, body: str
) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (service, http):
        before = service.engine.n
        answer = http.request(method, path, content=body)
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.json().keys() & {"error", "errorDetails"}
        assert service.engine.n == before


def test_a_void_concerns_no_decision_that_comes_later(tmp_path: Path) -> None:
    """Not even one whose reward is sent at once, so that both are in the same batch."""
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (service, http):
        play(http, 2, unit="human")
        http.post("/v1/decisions", json={"id": "seen"})
        assert http.post("/v1/void", json={"unit": "human"}).json() == {"voided": 2}
        assert http.post("/v1/void", json={"ids": ["seen", "new"]}).json() == {"voided": 1}
        with ThreadPoolExecutor(2) as pool, holding(service.engine):
            decided = pool.submit(http.post, "/v1/decisions", json={"id": "new", "unit": "human"})
            until(lambda: service.engine._queue._size == 1)
            rewarded = pool.submit(http.put, "/v1/decisions/new/reward", json={"reward": 1})
            until(lambda: service.engine._queue._size == 2)
        assert decided.result().status_code == 201
        assert rewarded.result().json() == {"status": "applied"}
        assert http.get("/v1/report").json()["groups"]["policy"] == {"decisions": 1, "units": 1, "reward": 1}


def test_after_a_thousand_voids_another_one_counts_only_what_is_new(tmp_path: Path) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (service, http):
        play(http, 5, unit="bot")
        ids = play(http, 2, unit="human")
        log = service.engine.log.reading()
        voids = [({"unit": f"u{i}"} if i % 2 else {"from": 10 * i, "to": 10 * i + 9}) for i in range(2500)]
        service.engine.states[MAIN].voids = Voids(Event(0, Kind.VOID, body=body, n=9) for body in voids)
        assert http.post("/v1/void", json={"ids": ids[:1]}).json() == {"voided": 1}
        assert http.post("/v1/void", json={"unit": "bot"}).json() == {"voided": 5}
        span = {"from": "2020-01-01", "to": iso(now())}
        assert http.post("/v1/void", json=span).json() == {"voided": 1}
        assert http.post("/v1/void", json=span).json() == {"voided": 0}
        log.close()


def test_a_voided_decision_that_is_withdrawn_counts_no_less(tmp_path: Path) -> None:
    plan, store = Plan(ARMS, TSC), tmp_path / "decisions.db"
    with inside(plan, store=store) as (_, http):
        play(http, 5)
        http.post("/v1/decisions", json={"id": "bot"})
        http.post("/v1/void", json={"ids": ["bot"]})
    with inside(plan, store=store) as (_, http):  # from a snapshot
        assert http.delete("/v1/decisions/bot").status_code == 200
        assert http.get("/v1/report").json()["groups"]["policy"]["decisions"] == 5


# A warm start


def test_a_service_starts_from_counts_once_and_like_rewards_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("item,kind,shown,clicks\na,x,10,3\nb,x,0,0\nc,y,5,5\n")
    source = Source(file, ["item"], ["kind"], plays="shown", successes="clicks")
    plan = plan_of(MAIN, source, TSC, "refuse")
    one_by_one = TSC.build(Tree({"x": ["a", "b"], "y": ["c"]}))
    for arm, successes, failures in (("a", 3, 7), ("c", 5, 0)):
        for reward in [1] * successes + [0] * failures:
            one_by_one.update(arm, reward)
    for _ in range(2):
        with inside(plan, store=tmp_path / "decisions.db") as (service, http):
            state = service.engine.states[MAIN]
            assert [row.plays for row in state.policy.table()] == [row.plays for row in one_by_one.table()]
            assert [row.mean for row in state.policy.table()] == [row.mean for row in one_by_one.table()]
            assert http.get("/readyz").json()["events"] == 3
    with pytest.raises(InvalidValue, match="--weight needs"):  # and not, in silence, a service that knows nothing
        plan_of(MAIN, Source(file, ["item"], ["kind"], weight=0.5), TSC, "refuse")
    other = plan_of(MAIN, replace(source, weight=0.5), TSC, "refuse")
    with pytest.raises(InvalidValue, match="started from other counts"), inside(other, store=tmp_path / "decisions.db"):
        pass
    with inside(other, store=tmp_path / "other.db") as (service, _):
        assert service.engine.states[MAIN].policy["a"].plays == 5
    ts = Plan(plan.arms, Settings(policy="TS"), evidence=plan.evidence, updates_settings=True)
    with inside(ts, store=tmp_path / "decisions.db") as (service, _):  # another policy starts from the same
        assert service.engine.states[MAIN].policy["a"].plays == 10


def test_what_a_policy_cannot_start_from_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    """An event that is left out would start the policy from nothing, and be stored again at every start."""
    rows = {"arms": ["shoes0"], "rewards": [5.0], "plays": [1.0]}
    for settings, told in (
        (TSC, r"cannot come from 1 plays.*--rewards real"),
        (Settings(features={"features": [{"name": "age", "range": [18, 90]}]}), "LinATS learns from contexts"),
    ):
        for _ in range(2):
            plan = Plan(ARMS, settings, evidence=rows)
            with pytest.raises(InvalidValue, match=told), inside(plan, store=tmp_path / "decisions.db"):
                pass
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (service, _):
        assert service.engine.n == 2  # settings and arms


def test_a_service_starts_from_a_past_log(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,kind\na,x\nb,x\nc,y\n")
    (tmp_path / "past.csv").write_text("shown,click\na,1\na,0\nc,1\nb,\n")
    source = Source(
        tmp_path / "items.csv", ["item"], ["kind"], log=tmp_path / "past.csv", log_arm="shown", log_reward="click"
    )
    with inside(plan_of(MAIN, source, TSC, "refuse"), store=tmp_path / "decisions.db") as (service, _):
        policy = service.engine.states[MAIN].policy
        assert [policy[arm].plays for arm in ("a", "b", "c")] == [2, 0, 1]
    (tmp_path / "past.csv").write_text("shown,click\n" + "a,0\n" * 9 + "a,5\n")  # their sum could be that of clicks
    with pytest.raises(InvalidValue, match=r"reward 5 for arm 'a' is outside \[0, 1\]"):
        plan_of(MAIN, source, TSC, "refuse")


# Contexts by name


def test_contexts_by_name_are_checked_and_logged_in_columns_of_their_own(tmp_path: Path) -> None:
    features = parse_context("device=phone|tablet|desktop,age=18..90,returning=bool")
    settings = Settings(policy="LinTSC", features=features, control=0.3)
    visitor = {"device": "phone", "age": 30, "returning": True}
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, http):
        for wrong, name in (({"device": "phone"}, "age"), (visitor | {"age": "old"}, "age"), (None, "device")):
            refused = http.post("/v1/decisions", json={"context": wrong} if wrong else {})
            assert refused.status_code == 422
            assert name in refused.json()["error"]
        for sent, said in (
            ('{"age": NaN}', "feature 'age' is nan"),
            ('{"age": [1]}', "'age' is [1]"),
            ('"x"', "an object"),
        ):
            refused = http.post("/v1/decisions", content=f'{{"context": {sent}}}')
            assert refused.status_code == 422
            assert said in refused.json()["error"]
        play(http, 12, context=visitor)
        flag = http.post(
            "/ofrep/v1/evaluate/flags/main", json={"context": visitor | {"targetingKey": "v", "unknown": [1]}}
        )
        assert flag.status_code == 200, flag.text
        header, first, *_ = http.get("/v1/log", params={"format": "csv"}).text.splitlines()
        assert {"device", "age", "returning"} <= set(header.split(","))
        assert ",phone,30,true," in first
        before = service.engine.states[MAIN].to_bytes()
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, _):
        assert service.engine.states[MAIN].to_bytes() == before


def test_with_contexts_the_default_policy_is_linats_and_it_starts_from_a_log_with_columns_by_name(
    tmp_path: Path,
) -> None:
    settings = Settings(features=parse_context("device=phone|desktop,age=18..90"))
    assert settings.policy == "LinATS"
    (tmp_path / "items.csv").write_text("item,kind\na,x\nb,x\nc,y\n")
    (tmp_path / "past.csv").write_text("shown,click,device,age\na,1,phone,20\na,0,desktop,30\nc,1,phone,40\n")
    source = Source(
        tmp_path / "items.csv", ["item"], ["kind"], log=tmp_path / "past.csv", log_arm="shown", log_reward="click"
    )
    with inside(plan_of(MAIN, source, settings, "refuse"), store=tmp_path / "decisions.db") as (service, http):
        by_hand = settings.build(Tree({"x": ["a", "b"], "y": ["c"]}))
        by_hand.update("a", 1, {"device": "phone", "age": 20})
        by_hand.update("a", 0, {"device": "desktop", "age": 30})
        by_hand.update("c", 1, {"device": "phone", "age": 40})
        visitor = {"device": "phone", "age": 30}
        policy = service.engine.states[MAIN].policy
        assert policy.propensities(visitor) == pytest.approx(by_hand.propensities(visitor), abs=1e-6)
        play(http, 3, context=visitor)
        before = service.engine.states[MAIN].to_bytes()
    with inside(plan_of(MAIN, source, settings, "refuse"), store=tmp_path / "decisions.db") as (service, _):
        assert service.engine.states[MAIN].to_bytes() == before
    (tmp_path / "past.csv").write_text("shown,click,size\na,1,38\na,0,XL\nc,1,40\n")  # levels that look like numbers
    sizes = plan_of(MAIN, source, Settings(features=parse_context("size=38|40|XL")), "refuse")
    assert sizes.evidence is not None
    assert len({tuple(context) for context in sizes.evidence["contexts"]}) == 3


@pytest.mark.parametrize("wrong", ["age", "age=", "age=1..x", "age=1..2,age=3..4", "device=phone"])
def test_features_that_make_no_sense_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidValue):
        Settings(policy="LinTSC", features=parse_context(wrong))


# OpenFeature


def test_openfeature_clients_are_ours(tmp_path: Path) -> None:
    settings = Settings(policy="TSC", sticky=1800.0, control=0.5)
    colour = Plan({"red": [], "blue": []}, Settings(policy="TS"), "colour")
    with inside(Plan(ARMS, settings), colour, store=tmp_path / "decisions.db") as (_, http):
        api.set_provider(OFREPProvider(str(http.base_url).rstrip("/")))
        client = api.get_client()
        context = EvaluationContext(targeting_key="visitor-17")
        details = client.get_string_details(MAIN, "fallback", context)
        assert details.value in ARMS
        assert details.variant == details.value
        assert str(details.reason) == "SPLIT"
        metadata = details.flag_metadata
        known = http.get(f"/v1/decisions/{metadata['decision']}").json()
        assert (known["arm"], known["propensity"], known["group"]) == (
            details.value,
            metadata["propensity"],
            metadata["group"],
        )
        for _ in range(5):  # it keeps its arm, and it is the same decision
            again = client.get_string_details(MAIN, "fallback", context)
            assert again.flag_metadata == metadata
        reward = http.put(f"/v1/decisions/{metadata['decision']}/reward", json={"reward": 1})
        assert reward.json() == {"status": "applied"}
        assert client.get_string_value("nothing", "fallback", context) == "fallback"
        missing = http.post("/ofrep/v1/evaluate/flags/nothing", json={"context": {"targetingKey": "v"}})
        assert (missing.status_code, missing.json()["key"], missing.json()["errorCode"]) == (
            404,
            "nothing",
            "FLAG_NOT_FOUND",
        )
        for body, code in (
            ('{"context": {}}', "TARGETING_KEY_MISSING"),
            ("{", "PARSE_ERROR"),
            ("[]", "INVALID_CONTEXT"),
            ('{"context": {"targetingKey": 7}}', "INVALID_CONTEXT"),
        ):
            refused = http.post("/ofrep/v1/evaluate/flags/main", content=body)
            assert (refused.status_code, refused.json()["errorCode"]) == (400, code)
        everything = http.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": "visitor-17"}})
        flags = {flag["key"]: flag for flag in everything.json()["flags"]}
        assert flags.keys() == {MAIN, "colour"}
        assert flags[MAIN]["value"] == details.value
        assert everything.headers["etag"]


def test_a_unit_keeps_its_arm_only_while_it_may_have_it(tmp_path: Path) -> None:
    settings = Settings(policy="TS", sticky=0.5)
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):
        first = http.post("/v1/decisions", json={"unit": "v"})
        again = http.post("/v1/decisions", json={"unit": "v"})
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        other = http.post("/v1/decisions", json={"unit": "v", "exclude": [first.json()["arm"]]})
        assert other.json()["arm"] != first.json()["arm"]
        assert http.post("/v1/decisions", json={"unit": "v"}).json() == other.json()
        named = http.post("/v1/decisions", json={"unit": "v", "id": "mine"})
        assert (named.status_code, named.json()["id"]) == (201, "mine")
        http.post("/v1/arms", json={"remove": [named.json()["arm"]]})
        assert http.post("/v1/decisions", json={"unit": "v"}).status_code == 201
        time.sleep(0.6)
        assert http.post("/v1/decisions", json={"unit": "v"}).status_code == 201


def test_the_context_of_a_unit_that_keeps_its_arm_is_checked(tmp_path: Path) -> None:
    settings = Settings(policy="LinTS", sticky=1000, features=parse_context("age=18..90"))
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):
        made = http.post("/v1/decisions", json={"unit": "v", "context": {"age": 30}})
        assert http.post("/v1/decisions", json={"unit": "v", "context": {"age": 31}}).json() == made.json()
        for wrong in ({}, {"age": "x"}, {"size": 3}):
            assert http.post("/v1/decisions", json={"unit": "v", "context": wrong}).status_code == 422


def test_a_pause_and_its_end_concern_units_that_keep_their_arms_too(tmp_path: Path) -> None:
    settings = Settings(policy="TS", sticky=1000, control=0.5, control_policy="item:hats0")
    with inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http):

        def arms(units: int = 40) -> list[str]:
            return [http.post("/v1/decisions", json={"unit": f"v{i}"}).json()["arm"] for i in range(units)]

        before = arms()
        assert arms() == before
        assert set(before) > {"hats0"}
        http.post("/v1/pause")
        assert set(arms()) == {"hats0"}
        http.post("/v1/resume")
        assert set(arms()) > {"hats0"}


# What is left to learn


def test_the_report_says_which_item_is_best_and_what_is_left_to_gain(tmp_path: Path) -> None:
    plans = [Plan(ARMS, Settings(policy=name, stop_at=0.05), name) for name in ("TS", "ATS", "UCB1")]
    plans.append(Plan(ARMS, Settings(policy="LinTS", dim=1), "LinTS"))
    plans = [Plan(plan.arms, plan.settings, plan.name, evidence=EVIDENCE) for plan in plans[:2]] + plans[2:]
    with inside(*plans, store=tmp_path / "decisions.db") as (_, http):
        for name in ("TS", "ATS"):
            report = http.get(f"/v1/experiments/{name}/report").json()
            assert report["best"][0]["arm"] == "hats1"
            assert report["best"][0]["chance"] > 0.99
            assert 0 <= report["remaining"]["mean"] <= report["remaining"]["high"] < 0.05
            assert report["done"] is True
            assert report["lift"] is None
        for name in ("UCB1", "LinTS"):
            report = http.get(f"/v1/experiments/{name}/report").json()
            assert (report["best"], report["remaining"], report["done"]) == (None, None, False)
            assert report["sentences"]
            tree = http.get(f"/v1/experiments/{name}/tree").text
            assert "Infinity" not in tree


EVIDENCE = {"arms": list(ARMS), "rewards": [100.0, 100, 100, 100, 900, 100], "plays": [2000.0] * 6}


# Slates


def test_a_slate_has_a_probability_for_each_position(tmp_path: Path) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (_, http):
        slate = http.post("/v1/decisions", json={"k": 6}).json()
        assert sorted(slate["arms"]) == sorted(ARMS)
        assert len(slate["propensities"]) == 6
        assert slate["propensities"][0] == slate["propensity"]
        assert slate["propensities"][-1] == 1  # only one arm is left
        assert http.post("/v1/decisions", json={"k": 7}).status_code == 422
        assert http.put(f"/v1/decisions/{slate['id']}/reward", json={"reward": 1}).status_code == 422
        row = json.loads(http.get("/v1/log").text)
        assert row["propensities"] == slate["propensities"]


def test_a_slate_of_a_catalogue_that_lags_is_as_long_as_what_is_left(tmp_path: Path) -> None:
    """One arm that is gone would make an outage of all requests that name it."""
    with inside(Plan(ARMS, replace(TSC, sticky=1000)), store=tmp_path / "decisions.db") as (_, http):
        for k, known in ((3, ["hats0", "shoes1"]), (2, ["hats0"])):
            asked = {"only": [*known, "gone"], "k": k, "unit": f"v{k}"}
            first, again = (http.post("/v1/decisions", json=asked) for _ in range(2))
            assert (first.status_code, again.status_code) == (201, 200)  # the unit keeps what is left, too
            assert sorted(first.json()["arms"]) == sorted(known)
            assert first.json()["unknown"] == ["gone"]
        assert http.post("/v1/decisions", json={"only": ["hats0", "shoes1"], "k": 3}).status_code == 422
        assert http.post("/v1/decisions", json={"only": ["gone"], "k": 2}).status_code == 422
        none_left = {"only": ["hats0", "gone"], "exclude": ["hats0"], "k": 2}
        assert http.post("/v1/decisions", json=none_left).status_code == 422


def test_requests_count_by_what_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slate by its positions, a bulk evaluation by its experiments: one with more than may wait is refused."""
    with inside(Plan(ARMS, TSC), Plan(ARMS, TSC, "b"), Plan(ARMS, TSC, "c"), store=tmp_path / "d.db") as (_, http):
        assert http.post("/v1/decisions", json={"k": 101}).status_code == 422
        visitor = {"context": {"targetingKey": "v"}}
        monkeypatch.setattr(guard, "MAX_IN_FLIGHT", 3)
        assert http.post("/v1/decisions", json={"k": 3}).status_code == 201
        assert http.post("/ofrep/v1/evaluate/flags", json=visitor).status_code == 200
        refused, done = http.post("/v1/decisions", json=[{"k": 5}, {}]).json()
        assert refused["status"] == 503
        assert done["arm"] in ARMS
        monkeypatch.setattr(guard, "MAX_IN_FLIGHT", 2)
        answer = http.post("/v1/decisions", json={"k": 3})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert http.post("/ofrep/v1/evaluate/flags", json=visitor).status_code == 503


def test_contexts_too_long_for_so_many_arms_are_refused(tmp_path: Path) -> None:
    levels = {"zip": [f"z{i}" for i in range(150)]}
    with inside(Plan(ARMS, TSC), store=tmp_path / "d.db") as (_, http):
        asked: dict[str, Any] = {"arms": {f"a{i}": [] for i in range(30)}, "context": levels}
        answer = http.put("/v1/experiments/slow", json=asked)
        assert answer.status_code == 422
        assert "up to 144 columns, and these have 150" in answer.text
        few = {"arms": {"a": [], "b": []}, "context": {"zip": [f"z{i}" for i in range(300)]}}  # 4 s for a decision
        assert "up to 194 columns" in http.put("/v1/experiments/slow", json=few).text
        del asked["arms"]["a0"], asked["arms"]["a1"], asked["arms"]["a2"], asked["arms"]["a3"], asked["arms"]["a4"]
        assert http.put("/v1/experiments/slow", json=asked).status_code == 201
        more: dict[str, Any] = {"add": {f"a{i}": [] for i in range(5)}}
        assert "LinTSC" in http.post("/v1/experiments/slow/arms", json=more).text
        assert http.patch("/v1/experiments/slow", json={"policy": "LinTSC"}).status_code == 200
        assert http.post("/v1/experiments/slow/arms", json=more).status_code == 200


def test_options_about_late_rewards_need_a_window() -> None:
    for late in ({"learn_late": True}, {"default_reward": 0.0}):
        with pytest.raises(InvalidValue, match="needs reward_window"):
            Settings(**late)


def test_an_experiment_has_a_stream_of_its_own_events(tmp_path: Path) -> None:
    plans = [Plan(ARMS, TSC, name) for name in ("main", "other")]
    with inside(*plans, store=tmp_path / "decisions.db") as (_, http):
        assert http.get("/v1/experiments/nothing/events").status_code == 404
        for name in ("main", "other"):
            http.post(f"/v1/experiments/{name}/decisions", json={"id": f"before-{name}"})
        with http.stream("GET", "/v1/experiments/other/events", headers={"last-event-id": "0"}) as stream:
            lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            seen = [next(lines) for _ in range(3)]  # settings, arms and a decision
            for name in ("main", "other"):
                http.post(f"/v1/experiments/{name}/decisions", json={"id": f"after-{name}"})
            seen.append(next(lines))
        assert {event["experiment"] for event in seen} == {"other"}
        assert [event["id"] for event in seen[2:]] == ["before-other", "after-other"]


@pytest.mark.parametrize("name", ["%2E", "%2E%2E"])
def test_an_experiment_is_not_called_like_a_folder(tmp_path: Path, name: str) -> None:
    with inside(Plan(ARMS, TSC), store=tmp_path / "decisions.db") as (_, http):
        url = httpx.URL(str(http.base_url)).copy_with(raw_path=f"/v1/experiments/{name}".encode())
        assert http.put(url, json={"arms": {"a": []}}).status_code in (404, 422)
        assert len(http.get("/v1/experiments").json()["experiments"]) == 1


# An experiment by its name


def test_an_experiment_is_looked_at_changed_and_deleted_over_http(tmp_path: Path) -> None:
    plans = Plan(ARMS, TSC), Plan({"red": [], "blue": []}, Settings(policy="TS", control=0.2), "colour")
    store, at = tmp_path / "decisions.db", "/v1/experiments/colour"
    with inside(*plans, store=store) as (service, http):
        ids = play(http, 5, at=at)
        looked = http.get(at).json()
        assert looked["settings"] == {"policy": "TS", "control": 0.2}
        assert (looked["arms"], looked["decisions"]) == (2, 5)
        changed = http.patch(at, json={"control": 0.5, "reward_window": "30m"}).json()
        assert changed["changed"] == ["reward_window from none to 1800.0", "control from 0.2 to 0.5"]
        assert http.get(at).json()["settings"] == {"policy": "TS", "control": 0.5, "reward_window": 1800.0}
        assert http.patch(at, json={"control": 0.5}).json()["changed"] == []
        assert http.patch(at, json={"control": None}).json()["changed"] == ["control from 0.5 to 0.0"]
        for wrong in (
            {"control": 2},
            {"reward_window": None, "learn_late": True},
            {"dim": 3},
            {"sticky": "soon"},
            {"rewards": "all"},
        ):
            answer = http.patch(at, json=wrong)
            assert (answer.status_code, "--" in answer.text) == (422, False), answer.text  # no options of a command
        assert "--" not in http.post("/v1/decisions/x/exposure").text
        assert http.patch(at, json={"contrl": 0.5}).status_code == 422
        assert http.patch("/v1/experiments/nobody", json={}).status_code == 404
        until(lambda: not service.engine.is_refolding("colour"))
        assert http.get(f"{at}/decisions/{ids[0]}").status_code == 200
    with inside(*plans, store=store) as (service, http):  # the settings of the last start say nothing new
        assert http.get(at).json()["settings"] == {"policy": "TS", "reward_window": 1800.0}
        assert http.delete(at).json() == {"name": "colour", "status": "deleted"}
        for answer in (http.get(at), http.delete(at), http.post(f"{at}/decisions"), http.patch(at, json={})):
            assert answer.status_code == 404
        assert http.put(at, json={"arms": {"red": []}}).status_code == 409
        assert http.post("/v1/decisions").status_code == 201
    with pytest.raises(InvalidValue, match="was deleted"), inside(*plans, store=store):
        pass
    with inside(plans[0], store=store) as (_, http):
        assert [each["name"] for each in http.get("/v1/experiments").json()["experiments"]] == ["main"]
