"""The tables of estimators: every published setting runs, and the page says who is better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.pages import estimator_table, published_tables
from tools.pages.evidence import stamped
from tools.pages.journal import Line


@pytest.mark.parametrize("name", published_tables.SETTINGS)
def test_every_setting_gives_errors_of_every_estimator(name: str) -> None:
    errors = published_tables.relative_errors(published_tables.SETTINGS[name](runs=1))
    assert set(errors) == set(published_tables.PUBLISHED[name])
    assert all(np.isfinite(mean) and mean >= 0 for mean, _ in errors.values())


def test_the_page_has_a_line_per_world_and_marks_the_lower_error(tmp_path: Path) -> None:
    ours = {name: (0.5 * mean, sd) for name, (mean, sd) in published_tables.PUBLISHED["digits"].items()}
    lines: list[Line] = []
    for name, (mean, sd) in ours.items():
        line = {"estimator": name, "error": str(mean), "spread": str(sd), "coverage": ""}
        lines.append({"part": "published: digits", "digest": "", **line})
    world = estimator_table.worlds()[4]
    for measured in estimator_table.measure(world, 4, logs=3):
        lines.append({"part": "few rows, 300 rows", "digest": "", **measured})
    text = estimator_table.text(lines, tmp_path)
    assert text.count("| few rows, 300 rows |") == 1
    assert f"| banditree | **{0.5 * published_tables.PUBLISHED['digits']['dm'][0]:.4f}** ±" in text
    assert (tmp_path / "images/estimator-table.png").stat().st_size > 5000
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert stamped(tmp_path / "page.md") is None
