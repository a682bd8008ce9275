"""Hints for missing extras: they name extras that there are, and come from one place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "banditree").rglob("*.py"))


def test_every_hint_names_an_extra_that_there_is() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {name for path in SOURCES for name in re.findall(r"missing_extra\(\s*\"(\w+)\"", path.read_text("utf-8"))}
    assert {"cli", "plot", "frames", "cluster"} <= named <= set(extras)


def test_one_place_knows_how_extras_are_installed() -> None:
    knowing = [path.relative_to(ROOT).as_posix() for path in SOURCES if "pip install '" in path.read_text("utf-8")]
    assert knowing == ["src/banditree/errors/__init__.py"]
