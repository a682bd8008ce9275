"""Decisions in the application's own process: what the service knows afterwards, whatever is killed in between."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy import stats

import banditree as bt
from banditree.client import Local, ServiceError
from banditree.client.remote import MAX_WAIT_SECONDS, pause
from banditree.client.spool import Spool
from banditree.errors import BanditreeError, InvalidType, InvalidValue
from banditree.service.app import Service
from banditree.service.lift import in_control
from banditree.service.settings import Plan, Settings
from tests.support.serving import inside, quiet_port, start, until

ARMS = {"s1": ["shoes"], "s2": ["shoes"], "h1": ["hats"], "h2": ["hats"], "h3": ["hats"]}
HALF = Settings(policy="TSC", control=0.5)
At = tuple[Service, httpx.Client, Local]


@pytest.fixture
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[At]:
    settings = getattr(request, "param", HALF)
    with (
        inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (service, http),
        Local(str(http.base_url), folder=tmp_path / "spool") as client,
    ):
        yield service, http, client


def with_settings(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("at", [Settings(**settings)], indirect=True)


def flush(client: Local) -> None:
    assert client.flush(60), client.problem
    assert (client.backlog, client.refused) == (0, 0)
    until(lambda: client.problem is None)


def logged(http: httpx.Client) -> list[dict[str, Any]]:
    return [json.loads(line) for line in http.get("/v1/log").text.splitlines()]


# The same as the service


def test_the_service_knows_what_was_decided(at: At) -> None:
    service, http, client = at
    made = [client.decide(unit=f"u{i}") for i in range(100)]
    made += [client.decide(), client.decide(only=["s1", "gone", "h1"], k=3)]  # of which two are left
    made += [client.decide(k=3), client.decide(only=["s1", "gone", "h1"], exclude=["h1", "gone"])]
    client.reward(made[0]["id"], 1)
    client.reward(made[-2]["id"], True, position=2)
    flush(client)
    for its in made:
        looked = http.get(f"/v1/decisions/{its['id']}").json()
        assert {name: looked[name] for name in its} == its
    assert looked["unknown"] == ["gone"]
    groups = {i: made[i]["group"] for i in range(100)}
    salt = service.engine.salt
    assert groups == {i: "control" if in_control("main", salt, f"u{i}", 0.5) else "policy" for i in range(100)}
    asked = http.post("/v1/decisions", json={"unit": "u0"}).json()
    assert asked.keys() == made[0].keys()
    assert len(logged(http)) == len(made) + 1
    assert http.get(f"/v1/decisions/{made[-2]['id']}").json()["rewards"] == [None, None, 1]


@with_settings(policy="ATS")
def test_arms_are_drawn_with_the_probabilities_that_are_logged(at: At) -> None:
    service, http, client = at
    asked = http.post("/v1/decisions", json=[{}] * 60).json()
    http.post("/v1/rewards", json=[{"id": its["id"], "reward": float(i % 3 == 0)} for i, its in enumerate(asked)])
    policy = service.engine.states["main"].policy
    until(lambda: client._standing.policy.policy.to_bytes() == policy.to_bytes())
    exact = dict(zip(ARMS, policy.propensities().tolist(), strict=True))
    made = [client.decide() for _ in range(3_000)]
    assert {its["arm"]: its["propensity"] for its in made} == pytest.approx(exact, rel=1e-9)

    def tail(chances: Any) -> float:
        seen = np.array([sum(its["arm"] == arm for its in made) for arm in ARMS])
        return float(stats.chisquare(seen, 3_000 * np.asarray(chances) / np.sum(chances)).pvalue)

    assert tail(list(exact.values())) > 1e-6
    assert tail(np.full(5, 0.2)) < 1e-6  # it could have told


def test_it_follows_what_changes(at: At) -> None:
    _, http, client = at
    http.post("/v1/arms", json={"add": {"n1": ["new"]}, "remove": ["s1"]})
    until(lambda: "n1" in client._standing.policy.tree)
    assert {client.decide(exclude=["s1"])["arm"] for _ in range(200)} == ARMS.keys() - {"s1"} | {"n1"}
    http.post("/v1/pause")
    until(lambda: client.decide()["group"] == client.decide()["group"] == client.decide()["group"] == "control", 20)
    assert "propensity_overall" not in until(lambda: client._standing.is_paused and client.decide())
    http.post("/v1/resume")
    until(lambda: not client._standing.is_paused)
    flush(client)


@with_settings(policy="TSC", control=0.5, control_policy="TS")
def test_a_control_policy_that_learns_decides_too(at: At) -> None:
    service, _, client = at
    made = next(its for its in (client.decide() for _ in range(99)) if its["group"] == "control")
    client.reward(made["id"], 1)
    flush(client)
    state = service.engine.states["main"]
    assert state.control is not None
    expected = state.control.to_bytes()
    until(lambda: client._standing.control and client._standing.control.policy.to_bytes() == expected)
    one = client.decide(only=["s1", "h1"])
    with_policy, with_control = (
        state.policy.propensity(one["arm"], only=["s1", "h1"]),
        state.control.propensity(one["arm"], only=["s1", "h1"]),
    )
    assert one["propensity_overall"] == pytest.approx((with_policy + with_control) / 2)


@with_settings(policy="TSC", sticky=60.0)
def test_a_unit_keeps_its_decision(at: At) -> None:
    _, _, client = at
    first = client.decide(unit="u")
    assert all(client.decide(unit="u") == first for _ in range(20))
    assert client.decide(unit="u", exclude=[first["arm"]])["arm"] != first["arm"]
    assert client.decide(unit="u", k=2)["id"] != first["id"]
    flush(client)


def test_contexts_by_name(tmp_path: Path) -> None:
    settings = Settings(features=bt.Features({"device": ["phone", "tablet"], "age": (18, 90)}).to_dict())
    with (
        inside(Plan(ARMS, settings), store=tmp_path / "decisions.db") as (_, http),
        Local(str(http.base_url), folder=tmp_path / "spool") as client,
    ):
        made = client.decide(context={"device": "phone", "age": np.int64(30)})
        with pytest.raises(BanditreeError, match="device"):
            client.decide(context={"age": 30})
        client.reward(made["id"], 1)
        flush(client)
        (row,) = logged(http)
        assert (row["device"], row["age"], row["reward"]) == ("phone", 30, 1)
        until(lambda: client._standing.policy.policy.table(context={"device": "phone", "age": 30})[0].plays == 1)


def test_what_is_wrong_is_said_at_once(at: At) -> None:
    _, http, client = at
    wrong: list[dict[str, Any]] = [{"unit": ""}, {"unit": 7}, {"k": 0}, {"k": 6}, {"only": "s1"}, {"only": ["gone"]}]
    wrong += [{"exclude": list(ARMS)}, {"context": {"device": "phone"}}, {"exclude": [7]}]
    for request in wrong:
        with pytest.raises(BanditreeError):
            client.decide(**request)
    for reward in (3, 10**400, float("nan"), "1", None, [1]):
        with pytest.raises((InvalidValue, InvalidType), match="the decision 'x': reward="):
            client.reward("x", reward)  # type: ignore[arg-type]
    assert client.backlog == 0
    http.get("/v1/log")
    with pytest.raises(ServiceError, match="no experiment 'other'"):
        Local(str(http.base_url), experiment="other", folder=client.folder.parent)


def test_what_the_service_refuses_is_kept_in_a_file(at: At, caplog: pytest.LogCaptureFixture) -> None:
    _, _, client = at
    client.reward("nowhere", 1)
    made = client.decide()
    with caplog.at_level(logging.WARNING, "banditree"):
        assert client.flush(60)
    assert (client.refused, client.backlog) == (1, 0)
    (line,) = (client.folder / "refused.ndjson").read_text().splitlines()
    assert json.loads(line)["id"] == "nowhere"
    assert "there is no decision 'nowhere'" in caplog.text
    assert client.reward(made["id"], 1) is None  # type: ignore[func-returns-value]


@with_settings(policy="TSC", exposure=True)
def test_what_was_seen_is_reported(at: At) -> None:
    service, _, client = at
    seen, _ = client.decide(), client.decide()
    client.expose(seen["id"])
    flush(client)
    assert service.engine.states["main"].moments_at(0)["all"].d == 1


# Killed in between


def test_nothing_is_lost_while_the_service_is_away(tmp_path: Path) -> None:
    port = quiet_port()
    options = ("--port", port, "--policy", "TSC")
    server = start(tmp_path, *options)
    client = Local(server.url, folder=tmp_path / "spool", timeout=2)
    ids = [client.decide()["id"] for _ in range(3)]
    assert client.flush(60)
    server.kill()
    ids += [client.decide()["id"] for _ in range(3)]
    client.reward(ids[0], 1)
    assert not client.flush(0.5)
    assert client.backlog == 4
    assert "did not answer" in str(until(lambda: client.problem))
    client.close(timeout=0.1)
    client = Local(server.url, folder=tmp_path / "spool", timeout=2)  # the application starts again meanwhile
    assert client.backlog == 4
    ids += [client.decide()["id"] for _ in range(3)]
    server = start(tmp_path, *options)
    try:
        flush(client)
        rows = logged(server.http)
        assert {row["id"] for row in rows} == set(ids)
        assert {row["id"]: row["reward"] for row in rows} == dict.fromkeys(ids) | {ids[0]: 1}
        client.close()
    finally:
        server.kill()


def test_a_service_that_stays_away_is_asked_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many decisions wait: requests that fail at once are not repeated at once."""
    server = start(tmp_path, "--port", quiet_port())
    client = Local(server.url, folder=tmp_path / "spool", timeout=2)
    server.kill()
    tries: list[str] = []
    send = client._caller.send

    def counted(method: str, path: str, *rest: Any) -> Any:
        tries.append(path)
        return send(method, path, *rest)

    monkeypatch.setattr(client._caller, "send", counted)
    until(lambda: client._spool.is_due or not client.decide())
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        client.decide()
    client.close(timeout=0.1)
    assert 1 <= tries.count("/batch") <= 10
    assert 0 < pause(10_000) <= MAX_WAIT_SECONDS  # and after hours it still asks


