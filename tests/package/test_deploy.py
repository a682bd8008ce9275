"""What is deployed names what exists: series of /metrics, options of `banditree serve`, files of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from banditree.service.guard import Metrics

ROOT = Path(__file__).parents[2]
SERIES = re.compile(r"\bbanditree_[a-z_]+")


def series_of_metrics() -> set[str]:
    metrics = Metrics()
    metrics.count_request("POST", "/v1/decisions", 201, 0.001)
    lines = metrics.text(events=1, lag=0, arms={"main": 2}, ready=True).splitlines()
    return {match.group() for line in lines if not line.startswith("#") if (match := SERIES.match(line))}


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_every_series_that_is_watched_exists(name: str) -> None:
    watched = set(SERIES.findall((ROOT / "deploy" / name).read_text()))
    assert len(watched) > 4
    assert watched <= series_of_metrics()


def test_compose_starts_the_service_with_options_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    source = (ROOT / "src/banditree/cli/serve.py").read_text() + (
        ROOT / "src/banditree/service/settings.py"
    ).read_text()
    options = [part.partition("=")[0] for part in compose["services"]["banditree"]["command"] if part.startswith("--")]
    assert len(options) > 3
    for option in options:
        assert re.search(rf"\b{option[2:].replace('-', '[-_]')}\b", source), option
    assert (ROOT / "deploy/nginx.conf").exists()


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_forms_are_yaml_and_call_targets_that_exist(path: Path) -> None:
    assert yaml.safe_load(path.read_text())
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"run: make ([a-z-]+)", path.read_text()):
        assert re.search(rf"^(.* )?{target}( .*)?:", makefile, re.MULTILINE), target
