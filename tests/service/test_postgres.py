"""Several servers on one PostgreSQL: each decides from its own fold, and any of them takes any reward."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import httpx
import pytest

from banditree.service import engine, replica
from banditree.service.events import MAIN, Event, Kind
from banditree.service.settings import Plan, Settings
from banditree.service.store import open_log
from banditree.service.store_postgres import PostgresLog
from tests.support.databases import Database, postgres, programs
from tests.support.serving import Server, inside, serving, start, until
from tests.support.torture import PLANS, compare, compare_states, torture

pytestmark = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed: apt-get install postgresql")


@pytest.fixture
def database() -> Iterator[Database]:
    with postgres() as started:
        yield started


def tree(server: Server) -> Any:
    return server.http.get("/v1/tree").json()


def counted(server: Server) -> dict[str, int]:
    """The decisions and rewards in the metrics of one process."""
    lines = server.http.get("/metrics").text.splitlines()
    value = {name: int(float(number)) for name, number in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}
    return {
        "decisions": value['banditree_decisions_total{experiment="main"}'],
        "rewards": value['banditree_rewards_total{experiment="main",status="learned"}'],
    }


def test_two_replicas_share_one_log(database: Database, tmp_path: Path) -> None:
    first = start(tmp_path, store=database.address)
    with serving(tmp_path, store=database.address) as second:
        answers = [first.http.post("/v1/decisions", json={"id": f"d{i}"}).json() for i in range(20)]
        for place, answer in enumerate(answers):
            assert second.http.get(f"/v1/decisions/{answer['id']}").json() == answer | {"reward": None}
            got = second.http.put(f"/v1/decisions/{answer['id']}/reward", json={"reward": place % 2})
            assert got.json() == {"status": "applied"}
            again = first.http.put(f"/v1/decisions/{answer['id']}/reward", json={"reward": place % 2})
            assert again.json() == {"status": "duplicate"}
            other = first.http.put(f"/v1/decisions/{answer['id']}/reward", json={"reward": 1 - place % 2})
            assert other.status_code == 409
        assert second.http.post("/v1/decisions", json={"id": "d3"}).json() == answers[3]
        assert second.http.post("/v1/decisions", json={"id": "d3", "k": 2}).status_code == 409
        until(lambda: tree(first) == tree(second))
        assert tree(second)["nodes"][0]["plays"] == 20
        assert counted(first) == {"decisions": 20, "rewards": 0}  # so that sums over processes are right
        assert counted(second) == {"decisions": 0, "rewards": 20}

        first.http.post("/v1/arms", json={"add": {"n1": ["hats"]}, "remove": ["s1"]})
        until(lambda: "n1" in json.dumps(tree(second)))
        assert second.http.post("/v1/decisions", json={"only": ["s1"]}).status_code == 422
        before = tree(first)
        first.kill()
        assert tree(second) == before
        assert second.http.post("/v1/decisions").status_code == 201


def test_groups_experiments_pauses_and_voids_are_the_same_in_every_process(database: Database, tmp_path: Path) -> None:
    options = ("--control", "0.5", "--policy", "TSC")
    with (
        serving(tmp_path, *options, store=database.address) as first,
        serving(tmp_path, *options, store=database.address) as second,
    ):
        groups = [
            {server.http.post("/v1/decisions", json={"unit": f"v{i}"}).json()["group"] for server in (first, second)}
            for i in range(20)
        ]
        assert all(len(group) == 1 for group in groups)
        ids = []
        for place in range(10):
            id_ = first.http.post("/v1/decisions", json={"unit": "bot"}).json()["id"]
            second.http.put(f"/v1/decisions/{id_}/reward", json={"reward": place % 2})
            ids.append(id_)
        assert first.http.post("/v1/void", json={"unit": "bot"}).json() == {"voided": 10}
        until(lambda: tree(second)["nodes"][0]["plays"] == 0, 5)
        assert tree(first) == tree(second)
        assert second.http.post("/v1/void", json={"ids": ids}).json() == {"voided": 0}
        first.http.put("/v1/experiments/new", json={"arms": {"a": [], "b": []}})
        until(lambda: second.http.post("/v1/experiments/new/decisions").status_code == 201)
        first.http.post("/v1/experiments/new/pause")
        until(lambda: second.http.get("/v1/experiments").json()["experiments"][1]["paused"])


def test_a_snapshot_of_what_was_folded_again_says_which_events_it_holds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes after this one has read the log, and before it takes over what was folded again."""
    plans = list(PLANS.values())
    with (
        inside(*plans, store=database.address) as (first, http),
        inside(*plans, store=database.address) as (second, other),
    ):
        for place in range(20):
            http.post("/v1/decisions", json={"id": f"d{place}"})
        until(lambda: second.engine.n == first.engine.n)
        engine, refold = first.engine, first.engine._refold

        def late() -> None:
            if first.engine.refolds.is_ready:
                assert other.post("/v1/decisions").status_code == 201
                first.engine.log.settled(5.0)
                refold()
                engine.snapshots.save(engine.states, engine.n)
            else:
                refold()

        monkeypatch.setattr(first.engine, "_refold", late)
        assert http.post("/v1/void", json={"ids": ["d3"]}).json() == {"voided": 1}
        with closing(open_log(database.address)) as log:
            assert log.load_snapshot(replica.snapshot_key(MAIN, PLANS[MAIN].settings))
            assert compare_states(log, MAIN) == []


