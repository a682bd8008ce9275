"""Check the token and the size of every request, measure its time, and catch unexpected errors."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import Response

from banditree.service import logs
from banditree.service.metrics import Metrics

MOST_BYTES = 2**20
WRONG = "the service failed to handle this request; its log on stderr has the details"
OPEN = {"/", "/healthz", "/readyz", "/docs", "/openapi.json"}  # need no token, because they show no data
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class TooLarge(Exception):
    """A request body is larger than allowed."""

    def __str__(self) -> str:
        return f"the body is larger than {MOST_BYTES:,} bytes; send less"


class Guard:
    """An ASGI application that wraps another one."""

    def __init__(self, app: Any, token: str | None, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        code = 0

        async def sending(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._passed(scope, receive, sending)
        except Exception as error:
            logs.failure(f"{scope['method']} {scope['path']}", error)
            if code == 0:
                await failed(500, WRONG)(scope, receive, sending)
        finally:
            if scope["path"] != "/v1/events":
                self.metrics.answered(scope["method"], scope["path"], code, time.perf_counter() - began)

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value for name, value in scope["headers"] if name in (b"authorization", b"content-length")}
        if self._token is not None and scope["path"] not in OPEN and not self._known(headers.get(b"authorization")):
            need = failed(
                401, "this needs the service's token: Authorization: Bearer ...", **{"www-authenticate": "Bearer"}
            )
            await need(scope, receive, send)
            return
        if int(headers.get(b"content-length", b"0")) > MOST_BYTES:
            await failed(413, str(TooLarge()))(scope, receive, send)
            return
        received = 0

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MOST_BYTES:
                raise TooLarge
            return message

        await self.app(scope, receiving, send)

    def _known(self, given: bytes | None) -> bool:
        assert self._token is not None
        scheme, _, token = (given or b"").partition(b" ")
        same = hmac.compare_digest(token.strip(), self._token)
        return scheme.lower() == b"bearer" and same


def answered(code: int, content: dict[str, Any], **headers: str) -> Response:
    """Make a response with a JSON body."""
    return Response(json.dumps(content), code, headers, "application/json")


def failed(code: int, sentence: str, **headers: str) -> Response:
    """Make the response of a request that failed."""
    return answered(code, {"error": sentence}, **headers)
