"""A real server process for tests: started, killed, started again on the same store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from banditree.service.app import Service
from banditree.service.engine import Engine
from banditree.service.guard import Access
from banditree.service.settings import Plan
from banditree.service.store import open_log

ITEMS = """item,kind,sort
s1,shoes,low
s2,shoes,low
s3,shoes,high
h1,hats,low
h2,hats,low
<b>h3</b>,hats,high
"""
ARMS = ["s1", "s2", "s3", "h1", "h2", "<b>h3</b>"]
COMMAND = (sys.executable, "-m", "banditree", "serve")


class Server:
    """One process, its address and a connection to it. A new one is made for every start."""

    def __init__(self, process: subprocess.Popen[str], url: str, errors: list[str]) -> None:
        self.process, self.url, self.errors = process, url, errors
        self.http = httpx.Client(base_url=url, timeout=120, trust_env=False)

    def kill(self) -> None:
        """What kill -9 does."""
        self.process.kill()
        self.end()

    def stop(self) -> int:
        """Ask it to end, as systemd and Docker do, and give its exit code."""
        self.process.terminate()
        return self.end()

    def end(self) -> int:
        """Wait until the process has ended, and close what was opened for it. May be called again."""
        assert self.process.stdout is not None
        self.http.close()
        self.process.stdout.close()
        return self.process.wait(60)


def items(folder: Path, text: str = ITEMS) -> Path:
    file = folder / "items.csv"
    file.write_text(text)
    return file


def start(
    folder: Path, *options: str, command: Sequence[str] = COMMAND, store: str | None = None, env: Any = None
) -> Server:
    """Start a server on the store in a folder, on a free port."""
    file = folder / "items.csv" if (folder / "items.csv").exists() else items(folder)
    where = store or str(folder / "decisions.db")
    words = [*command, str(file), "--arm", "item", "--path", "kind,sort", "--store", where, *options]
    words += [] if "--port" in options else ["--port", "0"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[str] = []
    stream = process.stderr

    def listen() -> None:
        with stream:
            errors.extend(stream)

    reading = threading.Thread(target=listen, daemon=True)
    reading.start()
    line = process.stdout.readline()
    if "http://" not in line:
        with process.stdout:
            code = process.wait(60)
        reading.join(60)
        raise AssertionError(f"the server ended with code {code} before it had an address: {line}{''.join(errors)}")
    return Server(process, line.split()[-1], errors)


def quiet_port() -> str:
    """Find a free port below those that the system gives to connections, so that it stays free while nobody listens.

    A page that tries to reach a closed port in their range can even end up connected to itself, which takes the port.
    """
    for port in range(20_000 + os.getpid() % 10_000, 32_768):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return str(port)
    raise AssertionError("no port is free")


@contextmanager
def serving(folder: Path, *options: str, **how: Any) -> Iterator[Server]:
    """A server that ends with the block, cleanly."""
    server = start(folder, *options, **how)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            assert server.stop() == 0, "".join(server.errors)
        server.end()


@contextmanager
def inside(
    *plans: Plan, store: Path | str, access: Access | None = None, **options: Any
) -> Iterator[tuple[Service, httpx.Client]]:
    """A service in a thread of this process, which starts faster, and a client of it."""
    with ExitStack() as opened:
        log = opened.enter_context(closing(open_log(str(store))))
        engine = Engine(log, **options)
        engine.start(plans)
        opened.pop_all()  # the service closes it
    service = Service(engine, access)
    server = uvicorn.Server(uvicorn.Config(service.guarded, port=0, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as http:
            yield service, http
    finally:
        service.hub.close()
        server.should_exit = True
        thread.join(30)


@contextmanager
def holding(engine: Engine) -> Iterator[None]:
    """Let an engine take nothing from its queue within the block."""
    is_held, may_go_on, take = threading.Event(), threading.Event(), engine._queue.take

    def hold(*how: Any) -> Any:
        is_held.set()
        may_go_on.wait(120)
        return take(*how)

    vars(engine._queue)["take"] = hold
    try:
        assert is_held.wait(60)
        yield
    finally:
        del vars(engine._queue)["take"]
        may_go_on.set()


def until(true: Any, seconds: float = 60.0) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return value
