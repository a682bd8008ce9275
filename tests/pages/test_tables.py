"""The small generated tables: their pages have a picture, and each line is measured as it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.pages import probability_table


def test_the_table_of_probabilities_stands_between_its_marks_with_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    wins, losses = np.array([1.0, 2, 3, 1, 5, 2]), np.array([1.0, 1, 4, 2, 9, 1])
    (measured,) = probability_table.measure(lambda: (wins, losses))
    assert float(measured["largest relative error"]) < 1e-9
    page = probability_table.text([{"part": "six arms", **measured}], tmp_path)
    shown = page.partition(probability_table.START)[2].partition(probability_table.END)[0]
    assert shown.count("| six arms |") == shown.count("](images/exact-probabilities.png)") == 1
    assert "32 arms" not in shown
    assert page.startswith("# Exact probabilities")
    assert (tmp_path / "images/exact-probabilities.png").stat().st_size > 3000
