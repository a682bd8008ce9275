"""The published tables, rebuilt: every setting runs, and the section of the page keeps itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.pages import published_tables as tables


@pytest.mark.parametrize("name", tables.SETTINGS)
def test_every_setting_gives_errors_of_every_estimator(name: str) -> None:
    errors = tables.relative_errors(tables.SETTINGS[name](runs=1))
    assert set(errors) == set(tables.PUBLISHED[name])
    assert all(np.isfinite(mean) and mean >= 0 for mean, _ in errors.values())


def test_the_section_replaces_itself_and_survives_the_rest_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nText.\n", encoding="utf-8")
    assert tables.kept_section(page) == ""
    results = dict(tables.PUBLISHED)
    text = tables.section(results)
    page.write_text(f"# Title\n\nText.\n\n{text}", encoding="utf-8")
    assert tables.kept_section(page).strip() == text.strip()
    assert "# Title\n\nText.\n" + tables.kept_section(page) == page.read_text(encoding="utf-8")
