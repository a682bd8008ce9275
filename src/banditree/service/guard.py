"""Decide which requests are let in, by host, origin, token, size, time and number; measure them; catch errors."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from banditree.errors import InvalidValue
from banditree.service.events import say_failure
from banditree.service.metrics import Metrics

MAX_BODY_BYTES = 2**20
MAX_IN_FLIGHT = 1_000  # requests that wait for their answers; more are refused at once
MAX_CONNECTIONS = 2_000  # fewer where the process may open fewer files
SPARE_FILES = 64  # file descriptors that are not for connections
REQUEST_SECONDS = 10.0  # for the head of a request, and again for its body
RETRY_SECONDS = 1
WRONG = "the service failed to handle this request; its log on stderr has the details"
BUSY = "too many requests are waiting; try again"
OPEN = {"/", "/healthz", "/readyz", "/docs", "/openapi.json"}  # need no token, because they show no data
UNCOUNTED = {"/healthz", "/readyz"}  # answered even when the service is busy
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
EXPERIMENT = re.compile(r"^/v1/experiments/[^/]+/")
DECIDE, READ, ADMIN = "decide", "read", "admin"
ROLES = (DECIDE, READ, ADMIN)
GONE = "banditree.gone"  # set in the scope of a request whose client has disconnected
COMPLETE = "banditree.complete"  # set in the scope of a request whose body has arrived

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
    def of(cls, token: str | None = None, file: str | None = None, hosts: tuple[str, ...] = ()) -> Access:
        """Combine a token that may do all, a file of tokens with their roles, and names beside those of loopback."""
        tokens = {} if token is None else {_check_token(token): frozenset(ROLES)}
        if file is not None:
            for secret, roles in _read_tokens(file).items():
                tokens[secret] = tokens.get(secret, frozenset()) | roles
        return cls(tokens, LOOPBACK | {_host_name(host) for host in hosts})

    def roles(self, authorization: bytes | None) -> frozenset[str]:
        """Return the roles that a request has by its Authorization header."""
        if not self.tokens:
            return frozenset(ROLES)
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


def _read_tokens(file: str) -> dict[str, frozenset[str]]:
    """Read a file of tokens: lines such as "decide SECRET"; empty lines and those that begin with # are skipped."""
    tokens: dict[str, frozenset[str]] = {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read --tokens {file}: {error}") from None
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


def _host_name(host: str) -> str:
    """Return the name in a Host header or an option, without its port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0].rstrip(".")


class TooLarge(Exception):
    """A request body is larger than allowed."""

    def __str__(self) -> str:
        return f"the body is larger than {MAX_BODY_BYTES:,} bytes; send less"


class TooSlow(Exception):
    """A request body takes too long to arrive."""

    def __str__(self) -> str:
        return f"the body did not arrive within {REQUEST_SECONDS:g} seconds"


class Guard:
    """An ASGI application that wraps another one."""

    def __init__(self, app: Any, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics
        self._in_flight = 0

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
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send_noting)
            elif endless or scope["path"] in UNCOUNTED:
                await self.app(scope, _limit(scope, receive), send_noting)
            else:
                self._in_flight += 1
                try:
                    await self.app(scope, _limit(scope, receive), send_noting)
                finally:
                    self._in_flight -= 1
        except Exception as error:
            say_failure(f"{scope['method']} {scope['path']}", error)
            if code == 0:
                await error_response(500, WRONG)(scope, receive, send_noting)
        finally:
            if not endless:
                self.metrics.count_request(scope["method"], scope["path"], code, time.perf_counter() - began)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not let in, or None."""
        names = (b"host", b"origin", b"authorization", b"content-length")
        headers = {name: value for name, value in scope["headers"] if name in names}
        host, origin, path = headers.get(b"host"), headers.get(b"origin"), scope["path"]
        if not self.access.knows_host(host):
            return error_response(400, "this service does not go by that Host; start it with --allow-host to name it")
        if origin is not None and origin.lower() not in (
            b"http://" + (host or b"").lower(),
            b"https://" + (host or b"").lower(),
        ):
            return error_response(
                403, "requests from pages of another site are refused; call the service from your own server"
            )
        if path not in OPEN:
            roles = self.access.roles(headers.get(b"authorization"))
            if not roles:
                needs = {"www-authenticate": "Bearer"}
                return error_response(401, "this needs the service's token: Authorization: Bearer ...", **needs)
            needed = needed_roles(scope["method"], path)
            if not roles & needed:
                return error_response(
                    403, f"this token may not do that; it needs the role {' or '.join(sorted(needed))}"
                )
        if path not in UNCOUNTED and self._in_flight >= MAX_IN_FLIGHT:
            return busy_response()
        length = headers.get(b"content-length", b"0")
        if len(length) > 18 or int(length) > MAX_BODY_BYTES:
            return error_response(413, str(TooLarge()))
        return None


def _limit(scope: Scope, receive: Receive) -> Receive:
    """Limit the size of a body, and the time that it may take."""
    received, complete, deadline = 0, False, asyncio.get_running_loop().time() + REQUEST_SECONDS

    async def receive_in_time() -> Message:
        nonlocal received, complete
        if complete:
            return await receive()
        if COMPLETE in scope:
            message = await receive()
        else:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise TooSlow from None
        received += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if received > MAX_BODY_BYTES:
            raise TooLarge
        return message

    return receive_in_time


class Connection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """One connection of uvicorn, closed if a request takes too long to arrive, or to make room for another one.

    A request whose client disconnects is marked in its scope, so that nothing is decided for nobody.
    """

    limit = MAX_CONNECTIONS

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waits_since: float | None = None
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
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
            if not self.cycle.more_body:
                self.cycle.scope[COMPLETE] = True
        else:
            self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self.scope is not None:
            self.scope[GONE] = True
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        if self._timer is None:
            self._waits_since = self.loop.time()
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._waits_since = None

    def _make_room(self) -> bool:
        """Close the connection that has waited longest without a whole request; returns whether there was one."""
        waiting = [other for other in self.connections if getattr(other, "_waits_since", None) is not None]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda other: other._waits_since)
        oldest._stop_waiting()
        oldest.transport.abort()
        return True


def connection_limit() -> int:
    """Return how many connections the process may have, by its limit on open files."""
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files < 0 else max(1, min(MAX_CONNECTIONS, files - SPARE_FILES))


def json_response(code: int, content: dict[str, Any], **headers: str) -> Response:
    """Make a response with a JSON body."""
    return Response(json.dumps(content), code, headers, "application/json")


def error_response(code: int, sentence: str, **headers: str) -> Response:
    """Make the response of a request that failed."""
    return json_response(code, {"error": sentence}, **headers)


def busy_response() -> Response:
    """Make the response of a request that is refused because of too many others."""
    return error_response(503, BUSY, **{"retry-after": str(RETRY_SECONDS)})
