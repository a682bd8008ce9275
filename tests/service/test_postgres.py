"""Several servers on one PostgreSQL: each decides from its own fold, and any of them takes any reward."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from banditree.service import engine, snapshots
from banditree.service.events import MAIN, Event, Kind
from banditree.service.serve import open_log
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
        refold, save = first.engine._refold, first.engine._save_snapshots

        def late() -> None:
            if first.engine.refolds.is_ready:
                assert other.post("/v1/decisions").status_code == 201
                refold()
                save()
            else:
                refold()

        monkeypatch.setattr(first.engine, "_refold", late)
        assert http.post("/v1/void", json={"ids": ["d3"]}).json() == {"voided": 1}
        with closing(open_log(database.address)) as log:
            assert log.load_snapshot(snapshots.snapshot_key(MAIN, PLANS[MAIN].settings))
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
def test_events_are_visible_in_the_order_of_their_numbers(database: Database, ends: str) -> None:
    """Another process waits for the end of the log, whatever the database's own default is, and leaves no gap."""
    with ExitStack() as opened:
        first, second, third = (opened.enter_context(closing(PostgresLog(database.address))) for _ in range(3))
        third.run("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'")
        for log in (first, second):
            log.reopen()
        n = first.begin()
        first.append([Event(1, Kind.PAUSE, n=n + 1)])
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(second.begin)
            until(lambda: third.run("SELECT 1 FROM pg_locks WHERE NOT granted"))
            assert third.last() == n
            assert list(third.pages(n)) == []
            if ends == "without":
                third.run("SELECT pg_terminate_backend(?)", (first._connection.info.backend_pid,))
            else:
                first.commit()
                n += 1
            assert waiting.result(30) == n
        assert [event.n for page in second.pages(0) for event in page] == list(range(1, n + 1))


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
