"""Decide which requests are let in, by host, origin, token, size, time and number; measure them; catch errors."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from banditree.base.files import Json, reason
from banditree.errors import InvalidValue
from banditree.service import routes
from banditree.service.commands import Refused, refusal
from banditree.service.events import Event, Kind, say_failure
from banditree.service.routes import ROLES, Route

MAX_BODY_BYTES = 2**20
MAX_BYTES = 2**27  # of the bodies of all requests together
MAX_IN_FLIGHT = 1_000  # whole requests that wait for their answers; more are refused at once
REQUEST_SECONDS = 10.0  # for the body of a request
PATIENCE_SECONDS = 0.1  # that a request waits before it is watched whether its client is still there
HUNG_UP = 499  # counted in place of a status where the client disconnected before the answer
BUSY = "too many requests are waiting; try again"
TOO_LARGE = f"the body is larger than {MAX_BODY_BYTES:,} bytes; send less"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
GONE = "banditree.gone"  # set in the scope of a request whose client has disconnected
BODY = "banditree.body"  # the body of a request, in its scope
ROUTE = "banditree.route"  # the route of a request, likewise

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


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

    def name(self, authorization: str | None) -> str | None:
        """Name a request's token, by its place among those that were given: for the log, which no secret is in."""
        secret = (authorization or "").partition(" ")[2].strip()
        return f"token {list(self.tokens).index(secret) + 1}" if secret in self.tokens else None

    def roles(self, authorization: bytes | None) -> frozenset[str]:
        """Return the roles that a request has by its Authorization header."""
        scheme, _, given = (authorization or b"").partition(b" ")
        roles: frozenset[str] = frozenset()
        for token, its_roles in self.tokens.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(given.strip(), token.encode()):
                roles = its_roles
        return roles if scheme.lower() == b"bearer" else frozenset()

    def knows_host(self, host: bytes | None) -> bool:
        """Whether a request's Host header names this service; only programs, not browsers, leave it out."""
        return host is None or "*" in self.hosts or _host_name(host.decode("latin-1")) in self.hosts


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


class Guard:
    """An ASGI application that wraps another one."""

    def __init__(self, app: App, access: Access, metrics: Metrics) -> None:
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

        of_path, scope["path_params"] = routes.find(scope["path"])
        route = of_path.get(scope["method"])
        try:
            await self._pass_on(scope, receive, send_noting, route, of_path)
        except Exception as error:
            refused = refusal(error)
            if code or refused.code == 500:
                say_failure(f"{scope['method']} {scope['path']}", error)
            if not code:
                await error_response(refused)(scope, receive, send_noting)
        finally:
            if route is None or not route.is_endless:
                code = HUNG_UP if GONE in scope else code
                label = route.path if route else next((other.path for other in of_path.values()), "other")
                self.metrics.count_request(scope["method"], label, code, time.perf_counter() - began)

    async def _pass_on(
        self, scope: Scope, receive: Receive, send: Send, route: Route | None, of_path: Mapping[str, Route]
    ) -> None:
        """Pass a request to the application once all of it has arrived: one that is half sent must not block others."""
        self._check_head(scope, route)
        body = scope[BODY] = bytearray()
        try:
            await self._receive_body(scope, receive, body)
            if route is None and of_path:
                raise Refused(405, "this route does not take this method", allow=", ".join(of_path))
            if route is None:
                raise Refused(404, "there is nothing here; /docs lists the routes")
            scope[ROUTE] = route
            if route.is_endless or route.is_urgent:
                await self.app(scope, receive, send)
            else:
                with self.counting(1), _watching(scope, receive):
                    await self.app(scope, receive, send)
        finally:
            self._bytes -= len(body)

    @contextmanager
    def counting(self, n: int) -> Iterator[None]:
        """Count ``n`` more requests while they wait; refuse them if there are too many."""
        if self._in_flight + n > MAX_IN_FLIGHT:
            raise Refused(503, BUSY)
        self._in_flight += n
        try:
            yield
        finally:
            self._in_flight -= n

    async def _receive_body(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        more = True
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        scope[GONE] = True
                        raise Refused(400, "the client has disconnected")  # seen by nobody
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    body += chunk
                    self._bytes += len(chunk)
                    if len(body) > MAX_BODY_BYTES:
                        raise Refused(413, TOO_LARGE)
                    if self._bytes > MAX_BYTES:
                        raise Refused(503, BUSY)
        except TimeoutError:
            sentence = f"the body did not arrive within {REQUEST_SECONDS:g} seconds"
            raise Refused(408, sentence, connection="close") from None

    def _check_head(self, scope: Scope, route: Route | None) -> None:
        """Raise unless the headers of a request let it in."""
        headers = dict(scope["headers"])
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not self.access.knows_host(host):
            raise Refused(400, "this service does not go by that Host; its operator can allow it")
        own = (host or b"").lower()
        if origin is not None and origin.lower() not in (b"http://" + own, b"https://" + own):
            raise Refused(403, "requests from pages of another site are refused; call the service from your own server")
        if self.access.tokens and not (route and route.is_open):
            roles = self.access.roles(headers.get(b"authorization"))
            if not roles:
                sentence = "this needs the service's token: Authorization: Bearer ..."
                raise Refused(401, sentence, **{"www-authenticate": "Bearer"})
            if route and not roles & route.roles:
                needed = " or ".join(sorted(route.roles))
                raise Refused(403, f"this token may not do that; it needs the role {needed}")
        length = headers.get(b"content-length", b"0")
        if len(length) > 18 or int(length) > MAX_BODY_BYTES:
            raise Refused(413, TOO_LARGE)


@contextmanager
def _watching(scope: Scope, receive: Receive) -> Iterator[None]:
    """Note in the scope of a request that waits when its client disconnects: no decision is made for one that left."""
    tasks: list[asyncio.Task[None]] = []

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope[GONE] = True

    loop = asyncio.get_running_loop()
    timer = loop.call_later(PATIENCE_SECONDS, lambda: tasks.append(loop.create_task(listen())))
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()


def json_response(code: int, content: Json | list[Json], **headers: str) -> Response:
    """Make a response with a JSON body."""
    return Response(json.dumps(content), code, headers, "application/json")


def error_response(refused: Refused) -> Response:
    """Make the response of a request that failed; after a 503, it may be sent again."""
    headers = {"retry-after": "1"} if refused.code == 503 else refused.headers
    return json_response(refused.code, {"error": str(refused)}, **headers)


BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}


