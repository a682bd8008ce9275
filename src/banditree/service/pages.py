"""Make the two pages, the live view and the description of the routes. They load nothing from other hosts."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

from banditree import __version__
from banditree.report.html import render

POLICY = "connect-src 'self'; img-src data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
POLICY += "frame-ancestors 'none'; script-src-attr 'none'; script-src-elem "


def live(policy: str, *, token: bool) -> str:
    """Make the page at /, which fetches what it shows, with the token if there is one."""
    return render("banditree.service", "live.html", policy=policy, token=token, version=__version__)


def headers(page: str) -> dict[str, str]:
    """Make headers that allow only the page's own script to run."""
    script = page.partition("<script>")[2].partition("</script>")[0].encode()
    own = f"'sha256-{b64encode(sha256(script).digest()).decode()}'" if script else "'none'"
    return {
        "content-security-policy": POLICY + own,
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
