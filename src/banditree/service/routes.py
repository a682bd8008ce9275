"""The one table of routes. Routing, roles, the labels of metrics and OpenAPI are derived from it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import get_type_hints
from urllib.parse import parse_qsl

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, create_model

from banditree.base.files import Json
from banditree.errors import InvalidValue
from banditree.service import schema as s

DECIDE, READ, ADMIN = "decide", "read", "admin"
ROLES = frozenset({DECIDE, READ, ADMIN})
DECIDERS, READERS, ADMINS = frozenset({DECIDE, ADMIN}), frozenset({READ, ADMIN}), frozenset({ADMIN})
EACH = "/v1/experiments/{name}/"  # where an experiment has the routes that are below /v1/
FLAGS = "/ofrep/v1/evaluate/flags"
TABLES = ("application/x-ndjson", "text/csv")
BAD_BODY = (400, 413)

Answers = Mapping[int, object]  # a model, a tuple of media types, or None, by status


@dataclass(frozen=True)
class Route:
    """A method and a path with their handler, roles and description."""

    method: str
    path: str
    handler: str  # a method of `Service`; its keyword parameters are the query parameters
    summary: str
    answers: Answers = field(default_factory=lambda: {200: None})
    errors: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    roles: frozenset[str] = ADMINS  # of which a request needs one
    is_open: bool = False  # needs no token, because it shows no data
    is_urgent: bool = False  # answered even when the service is busy
    is_endless: bool = False  # a stream that lasts as long as its client
    is_hidden: bool = False  # not in OpenAPI
    is_listed: bool = False  # takes a list of such bodies too, and answers with a list

    @property
    def is_of_experiment(self) -> bool:
        """Whether every experiment has it, under `EACH`; the short path is that of `main`."""
        return self.path.startswith("/v1/") and not self.path.startswith("/v1/experiments")


DECISION, NAMED = "/v1/decisions/{id}", "/v1/experiments/{name}"
DECIDED: Answers = {201: s.DecisionAnswer, 200: s.DecisionAnswer | list[s.DecisionAnswer | s.NotDone]}
REWARDED: Answers = {200: s.RewardListedAnswer | list[s.RewardListedAnswer | s.NotDone]}
EXPOSED: Answers = {200: s.RewardListedAnswer}
STANDING: Answers = {200: ("application/octet-stream",), 304: None}
WEIGHTS: Answers = {200: s.WeightsAnswer | s.FlagdAnswer}
CREATED = {201: s.ExperimentAnswer, 200: s.ExperimentAnswer}
EVALUATED: Answers = {200: s.FlagsAnswer, 304: None}
CHANGE, ABOUT = (*BAD_BODY, 409), (404, 409)

TABLE = (
    Route("POST", "/v1/decisions", "decide", "Decide", DECIDED, CHANGE, s.DecisionRequest, DECIDERS, is_listed=True),
    Route("GET", DECISION, "look_up", "Look up a decision", {200: s.DecisionLooked}, roles=ROLES),
    Route("DELETE", DECISION, "withdraw", "Withdraw a decision", {200: s.WithdrawnAnswer}, ABOUT, roles=DECIDERS),
    Route(
        *("PUT", DECISION + "/reward", "reward", "Report a reward", {200: s.RewardAnswer}, CHANGE, s.RewardRequest),
        roles=DECIDERS,
    ),
    Route("POST", DECISION + "/exposure", "expose", "Say that it was seen", EXPOSED, ABOUT, roles=DECIDERS),
    Route(
        *("POST", "/v1/rewards", "reward_listed", "Report rewards", REWARDED, CHANGE, s.ListedReward),
        roles=DECIDERS,
        is_listed=True,
    ),
    Route(
        *("POST", "/v1/batch", "batch", "Record decisions of clients", {200: s.BatchAnswer}, BAD_BODY, s.BatchRequest),
        roles=DECIDERS,
    ),
    Route("GET", "/v1/policy", "policy", "The policy, to decide elsewhere", STANDING, roles=DECIDERS),
    Route("GET", "/v1/weights", "weights", "How likely each arm is", WEIGHTS, roles=DECIDERS),
    Route("GET", "/v1/arms", "list_arms", "The arms and the clusters above them", {200: s.ArmsListed}, roles=READERS),
    Route("POST", "/v1/arms", "change_arms", "Add, move and remove arms", {200: s.ArmsAnswer}, CHANGE, s.ArmsRequest),
    Route("GET", "/v1/tree", "tree", "The tree and what was learned", {200: s.TreeAnswer}, roles=READERS),
    Route("GET", "/v1/report", "report", "The lift over the control group", {200: s.ReportAnswer}, roles=READERS),
    Route("GET", "/v1/traffic", "traffic", "Decisions over time", {200: s.TrafficAnswer}, roles=READERS),
    Route("GET", "/v1/log", "log", "The log, one row per decision", {200: TABLES}, roles=READERS),
    Route(
        *("GET", "/v1/events", "events", "Events as they happen", {200: ("text/event-stream",)}),
        roles=READERS,
        is_endless=True,
    ),
    Route("POST", "/v1/pause", "pause", "Stop learning", {200: s.PausedAnswer}, BAD_BODY, s.RequestBody),
    Route("POST", "/v1/resume", "resume", "Go on after a pause", {200: s.PausedAnswer}, BAD_BODY, s.RequestBody),
    Route("POST", "/v1/void", "void", "Undo decisions and their rewards", {200: s.VoidAnswer}, CHANGE, s.VoidRequest),
    Route("GET", "/v1/experiments", "experiments", "All experiments", {200: s.ExperimentsAnswer}, roles=READERS),
    Route("PUT", NAMED, "put_experiment", "Create an experiment", CREATED, CHANGE, s.ExperimentRequest),
    Route("GET", NAMED, "get_experiment", "An experiment and its settings", {200: s.ExperimentLooked}, roles=READERS),
    Route("PATCH", NAMED, "change_experiment", "Change settings", {200: s.SettingsAnswer}, CHANGE, s.SettingsRequest),
    Route("DELETE", NAMED, "delete_experiment", "Delete an experiment", {200: s.DeletedAnswer}),
    Route("POST", FLAGS + "/{key}", "evaluate_flag", "Evaluate a flag", {200: s.FlagAnswer}, BAD_BODY, roles=DECIDERS),
    Route("POST", FLAGS, "evaluate_flags", "Evaluate all flags", EVALUATED, BAD_BODY, roles=DECIDERS),
    Route("GET", "/metrics", "read_metrics", "Metrics for Prometheus", {200: ("text/plain",)}, roles=READERS),
    Route("GET", "/healthz", "healthz", "Whether the process is alive", is_open=True, is_urgent=True),
    Route("GET", "/readyz", "readyz", "Whether it can decide and store", is_open=True, is_urgent=True),
    Route("GET", "/", "page", "The live page", is_open=True, is_hidden=True),
    Route("GET", "/docs", "docs", "This description as a page", is_open=True, is_hidden=True),
    Route("GET", "/openapi.json", "openapi", "This description", is_open=True, is_hidden=True),
)  # fmt: skip


@dataclass
class Place:
    """A node of the tree of path segments: the routes of its path by method, and the names in its braces."""

    inner: dict[str, Place] = field(default_factory=dict)  # by the next segment; "{}" is any
    routes: dict[str, Route] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def _places() -> Place:
    root = Place()
    for route in TABLE:
        for path in (route.path, route.path.replace("/v1/", EACH, 1))[: 1 + route.is_of_experiment]:
            place = root
            for segment in path[1:].split("/"):
                place = place.inner.setdefault("{}" if segment.startswith("{") else segment, Place())
            place.routes[route.method], place.names = route, tuple(re.findall(r"\{(\w+)\}", path))
    return root


_PLACES = _places()


def find(path: str) -> tuple[dict[str, Route], dict[str, str]]:
    """Return the routes of a path by method, none if there is nothing, and what stands in place of the braces.

    >>> routes, names = find("/v1/experiments/shop/decisions/7/reward")
    >>> routes["PUT"].path, names
    ('/v1/decisions/{id}/reward', {'name': 'shop', 'id': '7'})
    """
    place, values = _PLACES, []
    for segment in path[1:].split("/"):
        inner = place.inner.get(segment)
        if inner is None and segment:
            inner = place.inner.get("{}")
            values.append(segment)
        if inner is None:
            return {}, {}
        place = inner
    return place.routes, dict(zip(place.names, values, strict=False))


# Query parameters


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid")


def query_model(handler: Callable[..., object]) -> type[BaseModel]:
    """Describe the query parameters of a handler: its keyword parameters."""
    types = get_type_hints(handler, include_extras=True)
    parameters = [each for each in inspect.signature(handler).parameters.values() if each.name != "request"]
    described: Json = {each.name: (types[each.name], each.default) for each in parameters}
    return create_model("Query", __base__=_Query, **described)


def read_query(model: type[BaseModel], text: bytes) -> Json:
    """Read query parameters; refuse one that the route does not take, or that is given twice."""
    pairs = parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    given = dict(pairs)
    for name in given:
        if name not in model.model_fields:
            takes = ", ".join(model.model_fields) or "none"
            raise InvalidValue(f"there is no query parameter {name[:60]!r} here; this route takes {takes}")
    if len(given) < len(pairs):
        raise InvalidValue("a query parameter is given twice")
    return dict(s.read(model.model_validate, given))


# OpenAPI

WORDS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The token may not do this, or the request comes from a page of another site.",
    404: "There is no such decision or experiment.",
    408: "The body took too long to arrive.",
    409: "This contradicts what is in the log.",
    413: "The body is larger than 1 MiB.",
    422: "A value is not allowed here.",
    503: "The database cannot be reached, or too many requests are waiting; try again.",
}
ANSWERED = {200: "Done.", 201: "Decided or created, and stored.", 304: "Nothing has changed."}
ALWAYS = (401, 403, 404, 408, 422, 503)  # errors that every route may answer with


def describe(app: FastAPI, service: object) -> None:
    """Add the routes to the application that writes the OpenAPI description."""
    for route in TABLE:
        responses: dict[int | str, Json] = {}
        for code, kind in route.answers.items():
            responses[code] = {"description": ANSWERED[code]} | _content(kind)
        for code in (*route.errors, *ALWAYS):
            is_flag = route.path.startswith(FLAGS) and code in (400, 404)
            responses[code] = {"model": s.FlagError if is_flag else s.ErrorAnswer, "description": WORDS[code]}
        handler = getattr(service, route.handler)
        app.add_api_route(
            route.path,
            handler,
            methods=[route.method],
            summary=route.summary,
            description=handler.__doc__ or "",
            response_model=None,
            status_code=next(iter(route.answers)),
            responses=responses,
            response_class=Response,
            openapi_extra=_body(route.body, is_listed=route.is_listed) | _parameters(route.path),
            include_in_schema=not route.is_hidden,
        )


def _content(kind: object) -> Json:
    if isinstance(kind, tuple):
        return {"content": {media: {"schema": {"type": "string"}} for media in kind}}
    return {} if kind is None else {"model": kind}


def _parameters(path: str) -> Json:
    """Describe the parameters in a path, which the handlers read from the request."""
    names = re.findall(r"\{(\w+)\}", path)
    described = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    return {"parameters": described} if names else {}


def _body(kind: type[BaseModel] | None, *, is_listed: bool) -> Json:
    """Describe the request body, which FastAPI does not read itself."""
    if kind is None:
        return {}
    described = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    required = bool(described.get("required"))
    if is_listed:
        described = {"anyOf": [described, {"type": "array", "items": described, "maxItems": s.MAX_LIST}]}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": described}}}}
