"""Schemathesis throws what the OpenAPI description allows, and what it does not, at a running service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
import uvicorn
from schemathesis.checks import load_all_checks

from banditree.service.app import Service
from banditree.service.engine import Engine
from banditree.service.settings import Plan
from banditree.service.store import open_log
from tests.support.serving import until

load_all_checks()
CHECKS = [
    schemathesis.checks.CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]
SKIPPED = ("/v1/events",)  # never ends


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service in a thread, and its address."""
    engine = Engine(open_log(str(tmp_path_factory.mktemp("openapi") / "decisions.db")))
    engine.start([Plan({"s1": ["shoes"], "s2": ["shoes"], "h1": ["hats"]})])
    tested = Service(engine)
    server = uvicorn.Server(uvicorn.Config(tested.guarded, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield tested, f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)


def operations() -> list[tuple[str, str]]:
    described = Service(Engine(_no_log())).app.openapi()
    return [(path, method) for path, methods in described["paths"].items() for method in methods if path not in SKIPPED]


def _no_log() -> Any:
    return None


@pytest.mark.parametrize(("path", "method"), operations())
def test_every_route_keeps_to_its_description(service: Any, path: str, method: str) -> None:
    tested, url = service
    operation = schemathesis.openapi.from_dict(tested.app.openapi())[path][method.upper()]

    @hypothesis.settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def always(case: Any) -> None:
        case.call_and_validate(base_url=url, checks=CHECKS, timeout=30)

    always()


def test_the_pages_ask_no_other_host(service: Any) -> None:
    import httpx

    _, url = service
    for path in ("/", "/docs"):
        text = httpx.get(url + path, trust_env=False).text
        assert "https://" not in text
        assert text.count("http://") == text.count("http://www.w3.org/2000/svg")


def test_every_route_is_described(service: Any, tmp_path: Path) -> None:
    tested, url = service
    import httpx

    text = httpx.get(url + "/docs", trust_env=False).text
    for path, _ in operations():
        assert f"<code>{path}</code>" in text
    assert tested.app.openapi()["paths"].keys() >= {"/v1/decisions", "/v1/decisions/{id}/reward", "/v1/events"}
