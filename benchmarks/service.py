"""How fast `banditree serve` decides, beside a bare FastAPI endpoint, and `Local` in the application's process.

All servers run at the same time and take turns under load, so that what else the machine does hits them alike. The
clients are one thread that only sends and receives, because it shares the processor with the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from banditree.service.serve import serve
from banditree.service.settings import Plan, Settings
from tools.pages.markdown import Table

CONNECTIONS = 32
ROUNDS = 5
SERVED = ("TSC", 100, 10), ("TSC", 10_000, 100), ("ATS", 100, 10), ("ATS", 1000, 32), ("ATS", 10_000, 100)
SOLD_OUT = ("ATS", 1000, 32)  # also asked without three items, and with items that all earn the same
RATES = np.random.default_rng(0).beta(1, 15, 10_000).tolist()  # how often each item is clicked
BARE = "bare FastAPI"
PLAIN = "bare FastAPI without httptools and uvloop"
FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Measured:
    """Requests answered per second and the processor time of each, by round; and how long decisions took."""

    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) * 1000


@dataclass(frozen=True)
class Asking:
    """How the clients ask: each decision followed by its reward or not, with three exclusions or not."""

    rewards: bool = False
    excludes: bool = False
    alike: bool = False  # all items always earn 1, so that none is ever found to be better

    def decision(self) -> bytes:
        gone = [f"item-{random.randrange(SOLD_OUT[1])}" for _ in range(3)]
        return request(b"POST /v1/decisions", json.dumps({"exclude": gone}).encode() if self.excludes else b"")

    def reward(self, answer: bytes) -> bytes:
        decision = json.loads(answer)
        clicked = self.alike or random.random() < RATES[int(decision["arm"].removeprefix("item-"))]
        return request(b"PUT /v1/decisions/%s/reward" % decision["id"].encode(), b'{"reward": %d}' % clicked)


def request(line: bytes, body: bytes) -> bytes:
    return b"%s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (line, len(body), body)


def catalogue(arms: int, categories: int) -> dict[str, list[str]]:
    return {f"item-{i}": [f"category-{i % categories}"] for i in range(arms)}


def run_bare(port: int, **options: Any) -> None:
    """A FastAPI application with one endpoint that returns a constant."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    answer = {"id": "0" * 32, "arm": "item-1", "arms": ["item-1"], "propensity": 0.01}

    @app.post("/v1/decisions")
    async def constant() -> dict[str, Any]:
        return answer

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False, **options)


def run_ours(port: int, policy: str, arms: int, categories: int, store: str) -> None:
    settings = Settings(policy=policy)
    with Path("/dev/null").open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        serve([Plan(catalogue(arms, categories), settings)], store=store, host="127.0.0.1", port=port)


