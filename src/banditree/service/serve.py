"""Run the service: one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.service.events import log_as_json
from banditree.service.settings import Plan
from banditree.service.stores import open_log

try:
    import jinja2  # noqa: F401 (for the pages)
    import uvicorn

    from banditree.service.app import Service
    from banditree.service.config import make_plan, read_config
    from banditree.service.engine import Engine
    from banditree.service.guard import LOOPBACK, REQUEST_SECONDS, Access, connection_limits
except ImportError:
    raise missing_extra("serve", "the service needs FastAPI, uvicorn and Jinja2") from None

__all__ = ["Access", "make_plan", "open_log", "read_config", "serve"]

SWITCH_SECONDS = 0.0005  # until the engine's thread gets its turn; Python's default of 5 ms would delay every answer
GRACE_SECONDS = 10  # that unfinished requests get when the service stops


def serve(
    plans: Sequence[Plan],
    *,
    store: str,
    host: str,
    port: int,
    access: Access | None = None,
) -> None:
    """Serve decisions of some experiments until SIGTERM or Ctrl-C."""
    access = access or Access()
    if host not in LOOPBACK and not access.tokens:
        raise InvalidValue(f"--host {host} can be reached from outside; give --token, or set BANDITREE_TOKEN")
    access = replace(access, hosts=access.hosts | {host.lower()})
    with ExitStack() as opened:
        listening = opened.enter_context(_listen(host, port))
        log = open_log(store)
        opened.callback(log.close)
        log_as_json()
        engine = Engine(log)
        engine.start(plans)
        service = Service(engine, access)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # what is here will stay: the garbage collector need not look through it again and again
        connections, backlog = connection_limits()
        config = uvicorn.Config(
            service.guarded,
            limit_concurrency=connections,
            timeout_keep_alive=round(REQUEST_SECONDS),
            backlog=backlog,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # nothing depends on where a request comes from
            lifespan="on",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(config, service)
        for wanted in (signal.SIGTERM, signal.SIGINT):  # before the address is known, so that none is missed
            signal.signal(wanted, server.handle_exit)
        listening.listen(config.backlog)  # clients that read the next line may connect at once; they wait for uvicorn
        shown = f"[{host}]" if ":" in host else host
        n_arms = sum(state.policy.tree.n_arms for state in engine.states.values() if not state.is_empty)
        among = "" if len(engine.states) == 1 else f" in {len(engine.states):,} experiments"
        address = f"http://{shown}:{listening.getsockname()[1]}"
        print(f"banditree serves {n_arms:,} arms{among} at {address}", flush=True)
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends the live streams before it shuts down, because they never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: Any = None) -> None:
        self._service.hub.close()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as opened:
            listening = opened.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            opened.pop_all()
    except OSError as error:
        raise BadPath(f"cannot listen on {host}:{port}: {error.strerror}; give another --host or --port") from error
    return listening
