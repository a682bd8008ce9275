"""Decide which requests are let in, by host, origin, token, size, time and number; measure them; catch errors."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from banditree.base.files import reason
from banditree.errors import InvalidValue
from banditree.service.events import say_failure
from banditree.service.metrics import Metrics

MAX_BODY_BYTES = 2**20
MAX_BYTES = 2**27  # of the bodies of all requests together
MAX_IN_FLIGHT = 1_000  # whole requests that wait for their answers; more are refused at once
MAX_CONNECTIONS = 2_000  # fewer where the process may open fewer files
BACKLOG = 1_024  # connections that wait to be accepted, all in one turn of the event loop; fewer likewise
TURNS = 4  # of the event loop between accepting a connection and having refused it
MAX_HEAD_BYTES = 2**16
MAX_HEADERS = 200
MAX_SENT_BYTES = 2**23  # of a request, as it is sent: in small chunks, a body takes several times its size
HELD_BYTES = 2**16  # of an answer that may wait for the rest of it
SPARE_FILES = 64  # file descriptors that are not for connections
REQUEST_SECONDS = 10.0  # for the head of a request, and again for its body
RETRY_SECONDS = 1
WRONG = "the service failed to handle this request; its log on stderr has the details"
BUSY = "too many requests are waiting; try again"
RETRY = {"retry-after": str(RETRY_SECONDS)}  # the header of responses to requests that may be sent again
TOO_LARGE = f"the body is larger than {MAX_BODY_BYTES:,} bytes; send less"
OPEN = {"/", "/healthz", "/readyz", "/docs", "/openapi.json"}  # need no token, because they show no data
UNCOUNTED = {"/healthz", "/readyz"}  # answered even when the service is busy
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
EXPERIMENT = re.compile(r"^/v1/experiments/[^/]+/")
DECIDE, READ, ADMIN = "decide", "read", "admin"
ROLES = frozenset({DECIDE, READ, ADMIN})
GONE = "banditree.gone"  # set in the scope of a request whose client has disconnected
COMPLETE = "banditree.complete"  # set in the scope of a request whose body has arrived
BODY = "banditree.body"  # the body of a request, in its scope

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True)
class Access:
    """Who may use the service: roles by token (no tokens: everybody may do all), and the host names it goes by."""

    tokens: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hosts: frozenset[str] = LOOPBACK  # with "*", any name

    @classmethod
    def of(cls, token: str | None = None, file: Path | None = None, hosts: Sequence[str] = ()) -> Access:
        """Combine a token that may do all, a file of tokens with their roles, and names beside those of loopback."""
        tokens = {} if token is None else {_check_token(token): ROLES}
        if file is not None:
            for secret, roles in _read_tokens(file).items():
                tokens[secret] = tokens.get(secret, frozenset()) | roles
        return cls(tokens, LOOPBACK | {_host_name(host) for host in hosts})

    def roles(self, authorization: bytes | None) -> frozenset[str]:
        """Return the roles that a request has by its Authorization header."""
        if not self.tokens:
            return ROLES
        scheme, _, given = (authorization or b"").partition(b" ")
        roles: frozenset[str] = frozenset()
        for token, its_roles in self.tokens.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(given.strip(), token.encode()):
                roles = its_roles
        return roles if scheme.lower() == b"bearer" else frozenset()

    def knows_host(self, host: bytes | None) -> bool:
        """Whether a request's Host header names this service; only programs, not browsers, leave it out."""
        return host is None or "*" in self.hosts or _host_name(host.decode("latin-1")) in self.hosts


def needed_roles(method: str, path: str) -> frozenset[str]:
    """Return the roles of which a request needs one; admin may do everything."""
    path = EXPERIMENT.sub("/v1/", path)
    if path.startswith("/v1/decisions"):
        return frozenset({DECIDE, READ, ADMIN} if method in ("GET", "HEAD") else {DECIDE, ADMIN})
    if path.startswith("/ofrep/"):
        return frozenset({DECIDE, ADMIN})
    return frozenset({READ, ADMIN} if method in ("GET", "HEAD") else {ADMIN})


