"""The versions we work with are inside the ranges that we declare, and every range has a lower end."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.lowest import PROJECT, declared, lowest

PROJECT_FILE = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
LINES = [
    line
    for line in Path(PROJECT.parent, "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def test_constraints_are_names_and_versions_alone() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)] == []


@pytest.mark.parametrize("requirement", sorted({str(one) for one in declared(PROJECT_FILE)}))
def test_what_we_work_with_is_what_we_declare(requirement: str) -> None:
    needs = Requirement(requirement)
    used = {canonicalize_name(name): version for name, version in (line.split("==") for line in LINES)}
    assert needs.specifier.contains(used[canonicalize_name(needs.name)])
    assert lowest(iter([needs]))[needs.name] <= Version(used[canonicalize_name(needs.name)])


def test_the_higher_of_two_lower_ends_counts() -> None:
    found = lowest(Requirement(text) for text in ("a>=1.2", "b[more]>=3,<5", "a>=1.10"))
    assert found == {"a": Version("1.10"), "b": Version("3")}


def test_a_range_without_a_lower_end_is_refused() -> None:
    with pytest.raises(SystemExit, match="b<2 declares no lowest version; write b>="):
        lowest(Requirement(text) for text in ("a>=1", "b<2"))
