"""A real server process for tests: started, killed, started again on the same store."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

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
    """One process, its address and a connection to it. Made anew after every start."""

    def __init__(self, process: subprocess.Popen[str], url: str, errors: list[str]) -> None:
        self.process, self.url, self.errors = process, url, errors
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def kill(self) -> None:
        """What kill -9 does."""
        self.process.kill()
        self.end()

    def stop(self) -> int:
        """Ask it to end, as systemd and Docker do, and give its exit code."""
        self.process.terminate()
        return self.end()

    def end(self) -> int:
        self.http.close()
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


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
        process.wait(30)
        reading.join(5)
        process.stdout.close()
        raise AssertionError(f"no server: {line}{''.join(errors)}")
    return Server(process, line.split()[-1], errors)


@contextmanager
def serving(folder: Path, *options: str, **how: Any) -> Iterator[Server]:
    """A server that ends with the block, cleanly."""
    server = start(folder, *options, **how)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            assert server.stop() == 0, "".join(server.errors)


def until(true: Any, seconds: float = 20.0) -> Any:
    """Wait until something is true, and give it."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found
