"""What attackers, unlucky clocks, paused machines and damaged files can do to the service: nothing that lasts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from banditree.service import stream, views
from banditree.service.engine import Engine
from banditree.service.events import MAIN, Clock, Event, Kind, from_iso, now
from banditree.service.replica import snapshot_key, without_collecting
from banditree.service.settings import Plan, Settings
from banditree.service.store import StoreUnavailable, open_log
from tests.support.databases import postgres, programs
from tests.support.serving import ITEMS, Server, holding, inside, items, serving, start, until

HEAD = b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\n"
TREE = {"a": ["x"], "b": ["x"], "c": ["y"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("attacked")) as attacked:
        yield attacked


def running(store: Path | str, settings: Settings | None = None, tree: dict[str, list[str]] = TREE) -> Engine:
    """An engine on a store, in this process."""
    engine = Engine(open_log(str(store)))
    engine.start([Plan(tree, settings or Settings(policy="TSC"))])
    return engine


def decision_event(id_: str, at: int, arm: str = "a") -> Event:
    body = {"request": {}, "arms": [arm], "path": [*TREE[arm], arm], "propensity": 0.5, "steps": [0.5]}
    return Event(at, Kind.DECISION, id_, arm=arm, body=body | {"policy": 1, "tree": 1})


def append(store: Path | str, events: list[Event]) -> None:
    with closing(open_log(str(store))) as log:
        log.begin(alone=True)
        log.append(events)
        log.commit()


# Rewards that cannot be folded


@pytest.mark.parametrize(
    "options", [("--reward-sd", "1"), ("--rewards", "real"), ("--policy", "UCB1"), ("--policy", "LinTS", "--dim", "1")]
)
def test_a_reward_that_cannot_be_learned_is_refused_before_it_is_stored(tmp_path: Path, options: Any) -> None:
    asked = {"context": [1.0]} if "--dim" in options else {}
    with serving(tmp_path, *options) as server:
        id_ = server.http.post("/v1/decisions", json=asked).json()["id"]
        refused = server.http.put(f"/v1/decisions/{id_}/reward", json={"reward": 1e101})
        assert refused.status_code == 422
        accepted = server.http.put(f"/v1/decisions/{id_}/reward", json={"reward": 1})
        assert accepted.json() == {"status": "applied"}


def test_a_log_with_an_event_that_does_not_fit_starts_without_it_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "decisions.db"
    running(store, Settings(policy="TSC", reward_sd=1.0)).stop()
    events = [decision_event("d1", now()), decision_event("d2", now())]
    events += [
        Event(now(), Kind.REWARD, id_, arm="a", value=value, learned=True) for id_, value in (("d1", 1e101), ("d2", 1))
    ]
    append(store, events)
    engine = running(store, Settings(policy="TSC", reward_sd=1.0))
    assert engine.states[MAIN].policy["a"].plays == 1
    engine.stop()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [left_out] = [line for line in lines if line["event"] == "event left out"]
    assert left_out["n"] == 5  # after settings, arms and two decisions


# Clocks


def test_default_rewards_do_not_depend_on_the_order_of_clocks(tmp_path: Path) -> None:
    """Every other decision comes from a process whose clock is one second ahead."""
    store = tmp_path / "decisions.db"
    settings = Settings(policy="TSC", reward_window=0.2, default_reward=0.0)
    running(store, settings).stop()
    time_now = now()
    append(store, [decision_event(f"d{i}", time_now + (i % 2) * 1_000_000) for i in range(100)])
    engine = running(store, settings)
    state = engine.states[MAIN]
    until(lambda: state.policy["a"].plays == 100, 30)
    engine.stop()


def test_a_clock_that_was_set_back_over_a_restart_loses_no_default_reward(tmp_path: Path) -> None:
    store = tmp_path / "decisions.db"
    settings = Settings(policy="TSC", reward_window=0.1, default_reward=0.0)
    engine = running(store, settings)
    engine.stop()
    append(store, [decision_event("ahead", now() + 1_500_000)])
    for _ in range(2):  # the first start finds it not yet due, and stores a snapshot; the second must not pass it by
        engine = running(store, settings)
        time.sleep(0.6)
        engine.stop()
    engine = running(store, settings)
    until(lambda: engine.states[MAIN].policy["a"].plays == 1, 30)
    engine.stop()


DAY = 86_400_000_000  # in microseconds


class Machine:
    """A machine whose clock somebody sets; its monotonic clock nobody can set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed, self.wrong_by = 0, 0
        monkeypatch.setattr("banditree.service.events.monotonic", lambda: self.passed)
        self.clock = Clock(self.true)

    @property
    def true(self) -> int:
        return 10**15 + self.passed

    def tell(self, seconds: float, step: float = 0.1) -> list[int]:
        """Let time pass, and ask for it from time to time."""
        told = []
        for _ in range(round(seconds / step)):
            self.passed += round(step * 1e6)
            told.append(self.clock.now(self.true + self.wrong_by))
        return told


