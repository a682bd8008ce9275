"""List the routes, with their descriptions for OpenAPI."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.routing import Route

from banditree.service import schema

WORDS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such decision.",
    409: "This contradicts what is in the log.",
    413: "The body is larger than 1 MiB.",
    422: "A value is not allowed here.",
    503: "The database cannot be reached; try again.",
}

ID = {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]}


def add_routes(app: FastAPI, service: Any) -> None:
    """Add the routes to the application."""
    s = schema
    decided = {201: s.DecisionAnswer, 200: s.DecisionAnswer}
    table: list[tuple[str, str, Any, str, type[BaseModel] | None, dict[int, Any], tuple[int, ...]]] = [
        ("POST", "/v1/decisions", service.decide, "Decide", s.DecisionAsked, decided, (400, 409, 413, 422)),
        ("GET", "/v1/decisions/{id}", service.look_up, "Look a decision up", None, {200: s.DecisionLooked}, (404,)),
        (
            *("DELETE", "/v1/decisions/{id}", service.withdraw, "Say that a decision was never shown", None),
            *({200: s.WithdrawnAnswer}, (404, 409)),
        ),
        (
            *("PUT", "/v1/decisions/{id}/reward", service.reward, "Report a reward", s.RewardAsked),
            *({200: s.RewardAnswer}, (400, 404, 409, 413, 422)),
        ),
        (
            *("POST", "/v1/arms", service.arms, "Add, move and remove arms", s.ArmsAsked),
            *({200: s.ArmsAnswer}, (400, 409, 413, 422)),
        ),
        ("GET", "/v1/tree", service.tree, "The tree and what was learned", None, {200: s.TreeAnswer}, (422,)),
        ("GET", "/v1/traffic", service.traffic, "Decisions by category over time", None, {200: s.TrafficAnswer}, ()),
        (
            *("GET", "/v1/log", service.log, "The log, one row per decision", None),
            *({200: ("application/x-ndjson", "text/csv")}, (422,)),
        ),
        ("GET", "/v1/events", service.events, "Events as they happen", None, {200: ("text/event-stream",)}, ()),
        ("GET", "/metrics", service.read_metrics, "Numbers for Prometheus", None, {200: ("text/plain",)}, ()),
        ("GET", "/healthz", service.healthz, "Whether the process is alive", None, {200: None}, ()),
        ("GET", "/readyz", service.readyz, "Whether it can decide and write", None, {200: None}, ()),
    ]
    for method, path, act, summary, body, answers, codes in table:
        responses: dict[int | str, dict[str, Any]] = {code: _answer(code, kind) for code, kind in answers.items()}
        for code in (*codes, 401, 503):
            responses[code] = {"model": schema.ErrorAnswer, "description": WORDS[code]}
        app.add_api_route(
            path,
            act,
            methods=[method],
            summary=summary,
            description=act.__doc__ or "",
            response_model=None,
            status_code=next(iter(answers)),
            responses=responses,
            response_class=Response,
            openapi_extra=None if body is None else _body(body) | (ID if "{id}" in path else {}),
        )
    # The two busiest routes bypass FastAPI's handling of requests, which costs time; FastAPI still describes them.
    app.router.routes.insert(0, Route("/v1/decisions", service.decide, methods=["POST"]))
    app.router.routes.insert(1, Route("/v1/decisions/{id}/reward", service.reward, methods=["PUT"]))
    app.add_api_route("/", service.page, include_in_schema=False)
    app.add_api_route("/docs", service.docs, include_in_schema=False)


def _answer(code: int, kind: Any) -> dict[str, Any]:
    words = {200: "Done.", 201: "Decided and stored."}
    if isinstance(kind, tuple):
        return {"description": words[code], "content": {media: {"schema": {"type": "string"}} for media in kind}}
    return {"description": words[code]} | ({} if kind is None else {"model": kind})


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Describe the request body, which FastAPI does not read itself."""
    described = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    required = bool(described.get("required"))
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": described}}}}
