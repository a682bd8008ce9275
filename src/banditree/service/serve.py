"""Run the service: one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import Any

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.service.settings import Settings
from banditree.service.store import EventLog
from banditree.tree import Tree

try:
    import uvicorn

    from banditree.service.app import Service
    from banditree.service.engine import Engine
except ImportError:
    raise missing_extra("serve", "the service needs FastAPI and uvicorn") from None

LOCAL = {"127.0.0.1", "localhost", "::1"}
SWITCH = 0.0005  # seconds after which the requests let the engine's thread go on; Python's own 5 ms are long here
GRACE = 10  # seconds for requests that are under way at the end


def serve(
    arms: dict[str, list[str]], source: str, settings: Settings, *, store: str, host: str, port: int, token: str | None
) -> None:
    """Serve decisions among arms, given with the clusters above them, until the process is told to end."""
    if host not in LOCAL and token is None:
        raise InvalidValue(f"--host {host} can be reached from outside; give --token, or set BANDITREE_TOKEN")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token and token):
        raise InvalidValue("the token must be printable ASCII characters without spaces around them")
    listening = _listening(host, port)
    log = open_log(store)
    engine = Engine(log, settings)
    engine.start(arms, source)
    service = Service(engine, token=token)
    sys.setswitchinterval(SWITCH)
    config = uvicorn.Config(
        service.guarded, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=GRACE
    )
    tree: Tree = engine.state.policy.tree
    shown = f"[{host}]" if ":" in host else host
    print(f"banditree serves {tree.n_arms:,} arms at http://{shown}:{listening.getsockname()[1]}", flush=True)
    # uvicorn raises the signals that ended it once more, for whoever was there before
    for wanted in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: None)
    _Server(config, service).run(sockets=[listening])


def open_log(store: str) -> EventLog:
    """The log at a path or an address."""
    if store.startswith(("postgresql://", "postgres://")):
        from banditree.service.store_postgres import PostgresLog

        return PostgresLog(store)
    from banditree.service.store_sqlite import SqliteLog

    path = Path(store)
    if path.is_dir():
        raise BadPath(f"{path} is a folder; name a file for the store")
    return SqliteLog(path)


class _Server(uvicorn.Server):
    """Ends the live streams first, which would never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: Any = None) -> None:
        self._service.hub.close()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise BadPath(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return found