class Metrics:
    """Counts since the start of the service."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.decisions: Counter[str] = Counter()  # by experiment
        self.rewards: Counter[tuple[str, str]] = Counter()  # by experiment and outcome
        self._latency: Counter[int] = Counter()  # decisions answered, by bound
        self._seconds = 0.0

    def count_request(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a request by its route, without names and ids: the number of labels must not grow with the traffic.

        The time of requests for a decision goes into the histogram.
        """
        self.requests[method if method in METHODS else "other", route, code] += 1
        if method == "POST" and route == "/v1/decisions":
            self._latency[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def count_events(self, events: Sequence[Event]) -> None:
        """Count events that this process has added to the log, so that the sum over processes is right."""
        for event in events:
            if event.kind == Kind.DECISION:
                self.decisions[event.experiment] += 1
            elif event.kind == Kind.REWARD:
                self.rewards[event.experiment, "learned" if event.learned else "recorded"] += 1

    def text(self, *, events: int, lag: int, arms: Mapping[str, int], ready: bool) -> str:
        """Write all metrics as text; ``arms`` has the number of arms of every experiment."""
        requests = {
            f'{{method="{method}",route="{route}",code="{code}"}}': n
            for (method, route, code), n in sorted(self.requests.items())
        }
        decisions = {f'{{experiment="{name}"}}': self.decisions[name] for name in arms}
        n_arms = {f'{{experiment="{name}"}}': n for name, n in arms.items()}
        statuses = {
            f'{{experiment="{name}",status="{what}"}}': self.rewards[name, what]
            for name in arms
            for what in ("learned", "recorded")
        }
        return "".join(
            [
                _family("decisions_total", "counter", "Decisions made by this process.", decisions),
                _family("rewards_total", "counter", "Rewards stored by this process, by what was done.", statuses),
                _family("decision_seconds", "histogram", "Time to answer a request for a decision.", self._histogram()),
                _family("http_requests_total", "counter", "Requests by method, route and status.", requests),
                _family("events", "gauge", "Events in the log that this process has folded.", events),
                _family("fold_lag_events", "gauge", "Events in the log that this process has not folded yet.", lag),
                _family("arms", "gauge", "Arms that can be chosen.", n_arms),
                _family("ready", "gauge", "Whether the store can be used.", int(ready)),
            ]
        )

    def _histogram(self) -> dict[str, object]:
        buckets: dict[str, object] = {}
        below = 0
        for place, bound in enumerate(BOUNDS):
            below += self._latency[place]
            buckets[f'_bucket{{le="{bound}"}}'] = below
        total = self._latency.total()
        return buckets | {'_bucket{le="+Inf"}': total, "_sum": f"{self._seconds:.6f}", "_count": total}


def _family(name: str, kind: str, text: str, values: object) -> str:
    """Write one metric: a value, or {suffix of the name: value}."""
    name = f"banditree_{name}"
    by_label = values if isinstance(values, Mapping) else {"": values}
    lines = [
        f"# HELP {name} {text}",
        f"# TYPE {name} {kind}",
        *(f"{name}{at} {value}" for at, value in by_label.items()),
    ]
    return "\n".join(lines) + "\n"
