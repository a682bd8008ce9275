"""`python -m benchmarks.service`: how fast `banditree serve` decides and starts, beside a bare FastAPI endpoint.

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
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from banditree.service.engine import Engine
from banditree.service.events import Event, Kind, new_id
from banditree.service.serve import open_log, serve
from banditree.service.settings import Plan, Settings
from banditree.tree import Tree
from tools.pages.markdown import describe

CONNECTIONS = 32
ROUNDS, SECONDS = 5, 1.5
SERVED = ("TSC", 100, 10), ("TSC", 10_000, 100), ("ATS", 100, 10), ("ATS", 1000, 32), ("ATS", 10_000, 100)
SOLD_OUT = ("ATS", 1000, 32)  # also asked without three items, and with items that all earn the same
RATES = np.random.default_rng(0).beta(1, 15, 10_000).tolist()  # how often each item is clicked
BARE = "bare FastAPI"
PLAIN = "bare FastAPI without httptools and uvloop"
EVENTS = 1_000_000
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


def load(server: tuple[int, int], into: Measured, asking: Asking, seconds: float = SECONDS) -> None:
    """Put a server under load from all connections at once."""
    port, process = server
    began = cpu_seconds(process)
    with selectors.DefaultSelector() as selector:
        clients = [Client(port, asking, into.times) for _ in range(CONNECTIONS)]
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
    into.cpu.append((cpu_seconds(process) - began) / answered)


def cpu_seconds(process: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def decisions(folder: Path) -> list[str]:
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
            load(server, Measured(), asking, 1.0)  # some evidence to decide by
        found = {name: Measured() for name in loads}
        for _ in range(ROUNDS):
            for name, (server, asking) in loads.items():
                load(server, found[name], asking)
    return table(found)


def table(found: dict[str, Measured]) -> list[str]:
    """Compare with the bare endpoint round by round, because what else the machine does changes."""
    lines = ["| server | requests/s | of bare | CPU | median | p99 | of bare |", "|---|---|---|---|---|---|---|"]
    base = found[BARE]
    for name, it in found.items():
        share = median(rate / bare for rate, bare in zip(it.rates, base.rates, strict=True))
        late, bare_late = it.quantile(0.99), base.quantile(0.99)
        lines.append(
            f"| {name} | {median(it.rates):,.0f} | {share:.2f} | {median(it.cpu) * 1e6:.0f} us "
            f"| {it.quantile(0.5):.1f} ms | {late:.1f} ms | {late / bare_late:.1f} |"
        )
    return lines


def alone(repeats: int = 2000) -> list[str]:
    """The time of a decision with its propensity, without any service around it."""
    took = {}
    for arms, categories in ((100, 10), (10_000, 100)):
        policy = Settings(policy="TSC").build(
            Tree.from_paths([(*path, arm) for arm, path in catalogue(arms, categories).items()])
        )
        rng = np.random.default_rng(0)
        for arm in policy.tree.arms:
            policy.update(arm, int(rng.random() < 0.1))
        began = time.process_time()
        for _ in range(repeats):
            policy.decide()
        took[arms] = (time.process_time() - began) / repeats * 1e6
    few, many = took[100], took[10_000]
    return [
        f"A decision of TSC alone: {few:.0f} us among 100 arms, {many:.0f} us among 10,000 ({many / few:.1f} times)."
    ]


def starts(folder: Path, events: int = EVENTS) -> list[str]:
    """The time to start on a long log, from the log alone and from a snapshot."""
    store = str(folder / "long.db")
    arms = catalogue(1000, 50)
    names = list(arms)
    log = open_log(store)
    log.begin()
    log.append([Event(1, Kind.ARMS, body={"add": arms}, n=1)])
    n, rng = 1, np.random.default_rng(0)
    while n < events:
        part = []
        for i, clicked in zip(rng.integers(1000, size=5000), rng.random(5000) < 0.1, strict=True):
            id_, arm, at = new_id(n * 1000), names[i], n * 1000
            body = {"request": {}, "arms": [arm], "path": [*arms[arm], arm], "propensity": 0.001, "steps": [0.02, 0.05]}
            part.append(Event(at, Kind.DECISION, id_, arm=arm, body=body | {"policy": n, "tree": 1}, n=n + 1))
            part.append(Event(at, Kind.REWARD, id_, arm=arm, value=float(clicked), learned=True, n=n + 2))
            n += 2
        log.append(part)
    log.commit()
    log.close()
    took = []
    for _ in range(2):
        began = time.perf_counter()
        engine = Engine(open_log(store))
        engine.start([Plan(arms)])
        took.append(time.perf_counter() - began)
        engine.stop()
    return [f"Start with {n:,} events: {took[0]:.2f} s from the log, {took[1]:.2f} s from a snapshot."]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [f"On {describe()}; {CONNECTIONS} connections.", "", *decisions(folder), "", *alone(), *starts(folder)]
    print("\n".join([*lines, f"Load of the machine at the end: {os.getloadavg()[0]:.1f}."]))


if __name__ == "__main__":
    main()
