"""The two pages: the live view and the description of the routes. Each is one file that asks no other host."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from banditree import __version__
from banditree.errors import missing_extra

try:
    from jinja2 import DictLoader, Environment, StrictUndefined
except ImportError:
    raise missing_extra("serve", "the service needs Jinja2") from None

FILES = ("live.html", "live.js", "docs.html", "page.css")
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


@cache
def _templates() -> Environment:
    folder = resources.files("banditree.service") / "templates"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in FILES}
    return Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def live(policy: str, *, token: bool) -> str:
    """The page at /; it fetches what it shows, with the token if there is one."""
    return _templates().get_template("live.html").render(policy=policy, token=token, version=__version__)


def docs(described: dict[str, Any]) -> str:
    """The page at /docs, made of the OpenAPI description."""
    routes = [
        {"method": method.upper(), "path": path, **operation, "body": _body(operation)}
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    return (
        _templates().get_template("docs.html").render(routes=routes, schemas=_schemas(described), version=__version__)
    )


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return json.dumps(content["application/json"]["schema"], indent=2) if content else ""


def _schemas(described: dict[str, Any]) -> dict[str, str]:
    found = described.get("components", {}).get("schemas", {})
    return {name: json.dumps(value, indent=2) for name, value in found.items()}