def _read_tokens(file: Path) -> dict[str, frozenset[str]]:
    """Read a file of tokens: lines such as "decide SECRET"; empty lines and those that begin with # are skipped."""
    tokens: dict[str, frozenset[str]] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read --tokens {file}: {reason(error)}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        role, _, secret = line.strip().partition(" ")
        if role not in ROLES or not secret.strip():
            raise InvalidValue(f"--tokens {file}, line {number}: write decide, read or admin, a space, and the secret")
        secret = _check_token(secret.strip())
        tokens[secret] = tokens.get(secret, frozenset()) | {role}
    if not tokens:
        raise InvalidValue(f"--tokens {file} holds no token; write lines such as: decide SECRET")
    return tokens


def _check_token(token: str) -> str:
    if not (token and token.isascii() and token.isprintable() and token.strip() == token):
        raise InvalidValue("the token must be printable ASCII characters without spaces around them")
    return token


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    """Return the name in a Host header or an option, without its port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0].rstrip(".")


class Refusal(Exception):
    """A request is not let in; the response says why."""

    def __init__(self, code: int, sentence: str, **headers: str) -> None:
        self.response = error_response(code, sentence, **headers)


class Guard:
    """An ASGI application that wraps another one."""

    def __init__(self, app: Any, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics
        self._in_flight = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        code = 0

        async def send_noting(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        endless = scope["path"].endswith("/events")
        try:
            await self._pass_on(scope, receive, send_noting, counts=not endless and scope["path"] not in UNCOUNTED)
        except Refusal as refusal:
            await refusal.response(scope, receive, send_noting)
        except Exception as error:
            say_failure(f"{scope['method']} {scope['path']}", error)
            if code == 0:
                await error_response(500, WRONG)(scope, receive, send_noting)
        finally:
            if not endless:
                self.metrics.count_request(scope["method"], scope["path"], code, time.perf_counter() - began)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, *, counts: bool) -> None:
        """Pass a request to the application when all of it has arrived: one that is half sent keeps nobody waiting."""
        self._check_head(scope)
        body = scope[BODY] = bytearray()
        try:
            if COMPLETE in scope:
                await self._receive_body(receive, body)
            else:
                async with _time_limit():
                    await self._receive_body(receive, body)
            if counts and self._in_flight >= MAX_IN_FLIGHT:
                raise Refusal(503, BUSY, **RETRY)
            self._in_flight += counts
            try:
                await self.app(scope, receive, send)
            finally:
                self._in_flight -= counts
        finally:
            self._bytes -= len(body)

    async def _receive_body(self, receive: Receive, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the client has disconnected")  # seen by nobody but the metrics
            chunk, more = message.get("body", b""), message.get("more_body", False)
            body += chunk
            self._bytes += len(chunk)
            if len(body) > MAX_BODY_BYTES:
                raise Refusal(413, TOO_LARGE)
            if self._bytes > MAX_BYTES:
                raise Refusal(503, BUSY, **RETRY)

    def _check_head(self, scope: Scope) -> None:
        """Raise unless a request is let in by what its head says."""
        headers = dict(scope["headers"])
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not self.access.knows_host(host):
            raise Refusal(400, "this service does not go by that Host; start it with --allow-host to name it")
        own = (host or b"").lower()
        if origin is not None and origin.lower() not in (b"http://" + own, b"https://" + own):
            raise Refusal(403, "requests from pages of another site are refused; call the service from your own server")
        if self.access.tokens and scope["path"] not in OPEN:
            roles = self.access.roles(headers.get(b"authorization"))
            if not roles:
                sentence = "this needs the service's token: Authorization: Bearer ..."
                raise Refusal(401, sentence, **{"www-authenticate": "Bearer"})
            needed = needed_roles(scope["method"], scope["path"])
            if not roles & needed:
                raise Refusal(403, f"this token may not do that; it needs the role {' or '.join(sorted(needed))}")
        length = headers.get(b"content-length", b"0")
        if len(length) > 18 or int(length) > MAX_BODY_BYTES:
            raise Refusal(413, TOO_LARGE)


@asynccontextmanager
async def _time_limit() -> AsyncIterator[None]:
    """Limit the time that a body takes to arrive; one that has arrived may wait to be read as long as it takes."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            yield
    except TimeoutError:
        sentence = f"the body did not arrive within {REQUEST_SECONDS:g} seconds"
        raise Refusal(408, sentence, connection="close") from None


