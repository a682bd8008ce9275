"""Print the lowest versions that pyproject.toml declares, as pip's constraints: `python -m tools.lowest`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def declared(project: dict[str, Any]) -> Iterator[Requirement]:
    """All requirements: to build, to run, and of every extra but for our own name."""
    named = project["project"]
    lists = [project["build-system"]["requires"], named["dependencies"], *named["optional-dependencies"].values()]
    for requirement in (Requirement(text) for texts in lists for text in texts):
        if requirement.name != named["name"]:
            yield requirement


def lowest(requirements: Iterator[Requirement]) -> dict[str, Version]:
    """The lowest version of each package. Where two extras name one, the higher bound: both must be content."""
    found: dict[str, Version] = {}
    for requirement in requirements:
        bounds = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
        if not bounds:
            raise SystemExit(f"{requirement} declares no lowest version; write {requirement.name}>=...")
        found[requirement.name] = max([*bounds, found.get(requirement.name, Version("0"))])
    return found


if __name__ == "__main__":
    with PROJECT.open("rb") as file:
        for name, version in sorted(lowest(declared(tomllib.load(file))).items()):
            print(f"{name}=={version}")
