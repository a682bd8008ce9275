"""The notebooks run, show what they show today, and are pages of the site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import needs_native
from tools import notebooks
from tools.website.__main__ import stage

pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")


@needs_native  # the readable engine draws in another order
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_shows_today(path: Path) -> None:
    stored = notebooks.read(path)
    shown = notebooks.texts(stored)
    assert shown == notebooks.texts(notebooks.executed(stored)), f"{path.name} is of other code; `make notebooks`"
    assert len(shown) > 4
    assert not re.search(r"/(home|tmp|work|usr)\b", json.dumps(stored))


def test_there_are_three_notebooks() -> None:
    assert len(notebooks.NOTEBOOKS) == 3


def notebook(*cells: str) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}


def test_cells_share_their_names_and_show_what_they_print_and_their_last_value() -> None:
    done = notebooks.executed(notebook("x = 1", "print(x)\nx + 1", "for y in range(2):\n    print(y)", "None"))
    assert notebooks.texts(done) == ["1\n", "2", "0\n1\n"]


def test_what_a_cell_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        notebooks.executed(notebook("1 / 0", "x = 1"))
    with pytest.raises(ZeroDivisionError):
        notebooks.executed(notebook("x = 1\n1 / 0\nx = 2"))


def test_pictures_are_stored_and_shown_in_the_site(tmp_path: Path) -> None:
    path = tmp_path / "drawn.ipynb"
    drawn = notebooks.executed(notebook("import matplotlib.pyplot as plt\naxes = plt.subplots()[1]\naxes"))
    path.write_text(json.dumps(drawn), encoding="utf-8")
    text, pictures = notebooks.markdown(path)
    assert "![What the cell above shows](drawn-1.png)" in text
    assert pictures["drawn-1.png"].startswith(b"\x89PNG")


def test_a_notebook_is_a_page_of_the_site(tmp_path: Path) -> None:
    folder = stage(tmp_path / "site") / "docs" / "notebooks"
    for path in notebooks.NOTEBOOKS:
        page = (folder / f"{path.stem}.md").read_text(encoding="utf-8")
        assert page.startswith("# ")
        assert "```python" in page
