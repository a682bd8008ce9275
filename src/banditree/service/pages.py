"""The two pages: the live view and the description of the routes. Each is one file that asks no other host."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from banditree import __version__
from banditree.errors import missing_extra

try:
    from jinja2 import DictLoader, Environment, StrictUndefined
except ImportError:
    raise missing_extra("serve", "the service needs Jinja2") from None

FILES = ("live.html", "live.js", "docs.html", "page.css")
POLICY = "connect-src 'self'; img-src data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
POLICY += "frame-ancestors 'none'; script-src-attr 'none'; script-src-elem "


@cache
def _templates() -> Environment:
    folder = resources.files("banditree.service") / "templates"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in FILES}
    return Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def live(policy: str, *, token: bool) -> str:
    """The page at /; it fetches what it shows, with the token if there is one."""
    return _templates().get_template("live.html").render(policy=policy, token=token, version=__version__)


def headers(page: str) -> dict[str, str]:
    """Headers that let no script run but the page's own."""
    script = page.partition("<script>")[2].partition("</script>")[0].encode()
    own = f"'sha256-{b64encode(sha256(script).digest()).decode()}'" if script else "'none'"
    return {
        "content-security-policy": POLICY + own,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


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
