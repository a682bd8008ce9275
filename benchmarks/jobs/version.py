"""Which version runs."""

from __future__ import annotations

from importlib.metadata import version
from types import ModuleType


def run(contestant: ModuleType) -> dict[str, str]:
    return {"version": version(contestant.PACKAGE)}