class Joining:
    """A transport that writes what it is given in one turn of the event loop together: an answer's head and body."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            if not self._transport.is_closing():
                self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """One connection of uvicorn, closed if a request takes too long to arrive, or to make room for another one
    while no whole request of its own waits for an answer.

    A request whose client disconnects is marked in its scope, so that nothing is decided for nobody.
    """

    limit = MAX_CONNECTIONS

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport = Joining(transport, self.loop)
        self._waits_since: float | None = None
        self._arrived = 0  # bytes of a request that is not whole yet
        self._timer: asyncio.TimerHandle | None = None
        if len(self.connections) > self.limit and not self._make_room():
            sentence = json.dumps({"error": BUSY}).encode()
            transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
                b"retry-after: %d\r\ncontent-length: %d\r\n\r\n%s" % (RETRY_SECONDS, len(sentence), sentence)
            )
            transport.close()
            return
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_size(len(data))
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_request()
        elif self.cycle.more_body:
            self._stop_timer()  # the guard has one for the body
        else:
            self._stop_timer()
            self._waits_since = None
            self.cycle.scope[COMPLETE] = True

    def _limit_size(self, more: int) -> None:
        """Close the connection if what has arrived of a request is too large, which not every parser looks at."""
        has_head = self.cycle is not None and self.scope is self.cycle.scope
        is_done = has_head and (self.cycle.response_complete or not self.cycle.more_body)
        self._arrived = 0 if is_done else self._arrived + more
        if self._arrived > (MAX_SENT_BYTES if has_head else MAX_HEAD_BYTES) or len(self.headers or ()) > MAX_HEADERS:
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next request has already arrived
            self._waits_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.scope is not None:
            self.scope[GONE] = True
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        if self._timer is None:
            self._waits_since = self.loop.time()
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _make_room(self) -> bool:
        """Close the connection that has waited longest without a whole request; returns whether there was one."""
        waiting = [other for other in self.connections if getattr(other, "_waits_since", None) is not None]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda other: other._waits_since)
        oldest._waits_since = None
        oldest.transport.abort()
        return True


def connection_limits() -> tuple[int, int]:
    """Return how many connections the process may have, and how many may wait to be accepted, by its open files.

    All that wait are accepted at once, and those beyond the limit are closed a few turns of the event loop later: until
    then they are open files too. The process may open as many files as it needs, if the system lets it.
    """
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS, BACKLOG
    wanted = MAX_CONNECTIONS + TURNS * BACKLOG + SPARE_FILES
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= files < wanted:
        files = wanted if most < 0 else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return limits_by_files(files if files >= 0 else wanted)


def limits_by_files(files: int) -> tuple[int, int]:
    """Share open files out between connections and those that wait to be accepted.

    >>> limits_by_files(65_536), limits_by_files(256)
    ((2000, 1024), (128, 16))
    """
    connections = max(1, min(MAX_CONNECTIONS, files // 2))
    return connections, max(1, min(BACKLOG, (files - connections - SPARE_FILES) // TURNS))


def json_response(code: int, content: dict[str, Any], **headers: str) -> Response:
    """Make a response with a JSON body."""
    return Response(json.dumps(content), code, headers, "application/json")


def error_response(code: int, sentence: str, **headers: str) -> Response:
    """Make the response of a request that failed."""
    return json_response(code, {"error": sentence}, **headers)
