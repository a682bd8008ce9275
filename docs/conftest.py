"""Examples on these pages are run where they stand; those of api.md are copies of docstrings, which are run in src."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore = ["api.md"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example writes goes to an empty folder."""
    monkeypatch.chdir(tmp_path)
