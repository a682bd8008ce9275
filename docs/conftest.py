"""Examples on these pages are run where they stand; the settings of the site are not Python to test."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore = ["website/conf.py"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example writes goes to an empty folder."""
    monkeypatch.chdir(tmp_path)
