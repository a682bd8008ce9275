"""Examples on these pages are run in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example writes goes to an empty folder."""
    monkeypatch.chdir(tmp_path)