APPLICATION = """
import sys
from banditree.client import Local

client = Local(sys.argv[1], folder=sys.argv[2], timeout=2)
for i in range(100_000):
    made = client.decide(unit=f"u{i}")
    client.reward(made["id"], float(made["arm"] == "h1"))
    print(made["id"], made["arm"], flush=True)
"""


def test_what_was_decided_survives_kill_9_of_the_client_and_of_the_service(tmp_path: Path) -> None:
    options = ("--port", quiet_port(), "--policy", "TSC", "--control", "0.2", "--learn-control")
    spool = tmp_path / "spool"
    server = start(tmp_path, *options)
    said: dict[str, str] = {}
    for _ in range(3):
        command = [sys.executable, "-c", APPLICATION, server.url, str(spool)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as application:
            assert application.stdout is not None
            for line in application.stdout:
                said |= dict([line.split()])
                if len(said) % 400 == 150:
                    server.kill()  # in the middle of a report
                    server = start(tmp_path, *options)
                if len(said) % 400 == 0:
                    application.kill()
                    break
            said |= dict(line.split() for line in application.stdout if line.endswith("\n"))
    try:
        with Local(server.url, folder=spool) as client:
            assert client.flush(60)
            assert (client.backlog, client.refused) == (0, 0)
        rows = logged(server.http)
        arms = {row["id"]: row["arm"] for row in rows}
        earned = {row["id"]: row["reward"] for row in rows if row["reward"] is not None}
        assert len(arms) == len(rows)
        assert said.items() <= arms.items()
        assert said.keys() <= earned.keys() <= arms.keys()
        assert len(arms) - len(said) <= 3  # decided, but not printed: one by each process
        for node in server.http.get("/v1/tree").json()["nodes"]:  # the same as if each had been learned once
            below = [id_ for id_ in earned if not node["children"] and arms[id_] == node["path"][-1]]
            if not node["children"]:
                assert (node["plays"], node["reward"]) == (len(below), sum(earned[id_] for id_ in below))
                assert node["reward"] == (node["plays"] if node["path"][-1] == "h1" else 0)
        assert not list(spool.rglob("*.batch"))
        assert not list(spool.rglob("*.lock"))
    finally:
        server.kill()


# The files


def test_a_damaged_last_line_is_dropped(tmp_path: Path) -> None:
    code = "import os, sys; from pathlib import Path; from banditree.client.spool import Spool;"
    code += 'spool = Spool(Path(sys.argv[1])); [spool.append(b\'d{"id":"%d"}\\n\' % i) for i in range(3)]; os._exit(9)'
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.glob("*.batch")
    whole = left.read_bytes()
    for damaged in (whole[:-3], whole + b"\0" * 40, whole + b'd{"id"\n', whole + b"\0\0\n"):
        left.write_bytes(damaged)
        spool = Spool(tmp_path)
        batch = spool.next()
        assert batch is not None
        assert [json.loads(line[1:])["id"] for line in spool.read(batch)] == list("012")[: damaged.count(b"}")]
        assert spool.waiting == min(damaged.count(b"}"), 3)
        spool.close()  # and is found again
    spool = Spool(tmp_path)
    assert Spool(tmp_path).next() is None  # what a living process waits for is its own
    batch = spool.next()
    assert batch is not None
    spool.drop(batch)
    spool.close()
    assert spool.waiting == 0
    assert not batch.exists()


def test_a_full_disk_is_an_error_and_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    spool.append(b"d{}\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:2]))
    with pytest.raises(BanditreeError, match="the disk is full; nothing was recorded"):
        spool.append(b"d{}\n")
    monkeypatch.undo()
    spool.append(b"r{}\n")
    batch = spool.next()
    assert batch is not None
    assert batch.read_bytes() == b"d{}\nr{}\n"
    assert spool.waiting == 2
    spool.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_draws_and_files_of_its_own(at: At) -> None:
    service, _, client = at
    for _ in range(10):
        client.decide()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            arms = "".join(client.decide(only=None)["arm"] for _ in range(40))
            os.write(writer, arms.encode())
            client.flush(20)
        finally:
            os._exit(0)
    own = "".join(client.decide()["arm"] for _ in range(40))
    os.waitpid(pid, 0)
    its = os.read(reader, 1000).decode()
    os.close(reader)
    os.close(writer)
    assert len(its) == 80
    assert its != own
    client._spool.adopt()
    flush(client)
    assert service.engine.states["main"].decisions == 90


def test_a_client_that_was_closed_says_so(at: At) -> None:
    _, _, client = at
    client.close()
    client.close()
    with pytest.raises(InvalidValue, match="was closed"):
        client.decide()
