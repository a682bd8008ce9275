"""Make the two pages, the live view and the description of the routes. They load nothing from other hosts."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

from banditree import __version__
from banditree.report.html import render

CONTENT_POLICY = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
CONTENT_POLICY += "frame-ancestors 'none'; "


def live(*, token: bool) -> str:
    """Make the page at /, which fetches what it shows, with the token if there is one."""
    return render("banditree.service", "live.html", token=token, version=__version__)


def headers(page: str) -> dict[str, str]:
    """Make headers that allow only the page's own script and style."""
    sources = {}
    for tag in ("script", "style"):
        content = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].encode()
        sources[tag] = f"'sha256-{b64encode(sha256(content).digest()).decode()}'" if content else "'none'"
    return {
        "content-security-policy": f"{CONTENT_POLICY}script-src {sources['script']}; style-src {sources['style']}",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


def docs(described: dict[str, Any]) -> str:
    """Make the page at /docs from the OpenAPI description."""
    routes = [
        {"method": method.upper(), "path": path, **operation, "body": _body(operation)}
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    schemas = {name: json.dumps(value, indent=2) for name, value in described["components"]["schemas"].items()}
    return render("banditree.service", "docs.html", routes=routes, schemas=schemas, version=__version__)


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return json.dumps(content["application/json"]["schema"], indent=2) if content else ""
