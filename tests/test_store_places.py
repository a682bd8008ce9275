"""Where a file may be written: not over a folder or a pipe, and through links."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import banditree as bt
from banditree.errors import BanditreeError
from tests.helpers import SHOP

RUNS = bt.simulate([bt.TS], bt.problems.bernoulli(SHOP, [0.5] * SHOP.n_arms), horizon=5, seeds=1)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("place", [".", "", "/", "..", "here"])
def test_a_folder_is_no_place_for_a_file(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match=f"^cannot write {place}: it is a folder; give the name of a file$"):
        bt.TS(SHOP).save(place)
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        RUNS.save(place)
    assert names(tmp_path) == ["here"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are a Unix thing")
def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BanditreeError, match="it is a device or a pipe"):
        bt.TS(SHOP).save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it leads to is replaced, or made, in its own folder."""
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    link.symlink_to(Path("elsewhere", "real"))
    for tree in (bt.Tree(2), SHOP):
        bt.TS(tree).save(link)
        assert link.is_symlink()
        assert bt.load(real).tree == bt.load(link).tree == tree
    assert names(real.parent) == ["real"]