def test_a_process_that_starts_may_find_a_snapshot_of_this_very_moment(
    database: Database, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plans = list(PLANS.values())
    with inside(*plans, store=database.address) as (first, http):
        load = PostgresLog.load_snapshot

        def late(log: PostgresLog, key: str) -> Any:
            if key.startswith(MAIN) and not load(log, key):
                http.post("/v1/arms", json={"move": {"hats0": ["shoes"]}})
                monkeypatch.setattr(engine, "SNAPSHOT_EVERY", 1)
                until(lambda: load(log, key))
            return load(log, key)

        monkeypatch.setattr(PostgresLog, "load_snapshot", late)
        with inside(*plans, store=database.address) as (second, _):
            assert "snapshot ignored" not in capfd.readouterr().err
            assert second.engine.states[MAIN].to_bytes() == first.engine.states[MAIN].to_bytes()


@pytest.mark.parametrize("ends", ["with a commit", "without"])
def test_numbers_are_settled_when_nobody_can_fill_a_gap_below(database: Database, ends: str) -> None:
    """Another process stores a later number first, and a transaction of somebody else is older than both."""
    with ExitStack() as opened:
        slow, quick, third = (opened.enter_context(closing(PostgresLog(database.address))) for _ in range(3))
        third.run("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'")
        for log in (slow, quick):
            log.reopen()
        assert slow.begin() == quick.begin() == 0
        first = Event(1, Kind.DECISION, "first", arm="a", body={})
        slow.append([first])
        quick.append([first._replace(id="second")])
        assert third.settled(0.1) == 0  # both are still being stored, and no later transaction has ended
        quick.commit()
        assert [event.id for page in third.pages(0) for event in page] == ["second"]
        assert third.settled(0.1) == 0  # so nobody folds it yet
        with ThreadPoolExecutor(1) as pool:  # what changes all waits for what is being stored
            alone = pool.submit(quick.begin, alone=True)
            until(lambda: third.run("SELECT 1 FROM pg_locks WHERE NOT granted"))
            if ends == "without":
                third.run("SELECT pg_terminate_backend(?)", (slow._connection.info.backend_pid,))
            else:
                slow.commit()
            assert alone.result(30) == 2
        quick.rollback()
        assert third.settled(5.0) == 2
        stored = [event.id for page in third.pages(0) for event in page]
        assert stored == (["second"] if ends == "without" else ["first", "second"])


def test_what_two_processes_store_at_once_is_there_once(database: Database) -> None:
    """The same decision, the same reward, and a unit that keeps its decision: the second process looks again."""
    plan = Plan({f"arm{i}": [] for i in range(50)}, Settings(policy="TS", sticky=1000.0))
    with (
        inside(plan, store=database.address) as (first, one),
        inside(plan, store=database.address) as (second, two),
    ):
        looks = [service.engine.writer._look_up for service in (first, second)]
        barrier = Barrier(2)

        def meet(look: Any) -> Any:
            def look_up(commands: Any) -> Any:
                found = look(commands)
                with suppress(BrokenBarrierError):
                    barrier.wait(0.5)  # both have looked, and neither has stored
                return found

            return look_up

        for service, look in zip((first, second), looks, strict=True):
            vars(service.engine.writer)["_look_up"] = meet(look)
        with ThreadPoolExecutor(2) as pool:

            def both(method: str, path: str, bodies: list[Any]) -> list[httpx.Response]:
                barrier.reset()
                asked = [
                    pool.submit(http.request, method, path, json=body)
                    for http, body in zip((one, two), bodies, strict=True)
                ]
                answers = [each.result(60) for each in asked]
                barrier.abort()
                return answers

            for place in range(5):
                bodies: list[Any] = [{"id": f"d{place}"}] * 2
                answers = both("POST", "/v1/decisions", bodies)
                assert sorted(answer.status_code for answer in answers) == [200, 201]
                assert answers[0].json() == answers[1].json()
                rewards = both("PUT", f"/v1/decisions/d{place}/reward", [{"reward": 0}, {"reward": 1}])
                assert sorted(answer.status_code for answer in rewards) == [200, 409]
                kept = both("POST", "/v1/decisions", [{"unit": f"v{place}"}] * 2)
                assert kept[0].json() == kept[1].json()
                with closing(open_log(database.address)) as log:
                    assert log.settled(5.0) == log.last()
        states = [service.engine.states[MAIN] for service in (first, second)]
        until(lambda: [state.decisions for state in states] == [10, 10])
        assert states[0].to_bytes() == states[1].to_bytes()
        assert states[0].policy[()].plays == 5


def test_while_the_database_is_away_there_is_a_503_and_then_it_goes_on(database: Database, tmp_path: Path) -> None:
    with serving(tmp_path, store=database.address) as server:
        kept = server.http.post("/v1/decisions", json={"id": "before"}).json()
        database.stop()
        try:
            assert server.http.post("/v1/decisions", json={"id": "during"}).status_code == 503
            assert until(lambda: server.http.get("/readyz").status_code == 503)
            assert server.http.get("/v1/decisions/before").status_code == 503
            assert server.http.get("/healthz").status_code == 200
        finally:
            database.start()
        until(lambda: server.http.get("/readyz").status_code == 200)
        assert server.http.get("/v1/decisions/before").json() == kept | {"reward": None}
        assert server.http.post("/v1/decisions", json={"id": "during"}).status_code == 201
        assert server.http.put("/v1/decisions/before/reward", json={"reward": 1}).json() == {"status": "applied"}


def test_10_kills_among_two_replicas_lose_nothing(database: Database) -> None:
    assert torture(database.address, 10, servers=2) == []
    with closing(open_log(database.address)) as log:
        assert compare(log, []) == []