@contextmanager
def running(target: Any, *args: Any, **options: Any) -> Iterator[tuple[int, int]]:
    """A server process; gives its port and its number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = FORKS.Process(target=target, args=(port, *args), kwargs=options, daemon=True)
    process.start()
    for _ in range(3000):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.02)
    try:
        yield port, process.pid or 0
    finally:
        process.terminate()
        process.join(30)


class Client:
    """One connection: asks for one decision after another, as quickly as they are answered."""

    def __init__(self, port: int, asking: Asking, times: list[float]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asking, self.times, self.answered, self.got, self.has_decided = asking, times, 0, b"", True
        self.ask()

    def ask(self, answer: bytes = b"") -> None:
        """Send the next request: the reward of the decision that was answered, or for a decision."""
        self.has_decided = not (self.has_decided and answer and self.asking.rewards)
        message = self.asking.decision() if self.has_decided else self.asking.reward(answer)
        self.began = time.perf_counter()
        self.socket.send(message)

    def receive(self) -> bytes:
        """Return the body of an answer, if all of it has arrived."""
        self.got += self.socket.recv(65536)
        head, end, body = self.got.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return b""
        assert head.startswith(b"HTTP/1.1 20"), self.got
        if self.has_decided:
            self.times.append(time.perf_counter() - self.began)
        self.got = b""
        self.answered += 1
        return body


def load(server: tuple[int, int], into: Measured, asking: Asking, seconds: float) -> None:
    """Put a server under load from all connections at once."""
    load_all([server], into, asking, seconds)


def load_all(servers: Sequence[tuple[int, int]], into: Measured, asking: Asking, seconds: float) -> None:
    """Put servers under load, with the connections spread over them."""
    began = sum(cpu_seconds(process) for _, process in servers)
    with selectors.DefaultSelector() as selector:
        clients = [Client(servers[place % len(servers)][0], asking, into.times) for place in range(CONNECTIONS)]
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        end = time.perf_counter() + seconds
        while selector.get_map():
            for key, _ in selector.select():
                if answer := key.data.receive():
                    if time.perf_counter() < end:
                        key.data.ask(answer)
                    else:
                        selector.unregister(key.fileobj)
                        key.data.socket.close()
    answered = sum(client.answered for client in clients)
    into.rates.append(answered / seconds)
    into.cpu.append((sum(cpu_seconds(process) for _, process in servers) - began) / answered)


def cpu_seconds(process: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def decisions(folder: Path, seconds: float) -> Table:
    """Requests per second and the times of decisions: decisions alone, and each followed by its reward."""
    loads: dict[str, tuple[tuple[int, int], Asking]] = {}
    with ExitStack() as servers:
        loads[BARE] = servers.enter_context(running(run_bare)), Asking()
        loads[PLAIN] = servers.enter_context(running(run_bare, http="h11", loop="asyncio")), Asking()
        for policy, arms, categories in SERVED:
            ours = run_ours, policy, arms, categories
            server = servers.enter_context(running(*ours, str(folder / f"{policy}-{arms}.db")))
            name = f"{policy}, {arms:,} arms in {categories} categories"
            loads[name] = server, Asking()
            loads[f"{name}, with rewards"] = server, Asking(rewards=True)
            if (policy, arms, categories) == SOLD_OUT:
                what = f"{name}, with rewards and three exclusions"
                loads[what] = server, Asking(rewards=True, excludes=True)
                another = servers.enter_context(running(*ours, str(folder / "alike.db")))
                loads[f"{what}, all items alike"] = another, Asking(rewards=True, excludes=True, alike=True)
        for server, asking in loads.values():
            load(server, Measured(), asking, min(1.0, seconds))  # some evidence to decide by
        found = {name: Measured() for name in loads}
        for _ in range(ROUNDS):
            for name, (server, asking) in loads.items():
                load(server, found[name], asking, seconds)
    return table(found)


def table(found: dict[str, Measured]) -> Table:
    """Compare with the bare endpoint round by round, because what else the machine does changes."""
    rows = []
    base = found[BARE]
    for name, it in found.items():
        share = median(rate / bare for rate, bare in zip(it.rates, base.rates, strict=True))
        late, bare_late = it.quantile(0.99), base.quantile(0.99)
        rows.append(
            (
                name,
                f"{median(it.rates):,.0f}",
                f"{share:.2f}",
                f"{median(it.cpu) * 1e6:.0f}",
                f"{it.quantile(0.5):.1f}",
                f"{late:.1f}",
                f"{late / bare_late:.1f}",
            )
        )
    return Table(("server", "requests/s", "of bare", "CPU, µs", "median, ms", "p99, ms", "p99 of bare"), rows)


def replicas(seconds: float, rounds: int = ROUNDS) -> list[str]:
    """Requests per second of three processes on one PostgreSQL, beside those of one, and what they wait for."""
    from tests.support.databases import Database, postgres

    policy, arms, categories = SOLD_OUT
    found = {n: Measured() for n in (1, 3)}
    database_cpu: dict[int, list[float]] = {n: [] for n in found}
    addresses: dict[int, str] = {}
    waits: dict[int, Counter[str]] = {n: Counter() for n in found}

    def measure(database: Database, servers: list[tuple[int, int]], n: int) -> None:
        began = database_seconds(database.folder)
        with watching(addresses[n], waits[n]):
            load_all(servers, found[n], Asking(rewards=True), seconds)
        database_cpu[n].append((database_seconds(database.folder) - began) / (found[n].rates[-1] * seconds))

    with postgres() as database, ExitStack() as opened:
        groups = {}
        for n in found:
            address = addresses[n] = database.new(f"replicas{n}")
            run = run_ours, policy, arms, categories, address
            groups[n] = [opened.enter_context(running(*run)) for _ in range(n)]
            load_all(groups[n], Measured(), Asking(rewards=True), min(1.0, seconds))
        for _ in range(rounds):
            for n, servers in groups.items():
                measure(database, servers, n)
    one, three = (median(it.rates) for it in found.values())
    share = median(b / a for a, b in zip(found[1].rates, found[3].rates, strict=True))
    lines = [f"PostgreSQL, {policy} with {arms:,} arms and rewards, {CONNECTIONS} connections, {os.cpu_count()} cores:"]
    for n, it in found.items():
        own, its = median(it.cpu) * 1e6, median(database_cpu[n]) * 1e6
        locked = waits[n]["Lock"] / max(1, waits[n].total())
        lines.append(
            f"{n} process{'es' * (n > 1)}: {median(it.rates):,.0f} requests/s, {own:.0f} + {its:.0f} us of CPU each "
            f"(the processes' and the database's); {locked:.1%} of {waits[n].total():,} samples wait for a lock."
        )
    each = median(found[3].cpu) + median(database_cpu[3])
    lines.append(f"Three processes answer {share:.2f} of one's requests ({three:,.0f} and {one:,.0f} by the medians).")
    lines.append(f"By arithmetic, 16 cores give at most {16 / each:,.0f} requests/s at that cost.")
    return lines


def database_seconds(folder: Path) -> float:
    """The processor time that a PostgreSQL server has taken, with sessions that have ended."""
    server = (folder / "data" / "postmaster.pid").read_text().split()[0]
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if stat.parent.name == server:
                ticks += sum(map(int, fields[11:15]))
            elif fields[1] == server:
                ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def watching(address: str, waits: Counter[str]) -> Iterator[None]:
    """Sample what the sessions of a database are doing, fifty times a second."""
    import psycopg

    ended = threading.Event()

    def watch() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            statement = (
                "SELECT coalesce(wait_event_type, 'runs') FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            while not ended.wait(0.02):
                waits.update(kind for (kind,) in connection.execute(statement))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def local(folder: Path, seconds: float) -> list[str]:
    """Decisions of `Local`, some of them rewarded, what they cost here and in the service, and those by request."""
    from banditree.client import Client, Local

    notes = []
    for policy in ("TSC", "ATS"):
        _, arms, categories = SOLD_OUT
        with running(run_ours, policy, arms, categories, str(folder / f"local-{policy}.db")) as (port, process):
            address = f"http://127.0.0.1:{port}"
            with Local(address, folder=folder / f"spool-{policy}") as client:

                def decide_and_report(client: Local = client) -> None:
                    decision = client.decide()
                    if random.random() < RATES[int(decision["arm"].removeprefix("item-"))]:
                        client.reward(decision["id"], 1)

                here = _rate(decide_and_report, seconds)
                before, waiting, began = cpu_seconds(process), client.backlog, time.perf_counter()
                client.flush()
                recorded = waiting / (time.perf_counter() - began)
                cost = (cpu_seconds(process) - before) / max(waiting, 1)
            asked = _rate(Client(address).decide, seconds)
        notes.append(
            f"`Local` with {policy} and {arms:,} arms: {here.per_cpu:,.0f} decisions per processor second, with "
            f"what reports take ({here.rate:,.0f} per second by the clock, beside the service), "
            f"{here.rate / asked.rate:.0f} times as many as `Client`, which asks for each ({asked.rate:,.0f}). The "
            f"service then records {recorded:,.0f} per second, in {cost * 1e6:.0f} µs each."
        )
    return notes


class Rate(NamedTuple):
    """Calls per second, and per second of processor time."""

    rate: float
    per_cpu: float


def _rate(decide: Any, seconds: float) -> Rate:
    decide()
    n, began, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        decide()
        n += 1
    return Rate(n / (time.perf_counter() - began), n / (time.process_time() - cpu))