@pytest.mark.parametrize("jump", [30 * DAY, -30 * DAY])
def test_a_clock_that_jumps_for_a_second_moves_time_by_a_tenth_of_it(
    monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    machine = Machine(monkeypatch)
    told = machine.tell(5)
    machine.wrong_by = jump
    told += machine.tell(1)
    assert abs(told[-1] - machine.true) <= 110_000
    machine.wrong_by = 0
    told += machine.tell(5)
    assert told[-1] == machine.true
    assert min(b - a for a, b in pairwise(told)) >= 90_000  # it never stands still


def test_a_clock_that_is_set_right_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.wrong_by = 10_000_000
    assert machine.tell(90)[-1] < machine.true + machine.wrong_by
    assert machine.tell(20)[-1] == machine.true + machine.wrong_by


def test_while_the_clock_is_wrong_decisions_have_times_and_default_rewards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(policy="TSC", reward_window=0.3, default_reward=0.0)
    with inside(Plan(TREE, settings), store=tmp_path / "decisions.db") as (service, http):
        began = now()
        monkeypatch.setattr("banditree.service.store.now", lambda: now() + 30 * DAY)
        told = [http.post("/v1/decisions").json()["at"] for _ in range(20)]
        times = [from_iso(text) for text in told]
        assert len(set(times)) == 20
        assert began - 60_000_000 < min(times) <= max(times) < now() + 60_000_000
        until(lambda: service.engine.states[MAIN].policy[()].plays == 20, 30)


@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed: apt-get install postgresql")
def test_processes_on_postgresql_go_by_the_clock_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is ten minutes ahead would give default rewards ten minutes early."""
    monkeypatch.setattr("banditree.service.events.now", lambda: now() + 600_000_000)
    monkeypatch.setattr("banditree.service.store.now", lambda: now() + 600_000_000)
    with postgres() as database, closing(open_log(database.address)) as log:
        log.settled()
        assert abs(log.now() - now()) < 5_000_000


# A process that is paused while it holds the end of the log


@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed: apt-get install postgresql")
def test_a_paused_process_loses_its_turn_and_nothing_else(tmp_path: Path) -> None:
    with postgres() as database, serving(tmp_path, store=database.address) as server:
        server.http.post("/v1/decisions", json={"id": "before"})
        with closing(open_log(database.address)) as paused:
            paused.begin(alone=True)  # and then its machine is paused
            began = time.monotonic()
            assert server.http.post("/v1/decisions", json={"id": "during"}).status_code == 201
            assert time.monotonic() - began < 9
            with pytest.raises(StoreUnavailable):  # it comes back: its turn has passed, and it stores nothing
                paused.append([decision_event("doubled", now())])
            paused.reopen()
        assert server.http.get("/v1/decisions/during").status_code == 200
        assert server.http.get("/v1/decisions/doubled").status_code == 404


# Memory


def test_unknown_methods_and_paths_share_one_label(tmp_path: Path) -> None:
    with inside(Plan(TREE, Settings(policy="TSC")), store=tmp_path / "decisions.db") as (service, http):
        for number in range(30):
            http.request(("PROPFIND", "MKCOL")[number % 2], f"/v1/decisions/{number}/reward")
            http.get(f"/v1/experiments/main/decisions/{number}")
            http.get(f"/nowhere/{number}")
        assert set(service.metrics.requests) == {
            ("other", "/v1/decisions/{id}/reward", 405),
            ("GET", "/v1/decisions/{id}", 404),
            ("GET", "other", 404),
        }


def test_a_client_that_hung_up_is_not_counted_as_a_failure(tmp_path: Path) -> None:
    with inside(Plan(TREE, Settings(policy="TSC")), store=tmp_path / "decisions.db") as (service, http):
        with holding(service.engine):
            with pytest.raises(httpx.ReadTimeout):
                http.post("/v1/decisions", timeout=0.5)
            time.sleep(0.3)
        until(lambda: ("POST", "/v1/decisions", 499) in service.metrics.requests)
        assert service.engine.states[MAIN].decisions == 0


@pytest.mark.parametrize(
    "query",
    [
        *("log?from=3", "report?x=", "experiments/main/tree?depth=a", "log?limit=2&limit=3"),
        *("log?limit=0", "log?limit=2147483648", "log?after=-5", "log?after=9223372036854775808"),
    ],
)
def test_query_parameters_that_mean_nothing_are_refused(server: Server, query: str) -> None:
    assert server.http.get(f"/v1/{query}").status_code == 422


def test_a_listener_that_never_reads_costs_little() -> None:
    """Its queue is bounded in bytes, and what it missed is read in pages that are bounded in bytes."""
    body: dict[str, Any] = {"request": {}, "arms": ["a" * 1000] * 100, "path": ["a"], "propensity": 1.0, "steps": [1.0]}
    large = [Event(0, Kind.DECISION, f"d{n}", arm="a", body=body, n=n) for n in range(1, 201)]  # 100 kB each
    small = [decision_event(f"d{n}", 0)._replace(n=n) for n in range(201, 2001)]

    async def listen() -> None:
        hub = stream.Hub()
        reads = 0

        async def read(after: int, most: int) -> list[Event]:
            nonlocal reads
            reads += 1
            return (large + small)[after : after + most]

        slow, missed = hub.listen(None, read), hub.listen(0, read)
        await anext(slow)
        await anext(missed)
        hub.send(large)
        await asyncio.sleep(0)
        [queue, _] = hub._listeners
        assert queue.is_closed
        assert not queue.texts
        with pytest.raises(StopAsyncIteration):
            await anext(slow)
        pages = [await anext(missed)]
        while f"id: {small[-1].n}\n" not in pages[-1]:
            pages.append(await anext(missed))
        assert max(len(page) for page in pages) < 3 * stream.PAGE_BYTES
        assert sum(page.count("event: ") for page in pages) == 2000
        assert reads < 250  # small events come many at a time

    asyncio.run(listen())


def test_the_log_is_read_as_fast_as_its_client_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not read costs a few pages of memory, and a row a few microseconds."""
    store, rows = tmp_path / "decisions.db", 10_000
    running(store).stop()
    long = decision_event("", now())
    long = long._replace(body=(long.body or {}) | {"path": ["x" * 2000, "a"]})
    append(store, [long._replace(id=f"{place:08d}") for place in range(rows)])
    pages, look_up = list[int](), views.LogReader._later

    def counted(reader: views.LogReader, ids: Any) -> Any:
        pages.append(len(ids))
        return look_up(reader, ids)

    monkeypatch.setattr(views.LogReader, "_later", counted)
    with inside(Plan(TREE, Settings(policy="TSC")), store=store) as (service, http):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((http.base_url.host, http.base_url.port))
            client.sendall(b"GET /v1/log HTTP/1.1\r\nhost: localhost\r\n\r\n")
            until(lambda: pages)
            time.sleep(1.5)
            assert sum(pages) <= 0.7 * rows  # of 20 MB; the system keeps up to 6 MB of them for the two sockets
            assert http.post("/v1/decisions").status_code == 201  # and nobody waits
        times = []
        with without_collecting():  # the objects of other tests, which are not the reader's
            for _ in range(5):
                reader = views.LogReader(service.engine.log.reading(), service.engine.states[MAIN], until=rows)
                began = time.thread_time()  # the service goes on in other threads
                n = sum(page.count(b"\n") for page in reader.ndjson(0))
                times.append((time.thread_time() - began) / n)
        assert min(times) < 45e-6  # 8 microseconds on a quiet machine, and 90 before


# Pages of other sites


def test_a_page_of_another_site_is_refused(server: Server) -> None:
    own = server.url.removeprefix("http://")
    before = server.http.get("/readyz").json()["events"]
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"http://{own}.evil.example"):
        headers = {"origin": origin, "content-type": "text/plain"}
        refused = server.http.post("/v1/arms", content='{"remove": ["s1"]}', headers=headers)
        assert refused.status_code == 403, origin
        assert server.http.get("/v1/tree", headers=headers).status_code == 403
    assert server.http.get("/readyz").json()["events"] == before
    assert server.http.post("/v1/decisions", headers={"origin": server.url}).status_code == 201
    assert server.http.post("/v1/decisions").status_code == 201


