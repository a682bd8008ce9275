"""List the routes, with their descriptions for OpenAPI."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel

from banditree.service import schema

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

FLAGS = "/ofrep/v1/evaluate/flags"


def add_routes(app: FastAPI, service: Any) -> None:
    """Add the routes to the application."""
    s = schema

    def add(
        method: str,
        path: str,
        act: Any,
        summary: str,
        answers: dict[int, Any],
        errors: tuple[int, ...] = (),
        body: type[BaseModel] | None = None,
    ) -> None:
        responses: dict[int | str, dict[str, Any]] = {code: _answer(code, kind) for code, kind in answers.items()}
        for code in (*errors, 401, 403, 404, 408, 503):
            is_flag = path.startswith(FLAGS) and code in (400, 404)
            responses[code] = {"model": s.FlagError if is_flag else s.ErrorAnswer, "description": WORDS[code]}
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
            openapi_extra=({} if body is None else _body(body)) | _parameters(path),
        )
        if path.startswith("/v1/") and not path.startswith(("/v1/experiments", "/v1/events")):
            long = path.replace("/v1/", "/v1/experiments/{experiment}/", 1)
            app.add_api_route(long, act, methods=[method], include_in_schema=False)

    withdrawn = {200: s.WithdrawnAnswer}
    decision, reward = "/v1/decisions/{id}", "/v1/decisions/{id}/reward"
    bad = (400, 409, 413, 422)
    decided = {201: s.DecisionAnswer, 200: s.DecisionAnswer}
    tables = ("application/x-ndjson", "text/csv")
    add("POST", "/v1/decisions", service.decide, "Decide", decided, bad, s.DecisionAsked)
    add("GET", decision, service.look_up, "Look up a decision", {200: s.DecisionLooked}, (404,))
    add("DELETE", decision, service.withdraw, "Withdraw a decision that was never shown", withdrawn, (404, 409))
    add("PUT", reward, service.reward, "Report a reward", {200: s.RewardAnswer}, (*bad, 404), s.RewardAsked)
    add("GET", "/v1/arms", service.list_arms, "The arms and the clusters above them", {200: s.ArmsListed})
    add("POST", "/v1/arms", service.change_arms, "Add, move and remove arms", {200: s.ArmsAnswer}, bad, s.ArmsAsked)
    add("GET", "/v1/tree", service.tree, "The tree and what was learned", {200: s.TreeAnswer}, (422,))
    add("GET", "/v1/report", service.report, "What it is worth: the lift over the control group", {200: s.ReportAnswer})
    add("GET", "/v1/traffic", service.traffic, "Decisions by category and group over time", {200: s.TrafficAnswer})
    add("GET", "/v1/log", service.log, "The log, one row per decision", {200: tables}, (422,))
    add("GET", "/v1/events", service.events, "Events as they happen", {200: ("text/event-stream",)})
    paused, empty = {200: s.PausedAnswer}, (400, 413, 422)
    add("POST", "/v1/pause", service.pause, "Stop learning; the control policy decides", paused, empty, s.Asked)
    add("POST", "/v1/resume", service.resume, "Go on after a pause", paused, empty, s.Asked)
    add("POST", "/v1/void", service.void, "Undo decisions and their rewards", {200: s.VoidAnswer}, bad, s.VoidAsked)
    add("GET", "/v1/experiments", service.experiments, "All experiments", {200: s.ExperimentsAnswer})
    created = {201: s.ExperimentAnswer, 200: s.ExperimentAnswer}
    put, named = service.put_experiment, "/v1/experiments/{name}"
    add("PUT", named, put, "Create an experiment", created, bad, s.ExperimentAsked)
    flag, flags = {200: s.FlagAnswer}, {200: s.FlagsAnswer, 304: None}
    add("POST", FLAGS + "/{key}", service.evaluate_flag, "Evaluate a flag (OpenFeature)", flag, (400, 413))
    add("POST", FLAGS, service.evaluate_flags, "Evaluate all flags (OpenFeature)", flags, (400, 413))
    add("GET", "/metrics", service.read_metrics, "Metrics for Prometheus", {200: ("text/plain",)})
    add("GET", "/healthz", service.healthz, "Whether the process is alive", {200: None})
    add("GET", "/readyz", service.readyz, "Whether it can decide and store", {200: None})
    app.add_api_route("/", service.page, include_in_schema=False)
    app.add_api_route("/docs", service.docs, include_in_schema=False)


def _parameters(path: str) -> dict[str, Any]:
    """Describe the parameters in a path, which the handlers read from the request."""
    names = re.findall(r"\{(\w+)\}", path)
    described = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    return {"parameters": described} if names else {}


def _answer(code: int, kind: Any) -> dict[str, Any]:
    words = {200: "Done.", 201: "Decided or created, and stored.", 304: "Nothing has changed."}
    if isinstance(kind, tuple):
        return {"description": words[code], "content": {media: {"schema": {"type": "string"}} for media in kind}}
    return {"description": words[code]} | ({} if kind is None else {"model": kind})


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Describe the request body, which FastAPI does not read itself."""
    described = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    required = bool(described.get("required"))
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": described}}}}
