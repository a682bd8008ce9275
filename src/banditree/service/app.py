"""Handle the routes: turn each request into a command for the engine, and its outcome into a response."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Annotated, Literal, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from banditree import __version__
from banditree.base.files import Json
from banditree.errors import BanditreeError
from banditree.service import choosing, commands, edge, routes, schema, views
from banditree.service.commands import Refused
from banditree.service.engine import Engine
from banditree.service.events import MAIN, Event, say
from banditree.service.guard import (
    BODY,
    BUSY,
    GONE,
    ROUTE,
    Access,
    Guard,
    Metrics,
    Receive,
    Scope,
    Send,
    json_response,
)
from banditree.service.settings import check_experiment_name, read_settings
from banditree.service.state import State
from banditree.service.store import EventLog, StoreUnavailable
from banditree.service.stream import Hub

T = TypeVar("T", bound=BaseModel)
Listed = TypeVar("Listed", schema.DecisionRequest, schema.ListedReward)
Item = TypeVar("Item")
Done = TypeVar("Done")
OUTLOOK_SECONDS = 60.0  # between two checks of whether an experiment with --stop-at is done
OUTLOOK_REST = 5.0  # times that it took to compute, until it is computed again
MAX_COPIES = 8  # of policies, to show them
SETTLED_SECONDS = 1.0  # that an export waits for decisions that are just being stored


class Service:
    """The web application and the engine behind it."""

    def __init__(self, engine: Engine, access: Access | None = None) -> None:
        self.engine, self.access = engine, access or Access()
        self.metrics, self.hub = Metrics(), Hub()
        self._reader: EventLog | None = None
        self._reading = threading.Lock()
        self._copy = lru_cache(MAX_COPIES)(  # of a version, so that looking at it does not hold up decisions
            lambda name, version: views.on_whole_tree(engine.states[name].policy.to_bytes())
        )
        self._outlooks: dict[str, tuple[tuple[int, ...], float, Json]] = {}
        self._looking = asyncio.Lock()
        self._shelf, self._past = edge.Shelf(), edge.Past()
        self._done: set[str] = set()  # experiments that were said to be done
        engine.replica.watch, engine.replica.is_watched = self.hub.send, self.hub.has_listeners
        engine.writer.on_stored = self.metrics.count_events
        self._handlers: dict[str, tuple[Callable[..., Awaitable[Response]], type[BaseModel]]] = {
            route.handler: (handler := getattr(self, route.handler), routes.query_model(handler))
            for route in routes.TABLE
        }
        self.app = self._app()
        self.guarded = Guard(self._route, self.access, self.metrics)

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch_outlooks())
        yield
        watching.cancel()
        await asyncio.to_thread(self.engine.stop)
        with self._reading:
            if self._reader is not None:
                self._reader.close()

    def _app(self) -> FastAPI:
        app = FastAPI(
            title="banditree",
            version=__version__,
            description="Every route under /v1/ exists for each experiment under /v1/experiments/{name}/ too; the "
            "plain ones are those of the experiment `main`.",
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            lifespan=self._lifespan,
        )
        routes.describe(app, self)
        return app

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the handler of a route answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        handler, model = self._handlers[scope[ROUTE].handler]
        query = routes.read_query(model, scope["query_string"]) if scope["query_string"] else {}
        response = await handler(Request(scope, receive), **query)
        await response(scope, receive, send)

    # Decisions and rewards

    async def decide(self, request: Request) -> Response:
        """Decide once, or for each request of a list: then each is answered by itself, in order."""
        name = _experiment(request)

        def command(asked: schema.DecisionRequest) -> commands.Command:
            return commands.Decide(asked.id, asked.request(), self.engine.salt, experiment=name)

        return await self._do_listed(request, schema.DecisionRequest, command)

    async def look_up(self, request: Request) -> Response:
        id_, state = _decision_id(request), self._state(request)
        history = await self._read(lambda log: log.find(state.name, [id_])[id_])
        return json_response(200, commands.describe_decision(history, id_, state.settings, self.engine.log.now()))

    async def withdraw(self, request: Request) -> Response:
        return await self._do(request, commands.Withdraw(_decision_id(request), experiment=_experiment(request)))

    async def expose(self, request: Request) -> Response:
        """Say that somebody saw what was decided: with the setting ``exposure``, other decisions do not count."""
        return await self._do(request, commands.Expose(_decision_id(request), experiment=_experiment(request)))

    async def reward(self, request: Request) -> Response:
        asked = read(request, schema.RewardRequest)
        command = commands.GiveReward(
            _decision_id(request), asked.reward, asked.position, asked.arm, experiment=_experiment(request)
        )
        return await self._do(request, command)

    async def reward_listed(self, request: Request) -> Response:
        """Report the reward of a decision that the body names, or of each in a list."""
        name = _experiment(request)

        def command(asked: schema.ListedReward) -> commands.Command:
            return commands.GiveReward(asked.id, asked.reward, asked.position, asked.arm, experiment=name)

        return await self._do_listed(request, schema.ListedReward, command)

    async def batch(self, request: Request) -> Response:
        """Record decisions that a client has made itself, exposures, and then rewards. A batch may be sent again."""
        asked, name = read(request, schema.BatchRequest), self._state(request).name

        def decision(row: schema.DecisionMade) -> commands.Command:
            return edge.RecordDecision(row.id, row, self.engine.salt, self._past, experiment=name)

        def exposure(row: schema.Exposure) -> commands.Command:
            return commands.Expose(row.id, experiment=name)

        def reward(row: schema.RewardGiven) -> commands.Command:
            return commands.GiveReward(row.id, row.reward, row.position, row.arm, row.at, experiment=name)

        results = await self._run_rows(request, asked.decisions, schema.DecisionMade, decision)
        results += await self._run_rows(request, asked.exposures, schema.Exposure, exposure)
        results += await self._run_rows(request, asked.rewards, schema.RewardGiven, reward)
        refused = [result for result in results if not isinstance(result, commands.Outcome)]
        for result in refused:
            if result["status"] == 503:
                raise Refused(503, result["error"])
        done = [result.answer["status"] for result in results if isinstance(result, commands.Outcome)]
        n_known = done.count("duplicate")
        return json_response(200, {"accepted": len(done) - n_known, "duplicate": n_known, "refused": refused})

    async def _do_listed(
        self, request: Request, kind: type[Listed], command: Callable[[Listed], commands.Command]
    ) -> Response:
        """Carry out a request, or each one of a list; answers have the ids that were given."""
        if not request.scope[BODY].lstrip().startswith(b"["):
            asked = read(request, kind)
            outcome = await self._run(request, command(asked))
            return json_response(outcome.code, {"id": asked.id} | outcome.answer)
        rows = schema.read(schema.List.validate_json, request.scope[BODY])
        results = await self._run_rows(request, rows, kind, command)
        ids = ({"id": row["id"]} if isinstance(row, dict) and "id" in row else {} for row in rows)
        answers = [
            given | (result.answer if isinstance(result, commands.Outcome) else result)
            for given, result in zip(ids, results, strict=True)
        ]
        return json_response(200, answers)

    async def _run_rows(
        self, request: Request, rows: Sequence[object], kind: type[T], command: Callable[[T], commands.Command]
    ) -> list[commands.Outcome | Json]:
        """Run a command for each row, some at a time; return its outcome, or why there is none."""

        async def run(row: object) -> commands.Outcome | Json:
            try:
                return await self._run(request, command(schema.read(kind.model_validate, row)))
            except (Refused, BanditreeError) as error:
                id_ = row.get("id") if isinstance(row, dict) else None
                known = {"id": id_} if isinstance(id_, str) else {}
                return known | {"error": str(error), "status": commands.refusal(error).code}

        return await self._in_parts(run, rows)

    async def _in_parts(self, run: Callable[[Item], Awaitable[Done]], rows: Sequence[Item]) -> list[Done]:
        """Run something for each row, some at a time."""
        results: list[Done] = []
        for start in range(0, len(rows), schema.MAX_LIST):
            some = rows[start : start + schema.MAX_LIST]
            with self.guarded.counting(len(some) - 1):
                results += await asyncio.gather(*map(run, some))
        return results

    async def policy(self, request: Request, group: Literal["policy", "control"] = "policy") -> Response:
        """The policy as `Policy.to_bytes` writes it; headers have the event it stands at, and what else it takes."""
        standing = await self._standing(self._state(request), group)
        headers = {
            "etag": standing.tag,
            "cache-control": "no-cache",
            "banditree-event": str(standing.event),
            "banditree-standing": standing.about,
        }
        if request.headers.get("if-none-match") == standing.tag:
            return Response(status_code=304, headers=headers)
        return Response(standing.data, headers=headers, media_type="application/octet-stream")

    async def weights(
        self,
        request: Request,
        context: str | None = None,
        format: Literal["json", "flagd"] = "json",  # noqa: A002
    ) -> Response:
        """How likely each arm is to be chosen now, in the policy's group, rounded to billionths: log these.

        ``context`` is as in a decision, as JSON; ``format=flagd`` is the definition of a flag with a fractional rule.
        """
        state = self._state(request)
        try:
            given = None if context is None else json.loads(context)
        except (ValueError, RecursionError):
            raise Refused(422, 'context: give JSON, such as {"device": "phone"}') from None
        has_control, settings = state.is_paused and state.control is not None, state.settings
        standing = await self._standing(state, "control" if has_control else "policy")
        learns = has_control or not state.is_paused

        def compute() -> dict[str, int]:
            policy = self._shelf.load(standing.data)
            vector = None if policy.dim is None else choosing.encode_context(state, given)
            return edge.chances(policy, settings, learns=learns, context=vector)

        async with self._looking:
            weights = await asyncio.to_thread(compute)
        if format == "flagd":
            return json_response(200, edge.as_flag(state.name, weights, standing.event))
        shares = {arm: weight / edge.BILLION for arm, weight in weights.items()}
        return json_response(200, {"weights": shares, "event": standing.event})

    async def _standing(self, state: State, group: str = "policy") -> edge.Published:
        return await self.engine.look(lambda its: self._shelf.take(its, self.engine.salt, group), state)

    async def _do(self, request: Request, command: commands.Command) -> Response:
        outcome = await self._run(request, command)
        if command.said and outcome.events:
            client, token = request.client, self.access.name(request.headers.get("authorization"))
            by = " with ".join(filter(None, (client and client.host, token)))
            say(command.said, experiment=command.experiment, by=by, answer=outcome.answer)
        return json_response(outcome.code, outcome.answer)

    async def _run(self, request: Request, command: commands.Command) -> commands.Outcome:
        self._check_store()
        with self.guarded.counting(command.size - 1):
            return await self.engine.do(command, lambda: GONE in request.scope)

    def _check_store(self) -> None:
        if self.engine.unavailable is not None:
            raise StoreUnavailable(self.engine.unavailable)

    def _state(self, request: Request) -> State:
        """Return the state of the experiment that a request names."""
        name = _experiment(request)
        state = self.engine.states.get(name)
        if state is None or state.is_empty:
            others = ", ".join(list(self.engine.states)[:10])
            raise Refused(404, f"there is no experiment {name!r}; there are {others}")
        return state

    # Experiments

    async def change_arms(self, request: Request) -> Response:
        asked = read(request, schema.ArmsRequest)
        return await self._do(
            request, commands.ChangeArms(asked.add, asked.move, asked.remove, experiment=_experiment(request))
        )

    async def pause(self, request: Request) -> Response:
        """Let the control policy decide for everybody, and learn nothing."""
        read(request, schema.RequestBody)
        return await self._do(request, commands.Pause(True, experiment=_experiment(request)))

    async def resume(self, request: Request) -> Response:
        read(request, schema.RequestBody)
        return await self._do(request, commands.Pause(False, experiment=_experiment(request)))

    async def void(self, request: Request) -> Response:
        """Leave decisions and their rewards out of all that was learned, as if they had never been."""
        asked, name = read(request, schema.VoidRequest), self._state(request).name
        response = await self._do(request, commands.Void(asked.what(), experiment=name))
        while self.engine.is_refolding(name) and GONE not in request.scope:
            await asyncio.sleep(0.02)
        return response

    async def put_experiment(self, request: Request) -> Response:
        asked = read(request, schema.ExperimentRequest)
        name = check_experiment_name(request.path_params["name"])
        settings = read_settings(asked.model_dump(exclude={"arms"}))
        return await self._do(request, commands.PutExperiment(settings, asked.arms, experiment=name))

    async def get_experiment(self, request: Request) -> Response:
        state = self._state(request)
        return json_response(200, views.describe(state) | {"settings": state.settings.to_dict()})

    async def change_experiment(self, request: Request) -> Response:
        """Change the settings that are given; null is the default. What was learned is folded again if necessary."""
        given = read(request, schema.SettingsRequest).model_dump(exclude_unset=True)
        return await self._do(request, commands.ChangeSettings(given, experiment=self._state(request).name))

    async def delete_experiment(self, request: Request) -> Response:
        """Delete an experiment. Its events stay in the store, and its name is not used again."""
        return await self._do(request, commands.DeleteExperiment(experiment=self._state(request).name))

    async def experiments(self, request: Request) -> Response:
        states = [state for state in list(self.engine.states.values()) if not state.is_empty]
        return json_response(200, {"experiments": [views.describe(state) for state in states]})

    # OpenFeature's remote evaluation protocol: https://github.com/open-feature/protocol

    async def evaluate_flag(self, request: Request) -> Response:
        key = request.path_params["key"]
        try:
            return json_response(200, await self._evaluate(request, key, _visitor(request)))
        except (Refused, schema.Misread) as error:
            return json_response(404 if error.code == 404 else 400, {"key": key} | _flag_error(error))

    async def evaluate_flags(self, request: Request) -> Response:
        try:
            visitor = _visitor(request)
        except schema.Misread as error:
            return json_response(400, _flag_error(error))

        async def evaluate(key: str) -> Json:
            try:
                return await self._evaluate(request, key, visitor)
            except Refused as error:
                return {"key": key} | _flag_error(error)

        flags = await self._in_parts(evaluate, list(self.engine.states))
        response = json_response(200, {"flags": flags})
        tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
        response.headers["etag"] = tag
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        return response

    async def _evaluate(self, request: Request, key: str, visitor: Json) -> Json:
        """Decide for a visitor, and answer as a flag."""
        state = self.engine.states.get(key)
        if state is None:
            raise Refused(404, f"there is no experiment {key!r}")
        asked: Json = {"unit": visitor["targetingKey"]}
        if state.features is not None:
            asked["context"] = {name: visitor[name] for name in state.features.spec if name in visitor}
        answer = (await self._run(request, commands.Decide(None, asked, self.engine.salt, experiment=key))).answer
        return {
            "key": key,
            "reason": "SPLIT",
            "variant": answer["arm"],
            "value": answer["arm"],
            "metadata": {"decision": answer["id"], "propensity": answer["propensity"], "group": answer["group"]},
        }

    # Looking

    async def tree(self, request: Request, depth: int | None = None, under: str = "[]", search: str = "") -> Response:
        """List the nodes below a cluster, given as a JSON list of names; without one, below the root."""
        state = self._state(request)
        try:
            path = json.loads(under)
        except (ValueError, RecursionError):
            path = None
        if not isinstance(path, list) or not all(isinstance(name, str) for name in path):
            raise Refused(422, 'under: give a JSON list of names, such as ["clothes", "hats"]')

        def look() -> Response:
            return json_response(200, views.nodes(self._copy(state.name, state.version), depth, path, search))

        async with self._looking:
            return await asyncio.to_thread(look)

    async def list_arms(self, request: Request) -> Response:
        state = self._state(request)
        return await asyncio.to_thread(lambda: json_response(200, {"arms": commands.paths_of(state)}))

    async def traffic(self, request: Request) -> Response:
        state = self._state(request)
        return json_response(200, await self.engine.look(views.traffic, state))

    async def report(self, request: Request) -> Response:
        """Say what the experiment is worth, with an interval that stays valid however often one looks."""
        return json_response(200, await self._report(self._state(request)))

    async def _report(self, state: State) -> Json:
        at = self.engine.log.now()
        report: Json = await self.engine.look(lambda its: views.report(its, at), state)
        async with self._looking:
            outlook = await asyncio.to_thread(self._outlook, state)
        return report | outlook | {"sentences": report["sentences"] + outlook["sentences"]}

    def _outlook(self, state: State) -> Json:
        """Return the best arms and the remaining value, rarely enough for busy policies that it costs little."""
        version, began = state.version, time.monotonic()
        known = self._outlooks.get(state.name)
        if known is None or (known[0] != version and began > known[1]):
            outlook = views.outlook(state.policy.to_bytes(), state.settings.stop_at)
            end = time.monotonic()
            known = version, end + OUTLOOK_REST * (end - began), outlook
            self._outlooks[state.name] = known
        return known[2]

    async def _watch_outlooks(self) -> None:
        """Say once in the lines on stderr that an experiment with ``stop_at`` has little left to learn."""
        while True:
            for name, state in list(self.engine.states.items()):
                if state.settings.stop_at is not None and not state.is_empty and name not in self._done:
                    report = await self._report(state)
                    if report["done"]:
                        self._done.add(name)
                        say("little left to learn", experiment=name, remaining=report["remaining"])
            await asyncio.sleep(OUTLOOK_SECONDS)

    async def log(
        self,
        request: Request,
        format: Literal["ndjson", "csv"] = "ndjson",  # noqa: A002
        after: Annotated[int, Field(ge=0, lt=2**63)] = 0,
        limit: Annotated[int, Field(ge=1, lt=2**31)] | None = None,
    ) -> Response:
        """The decisions after an event, as they are sent: what a client does not read yet is not read from the store.

        The header Banditree-Next has the event to go on from.
        """
        state = self._state(request)

        def begin() -> views.LogReader:
            log = self.engine.log.reading()
            reader = views.LogReader(log, state, until=max(log.settled(SETTLED_SECONDS), after))
            if limit is not None:
                reader.limit(after, limit)
            return reader

        reader = await asyncio.to_thread(begin)
        pages = reader.csv(after) if format == "csv" else reader.ndjson(after)
        media = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
        return StreamingResponse(pages, media_type=media, headers={"banditree-next": str(reader.until)})

    async def events(self, request: Request) -> Response:
        """Send the events of all experiments; under an experiment's own path, only those of it."""
        name = self._state(request).name if "name" in request.path_params else None
        if self.hub.is_full:
            raise Refused(503, BUSY)
        text = request.headers.get("last-event-id", "")
        last = int(text) if text.isdecimal() and len(text) < 19 else None

        async def read_events(after: int, most: int) -> list[Event]:
            return await self._read(lambda log: log.events(after, most, name, until=self.engine.n))

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        stream = self.hub.listen(last, read_events, name)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _read(self, act: Callable[[EventLog], Done]) -> Done:
        """Read from the log without waiting for the thread that writes."""

        def reading() -> Done:
            with self._reading:
                self._reader = self._reader or self.engine.log.reading()
                try:
                    return act(self._reader)
                except StoreUnavailable:
                    self._reader.close()
                    self._reader = None
                    raise

        try:
            return await asyncio.to_thread(reading)
        except OSError as error:
            raise StoreUnavailable(str(error)) from error

    # Operations and pages

    async def healthz(self, request: Request) -> Response:
        return json_response(200, {"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        self._check_store()
        return json_response(200, {"status": "ready", "events": self.engine.n})

    async def read_metrics(self, request: Request) -> Response:
        engine = self.engine
        text = self.metrics.text(
            events=engine.n,
            lag=max(0, engine.log.head - engine.replica.until),  # numbers of the log, some of which may be missing
            arms={state.name: state.policy.tree.n_arms for state in list(engine.states.values()) if not state.is_empty},
            ready=engine.unavailable is None,
        )
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def page(self, request: Request) -> Response:
        text, headers = views.page("live.html", token=bool(self.access.tokens))
        return HTMLResponse(text, headers=headers)

    async def openapi(self, request: Request) -> Response:
        return json_response(200, self.app.openapi())

    async def docs(self, request: Request) -> Response:
        text, headers = views.page("docs.html", described=self.app.openapi(), as_json=partial(json.dumps, indent=2))
        return HTMLResponse(text, headers=headers)


def read(request: Request, kind: type[T]) -> T:
    """Read the body of a request."""
    return schema.read(kind.model_validate_json, request.scope[BODY].strip() or b"{}")  # an empty one means {}


def _visitor(request: Request) -> Json:
    """Read whom an OFREP request is for: ``targetingKey``, and the context by name."""
    return read(request, schema.FlagRequest).context.model_dump()


def _flag_error(error: Refused | schema.Misread) -> dict[str, str]:
    """Describe an error as the protocol does: a flag that does not exist, or a request or context that does not fit."""
    code = {400: "PARSE_ERROR", 404: "FLAG_NOT_FOUND"}.get(error.code, "INVALID_CONTEXT")
    if error.code == 503:
        raise error
    if isinstance(error, schema.Misread):
        first = error.errors[0]
        if first["loc"] == ("context", "targetingKey") and (first["type"] == "missing" or not first["input"]):
            code = "TARGETING_KEY_MISSING"
    return {"errorCode": code, "errorDetails": str(error)}


def _experiment(request: Request) -> str:
    """Return the name of the experiment that a request's path names."""
    return str(request.path_params.get("name", MAIN))


def _decision_id(request: Request) -> str:
    """Return the id in the path, if a decision can have it; if not, it does not exist."""
    id_ = str(request.path_params["id"])
    if not id_.isprintable() or len(id_) > schema.MAX_NAME:
        raise Refused(404, f"there is no decision {id_[: schema.MAX_NAME]!r}")
    return id_
