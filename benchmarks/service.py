"""`python -m benchmarks.service`: how fast `banditree serve` decides and starts, beside a bare FastAPI endpoint.

All servers run at the same time and take turns under load, so that what else the machine does hits them alike.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
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

from banditree.service.engine import Engine, Plan
from banditree.service.events import Event, Kind, new_id
from banditree.service.serve import open_log, serve
from banditree.service.settings import Settings
from banditree.tree import Tree
from benchmarks.machine import describe

CONNECTIONS = 32
ROUNDS, SECONDS = 4, 1.5
SERVED = ("TSC", 100, 10), ("TSC", 10_000, 100), ("ATS", 100, 10), ("ATS", 1000, 32), ("ATS", 10_000, 100)
EXCLUDING = "ATS, 1,000 arms in 32 categories"  # also asked without three items that are sold out
EXCLUDED_FROM = 1000
EVENTS = 1_000_000
FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Measured:
    """Requests answered per second and the times they took, by round."""

    rates: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return median(self.rates)

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) * 1000


def catalogue(arms: int, categories: int) -> dict[str, list[str]]:
    return {f"item-{i}": [f"category-{i % categories}"] for i in range(arms)}


def run_bare(port: int) -> None:
    """A FastAPI application with one endpoint that returns a constant."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    answer = {"id": "0" * 32, "arm": "item-1", "arms": ["item-1"], "propensity": 0.01}

    @app.post("/v1/decisions")
    async def constant() -> dict[str, Any]:
        return answer

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def run_ours(port: int, policy: str, arms: int, categories: int, store: str) -> None:
    settings = Settings(policy=policy)
    with Path("/dev/null").open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        serve([Plan(catalogue(arms, categories), settings)], store=store, host="127.0.0.1", port=port)


@contextmanager
def running(target: Any, *args: Any) -> Iterator[int]:
    """A server process; gives its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = FORKS.Process(target=target, args=(port, *args), daemon=True)
    process.start()
    for _ in range(3000):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.02)
    try:
        yield port
    finally:
        process.terminate()
        process.join(30)


async def one_connection(port: int, end: float, times: list[float], rewards: bool, excludes: bool) -> None:
    """Ask for one decision after another, as quickly as they are answered; maybe without three of the items."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        gone = [f"item-{random.randrange(EXCLUDED_FROM)}" for _ in range(3)]
        asked = json.dumps({"exclude": gone}) if excludes else ""
        began = time.perf_counter()
        body = await ask(reader, writer, "POST", "/v1/decisions", asked)
        times.append(time.perf_counter() - began)
        if rewards:
            id_ = json.loads(body)["id"]
            await ask(reader, writer, "PUT", f"/v1/decisions/{id_}/reward", '{"reward": 1}')
    writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: str) -> bytes:
    writer.write(f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 20"), head
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def load(port: int, into: Measured, seconds: float = SECONDS, *, rewards: bool = False, excludes: bool = False) -> None:
    """Put a server under load from all connections at once."""
    times: list[float] = []

    async def everybody() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(one_connection(port, end, times, rewards, excludes) for _ in range(CONNECTIONS)))

    asyncio.run(everybody())
    into.rates.append(len(times) / seconds)
    into.times += times


def decisions(folder: Path) -> list[str]:
    """Decisions per second and their times: decisions alone, and decisions each of which is followed by its reward."""
    with ExitStack() as servers:
        ports = {"bare FastAPI": servers.enter_context(running(run_bare))}
        for policy, arms, categories in SERVED:
            store = str(folder / f"{policy}-{arms}.db")
            name = f"{policy}, {arms:,} arms in {categories} categories"
            ports[name] = servers.enter_context(running(run_ours, policy, arms, categories, store))
        found = {name: Measured() for name in ports}
        found |= {f"{name}, with rewards": Measured() for name in list(ports)[1:]}
        sold_out = f"{EXCLUDING}, with rewards and three exclusions"
        found[sold_out] = Measured()
        for name, port in ports.items():
            load(port, Measured(), 1.0, rewards=f"{name}, with rewards" in found)  # some evidence to decide by
        for _ in range(ROUNDS):
            for name, port in ports.items():
                load(port, found[name])
                if f"{name}, with rewards" in found:
                    load(port, found[f"{name}, with rewards"], rewards=True)
                if name == EXCLUDING:
                    load(port, found[sold_out], rewards=True, excludes=True)
    base = found["bare FastAPI"]
    lines = ["| server | decisions/s | of bare | median | p99 | of bare |", "|---|---|---|---|---|---|"]
    for name, it in found.items():
        lines.append(
            f"| {name} | {it.rate:,.0f} | {it.rate / base.rate:.2f} | {it.quantile(0.5):.1f} ms "
            f"| {it.quantile(0.99):.1f} ms | {it.quantile(0.99) / base.quantile(0.99):.1f} |"
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
    print("\n".join(lines))


if __name__ == "__main__":
    main()
