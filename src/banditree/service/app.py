"""Handle the routes: turn each request into a command for the engine, and its outcome into a response."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from banditree import __version__
from banditree.service import openapi, pages, schema, views
from banditree.service.commands import ChangeArms, Command, Decide, GiveReward, Refused, Withdraw, looked_up
from banditree.service.engine import Engine
from banditree.service.events import Event
from banditree.service.guard import WRONG, Guard, TooLarge, answered, failed
from banditree.service.metrics import Metrics
from banditree.service.store import Away, EventLog
from banditree.service.stream import Hub

T = TypeVar("T", bound=BaseModel)
REPLAYED = 10_000  # missed events that a listener of the live stream gets, at most


class Service:
    """The web application and the engine behind it."""

    def __init__(self, engine: Engine, *, token: str | None = None) -> None:
        self.engine, self.token = engine, token
        self.metrics, self.hub = Metrics(), Hub()
        self._reader: EventLog | None = None
        self._reading = threading.Lock()
        self._tree: tuple[tuple[int, int | None], bytes] = ((-1, None), b"")  # the last answer, by event and depth
        self._looking = asyncio.Lock()
        engine.watch = self._watch
        self.app = self._app()
        self.guarded = Guard(self.app, token, self.metrics)

    def _watch(self, events: Any) -> None:
        self.metrics.kept(events)
        self.hub.tell(events)

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        self.hub.open()
        yield
        await asyncio.to_thread(self.engine.stop)
        with self._reading:
            if self._reader is not None:
                self._reader.close()

    def _app(self) -> FastAPI:
        app = FastAPI(title="banditree", version=__version__, docs_url=None, redoc_url=None, lifespan=self._lifespan)
        app.exception_handler(Refused)(lambda _, error: failed(error.code, str(error)))
        app.exception_handler(Away)(lambda _, error: failed(503, str(error)))
        app.exception_handler(TooLarge)(lambda _, error: failed(413, str(error)))
        app.exception_handler(Exception)(lambda _, __: failed(500, WRONG))
        app.exception_handler(RequestValidationError)(lambda _, error: failed(422, said(error.errors())))
        app.exception_handler(StarletteHTTPException)(_http_error)
        openapi.add_routes(app, self)
        return app

    # Decisions and rewards

    async def decide(self, request: Request) -> Response:
        asked = await read(request, schema.DecisionAsked)
        return await self._do(Decide(asked.id, asked.request()))

    async def look_up(self, id: str) -> Response:  # noqa: A002
        known = await self._read(lambda log: log.find([possible(id)])[id])
        return answered(200, looked_up(known, id))

    async def withdraw(self, id: str) -> Response:  # noqa: A002
        return await self._do(Withdraw(possible(id)))

    async def reward(self, request: Request) -> Response:
        asked = await read(request, schema.RewardAsked)
        id_ = possible(request.path_params["id"])
        return await self._do(GiveReward(id_, asked.reward, asked.position, asked.arm))

    async def arms(self, request: Request) -> Response:
        asked = await read(request, schema.ArmsAsked)
        return await self._do(ChangeArms(asked.add, asked.move, asked.remove))

    async def _do(self, command: Command) -> Response:
        if self.engine.away is not None:
            raise Away(self.engine.away)
        outcome = await self.engine.do(command)
        return answered(outcome.code, outcome.answer)

    # Looking

    async def tree(self, depth: int | None = None) -> Response:
        async with self._looking:
            at = max(self.engine.state.policy_version, self.engine.state.tree_version), depth
            if self._tree[0] != at:
                found = await asyncio.to_thread(lambda: views.nodes(self.engine.state.policy.to_bytes(), depth))
                self._tree = at, json.dumps({"nodes": found}).encode()
            return Response(self._tree[1], media_type="application/json")

    async def traffic(self) -> Response:
        return answered(200, views.traffic(self.engine.state.traffic))

    async def log(self, format: str = "ndjson") -> Response:  # noqa: A002
        if format not in ("ndjson", "csv"):
            raise Refused(422, f"format={format!r} must be ndjson or csv")
        log = await asyncio.to_thread(self.engine.log.reading)
        rows = views.log_rows(log)
        lines = views.as_csv(rows) if format == "csv" else views.as_ndjson(rows)
        media = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
        return StreamingResponse(_in_chunks(lines), media_type=media)

    async def events(self, request: Request) -> Response:
        text = request.headers.get("last-event-id", "")

        async def missed() -> list[Event]:
            return await self._read(lambda log: log.events(int(text), REPLAYED)) if text.isdecimal() else []

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.hub.listen(missed), media_type="text/event-stream", headers=headers)

    async def _read(self, act: Callable[[EventLog], Any]) -> Any:
        """Read from the log without waiting for the thread that writes."""

        def reading() -> Any:
            with self._reading:
                self._reader = self._reader or self.engine.log.reading()
                try:
                    return act(self._reader)
                except Away:
                    self._reader.close()
                    self._reader = None
                    raise

        try:
            return await asyncio.to_thread(reading)
        except OSError as error:
            raise Away(str(error)) from error

    # Operations and pages

    async def healthz(self) -> Response:
        return answered(200, {"status": "alive"})

    async def readyz(self) -> Response:
        if self.engine.away is not None:
            raise Away(self.engine.away)
        return answered(200, {"status": "ready", "events": self.engine.state.n})

    async def read_metrics(self) -> Response:
        engine = self.engine
        text = self.metrics.text(
            events=engine.state.n,
            lag=max(0, engine.head - engine.state.n),
            arms=engine.state.policy.tree.n_arms,
            ready=engine.away is None,
        )
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def page(self) -> Response:
        text = pages.live(self.engine.settings.policy, token=self.token is not None)
        return HTMLResponse(text, headers=pages.headers(text))

    async def docs(self) -> Response:
        text = pages.docs(self.app.openapi())
        return HTMLResponse(text, headers=pages.headers(text))


async def read(request: Request, kind: type[T]) -> T:
    """Read the body of a request; an empty one means {}."""
    body = await request.body()
    try:
        return kind.model_validate_json(body if body.strip() else b"{}")
    except ValidationError as error:
        errors: list[Any] = error.errors(include_url=False)
        code = 400 if errors[0]["type"] == "json_invalid" else 422
        raise Refused(code, said(errors)) from None


def possible(id_: str) -> str:
    """Check that a decision can have this id; if not, it does not exist."""
    if not id_.isprintable() or len(id_) > schema.LONGEST_NAME:
        raise Refused(404, f"there is no decision {id_[: schema.LONGEST_NAME]!r}")
    return id_


def said(errors: Any) -> str:
    """Say in one sentence what is wrong with a request."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']}"
    place = ".".join(str(part) for part in first["loc"] if part != "query") or "the body"
    more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
    what = first["msg"].removeprefix("Value error, ")
    return f"{place[:200]}: {what[:1].lower()}{what[1:]}{more}"


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException | StarletteHTTPException)
    sentences = {404: "there is nothing here; /docs lists the routes", 405: "this route does not take this method"}
    sentence = sentences.get(error.status_code, str(error.detail))
    return failed(error.status_code, sentence, **(error.headers or {}))


def _in_chunks(lines: Iterator[str]) -> Iterator[str]:
    """Join the lines to longer pieces, which are sent faster."""
    while part := "".join(islice(lines, 200)):
        yield part