def test_a_host_that_is_not_ours_is_refused(server: Server) -> None:
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        assert server.http.get("/v1/tree", headers={"host": host}).status_code == 400, host
    for host in ("localhost", "127.0.0.1:9", "[::1]:8000", "LOCALHOST:1"):
        assert server.http.get("/v1/tree", headers={"host": host}).status_code == 200, host


def test_a_host_can_be_allowed(tmp_path: Path) -> None:
    with serving(tmp_path, "--allow-host", "shop.example") as server:
        assert server.http.get("/v1/tree", headers={"host": "shop.example:80"}).status_code == 200
        assert server.http.get("/v1/tree", headers={"host": "shop.example.evil"}).status_code == 400


def test_no_redirect_follows_the_host_header(server: Server) -> None:
    assert server.http.get("/v1/tree/", follow_redirects=False).status_code == 404


def test_the_page_loads_nothing_but_itself(server: Server) -> None:
    policy = server.http.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


# Too much


def test_more_requests_than_can_wait_are_refused_at_once(tmp_path: Path) -> None:
    """And those whose clients have gone are not decided."""
    store, release = tmp_path / "decisions.db", tmp_path / "release"
    server = start(tmp_path, command=(sys.executable, "-c", _BUSY.format(release=str(release))), store=str(store))
    try:
        url = server.url.removeprefix("http://")
        host, port = url.split(":")
        with ExitStack() as opened:
            impatient = []
            for _ in range(40):  # ten wait for the engine, which is at work on the first; the rest is refused
                client = opened.enter_context(socket.create_connection((host, int(port))))
                client.sendall(b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
                impatient.append(client)
            time.sleep(1.0)
            refused = 0
            for client in impatient:
                client.setblocking(False)
                try:
                    text = client.recv(4096)
                except BlockingIOError:
                    continue
                assert b" 503 " in text
                assert b"retry-after: 1" in text.lower()
                refused += 1
            assert 25 <= refused <= 35
        time.sleep(1.0)  # the server sees that they have gone while the engine is still at work
        release.touch()
        time.sleep(0.5)
        assert server.http.get("/readyz").json()["events"] <= 3  # the catalogue, and what was under way
        with ThreadPoolExecutor(8) as pool:  # the places of those that have gone are free again
            codes = pool.map(lambda _: httpx.post(server.url + "/v1/decisions", trust_env=False).status_code, range(24))
        assert set(codes) == {201}
    finally:
        server.kill()


_BUSY = """
import pathlib, time
from banditree.service import guard
from banditree.service.commands import Decide
guard.MAX_IN_FLIGHT = 10
decide, waited = Decide.run, []
def slow(self, *args):
    if not waited:
        waited.append(1)
        while not pathlib.Path({release!r}).exists():
            time.sleep(0.01)
    return decide(self, *args)
Decide.run = slow
from banditree.cli.main import main
import sys
sys.argv[1:1] = ["serve"]
main()
"""


_MAIN = 'from banditree.cli.main import main\nimport sys\nsys.argv[1:1] = ["serve"]\nmain()\n'


def test_half_sent_requests_take_no_places_among_those_that_wait(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "from banditree.service import guard\nguard.MAX_IN_FLIGHT = 10\n" + _MAIN)
    with serving(tmp_path, command=command) as server, ExitStack() as opened:
        host, port = server.url.removeprefix("http://").split(":")
        for _ in range(20):
            client = opened.enter_context(socket.create_connection((host, int(port))))
            client.sendall(HEAD + b"content-length: 9\r\n\r\n{")
        assert server.http.post("/v1/decisions").status_code == 201
        client.sendall(b'"k": 1 }')
        assert client.recv(4096).startswith(b"HTTP/1.1 201 ")


# Damaged files


def damage(data: bytes) -> dict[str, bytes | str]:
    middle = len(data) // 2
    return {
        "empty": b"",
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "noise": os.urandom(200),
        "text": "text",
    }


@pytest.mark.parametrize(
    "how", ["empty", "cut", "flipped", "noise", "text", "other policy", "other log", "other tree", "count", "ahead"]
)
def test_a_snapshot_that_does_not_fit_the_log_is_ignored(tmp_path: Path, how: str) -> None:
    store, settings = tmp_path / "decisions.db", Settings(policy="TSC")
    running(store).stop()
    events = [decision_event(f"d{i}", now()) for i in range(20)]
    events += [Event(now(), Kind.REWARD, f"d{i}", arm="a", value=1.0, learned=True) for i in range(20)]
    append(store, events)
    engine = running(store)
    whole = engine.states[MAIN].to_bytes()
    engine.stop()
    key = snapshot_key(MAIN, settings)
    with closing(sqlite3.connect(store)) as database:
        n, data = database.execute("SELECT n, data FROM banditree_snapshots WHERE settings = ?", (key,)).fetchone()
        if how == "other policy":
            other = running(tmp_path / "other.db", Settings(policy="TS"))
            data = other.states[MAIN].to_bytes()
            other.stop()
        elif how == "other tree":  # with as many events
            moved = TREE | {"b": ["y"]}
            running(tmp_path / "other.db", tree=moved).stop()
            append(tmp_path / "other.db", events)
            other = running(tmp_path / "other.db", tree=moved)
            data = other.states[MAIN].to_bytes()
            other.stop()
        elif how == "other log":
            other = running(tmp_path / "other.db")
            other.stop()
            append(tmp_path / "other.db", [decision_event(f"e{i}", now()) for i in range(40)])
            other = running(tmp_path / "other.db")
            data = other.states[MAIN].to_bytes()
            other.stop()
        else:
            data = damage(data).get(how, data)
            n += {"count": -5, "ahead": 7}.get(how, 0)
        database.execute("UPDATE banditree_snapshots SET n = ?, data = ? WHERE settings = ?", (n, data, key))
        database.commit()
    engine = running(store)
    assert engine.states[MAIN].to_bytes() == whole
    engine.stop()


@pytest.mark.parametrize("name", ["decisions.db", "decisions.db-wal"])
def test_a_store_that_is_deleted_while_it_runs_is_noticed(tmp_path: Path, name: str) -> None:
    server = start(tmp_path)
    try:
        server.http.post("/v1/decisions")
        (tmp_path / name).unlink()
        until(lambda: server.http.get("/readyz").status_code == 503)
        assert server.http.post("/v1/decisions").status_code == 503
        time.sleep(0.6)
        assert server.http.get("/readyz").status_code == 503  # it does not recover by itself
        assert "was deleted" in server.http.get("/v1/log").json()["error"]
        assert not (tmp_path / name).exists()
    finally:
        server.kill()


def test_a_symbolic_link_does_not_fool_the_lock(tmp_path: Path) -> None:
    with closing(open_log(str(tmp_path / "decisions.db"))):
        (tmp_path / "link.db").symlink_to(tmp_path / "decisions.db")
        with pytest.raises(ValueError, match="another banditree process"):
            open_log(str(tmp_path / "link.db"))


# Another catalogue


def test_another_catalogue_is_refused_until_one_says_what_to_do_with_it(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.http.post("/v1/arms", json={"add": {"n1": ["hats"]}})
    with serving(tmp_path) as server:  # the file says nothing new: what was changed through the service stays
        assert "n1" in server.http.get("/v1/arms").json()["arms"]
    items(tmp_path, ITEMS.replace("s1,shoes,low\n", "").replace("s2,shoes,low", "s2,hats,low") + "z9,gloves,high\n")
    with pytest.raises(AssertionError, match=r"1 item new.*1 item moved.*2 items gone"):
        start(tmp_path)
    with serving(tmp_path, "--keep-catalogue") as server:
        assert "s1" in server.http.get("/v1/arms").json()["arms"]
    with serving(tmp_path, "--update-catalogue") as server:
        arms = server.http.get("/v1/arms").json()["arms"]
        assert arms["z9"] == ["gloves", "high"]
        assert arms["s2"] == ["hats", "low"]
        assert not {"s1", "n1"} & set(arms)
    with serving(tmp_path) as server:
        assert server.http.get("/v1/arms").json()["arms"] == arms


def test_names_with_tabs_can_be_named(tmp_path: Path) -> None:
    items(tmp_path, 'item,kind,sort\n"a\tb",k,l\nc,k,l\n')
    with serving(tmp_path) as server:
        assert server.http.post("/v1/decisions", json={"only": ["a\tb"]}).json()["arm"] == "a\tb"
        assert server.http.post("/v1/arms", json={"remove": ["a\tb"]}).json()["removed"] == 1


def test_a_large_and_deep_tree_is_listed_in_parts(tmp_path: Path) -> None:
    """19,000 arms 50 levels deep took 43 seconds."""
    from banditree.service import views
    from banditree.tree import Tree

    paths = [(*(f"l{d}-{i >> max(0, 14 - d)}" for d in range(49)), f"a{i}") for i in range(19_000)]
    policy = Settings().build(Tree.from_paths(paths))
    began = time.process_time()
    listing = views.nodes(policy, None)
    assert time.process_time() - began < 10
    assert len(listing["nodes"]) == views.MAX_NODES
    assert listing["left_out"] > 0
    below = views.nodes(policy, 1, listing["nodes"][1]["path"])
    assert below["left_out"] == 0
    assert len(below["nodes"]) == 1 + below["nodes"][0]["children"]


# Many clients


def test_32_clients_get_what_they_ask_for(server: Server) -> None:
    def use(number: int) -> int:
        with httpx.Client(base_url=server.url, timeout=120, trust_env=False) as http:
            for turn in range(5):
                id_ = http.post("/v1/decisions", json={"id": f"c{number}-{turn}", "exclude": ["s1"]}).json()["id"]
                assert http.put(f"/v1/decisions/{id_}/reward", json={"reward": 1}).json() == {"status": "applied"}
        return number

    with ThreadPoolExecutor(32) as pool:
        assert sum(pool.map(use, range(32))) == sum(range(32))
