"""Run the service: one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.files import find_target
from banditree.service.settings import Settings
from banditree.service.store import EventLog
from banditree.tree import Tree

try:
    import jinja2  # noqa: F401 (for the pages)
    import uvicorn

    from banditree.service.app import Service
    from banditree.service.engine import Engine
except ImportError:
    raise missing_extra("serve", "the service needs FastAPI, uvicorn and Jinja2") from None

LOCAL = {"127.0.0.1", "localhost", "::1"}
SWITCH = 0.0005  # seconds until the engine's thread gets its turn; Python's default of 5 ms would delay every answer
GRACE = 10  # seconds that unfinished requests get when the service stops


def serve(
    arms: dict[str, list[str]], source: str, settings: Settings, *, store: str, host: str, port: int, token: str | None
) -> None:
    """Serve decisions among arms, given with the clusters above them, until SIGTERM or Ctrl-C."""
    if host not in LOCAL and token is None:
        raise InvalidValue(f"--host {host} can be reached from outside; give --token, or set BANDITREE_TOKEN")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token and token):
        raise InvalidValue("the token must be printable ASCII characters without spaces around them")
    with ExitStack() as opened:
        listening = opened.enter_context(_listening(host, port))
        log = open_log(store)
        opened.callback(log.close)
        engine = Engine(log, settings)
        engine.start(arms, source)
        service = Service(engine, token=token)
        sys.setswitchinterval(SWITCH)
        config = uvicorn.Config(
            service.guarded, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=GRACE
        )
        server = _Server(config, service)
        for wanted in (signal.SIGTERM, signal.SIGINT):  # before the address is known, so that none is missed
            signal.signal(wanted, server.handle_exit)
        tree: Tree = engine.state.policy.tree
        listening.listen(config.backlog)  # clients that read the next line may connect at once; they wait for uvicorn
        shown = f"[{host}]" if ":" in host else host
        print(f"banditree serves {tree.n_arms:,} arms at http://{shown}:{listening.getsockname()[1]}", flush=True)
        server.run(sockets=[listening])


def open_log(store: str) -> EventLog:
    """Open the log at a path or an address."""
    if store.startswith(("postgresql://", "postgres://")):
        from banditree.service.store_postgres import PostgresLog

        return PostgresLog(store)
    from banditree.service.store_sqlite import SqliteLog

    find_target(store)  # says why, if nothing can be written there
    return SqliteLog(Path(store))


class _Server(uvicorn.Server):
    """Ends the live streams before it shuts down, because they never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: Any = None) -> None:
        self._service.hub.close()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as opened:
            found = opened.enter_context(socket.socket(family, kind, protocol))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            opened.pop_all()
    except OSError as error:
        raise BadPath(f"cannot listen on {host}:{port}: {error.strerror}; give another --host or --port") from error
    return found
