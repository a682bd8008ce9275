"""Where a file may be read and written: not a folder or a pipe, through links, and under any name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import banditree as bt
from banditree.errors import BadFile, BadPath, BanditreeError, InvalidType
from tests.support.helpers import SHOP

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
    with pytest.raises(IsADirectoryError, match=r"folder"):
        bt.load(tmp_path / place)
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


@pytest.mark.skipif(sys.platform == "win32", reason="devices and pipes are a Unix thing")
def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    """Reading /dev/zero would never end, nor would waiting for somebody to write to the pipe."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (Path("/dev/zero"), Path("/dev/null"), tmp_path / "pipe", tmp_path / "link"):
        for load in (bt.load, bt.Runs.load):
            with pytest.raises(BanditreeError, match=f"^cannot read {path}: it is a device or a pipe"):
                load(path)


def test_a_file_of_another_kind_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A terabyte of zeros, of which the first bytes are enough."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(BadFile, match="is not a banditree file"):
        bt.load(tmp_path / "large")


@pytest.mark.parametrize("name", ["x" * 239, "x" * 240, "x" * 255, "ü" * 127, "\N{GRINNING FACE}" * 63])
def test_long_names(name: str, tmp_path: Path) -> None:
    for tree in (bt.Tree(2), SHOP):
        bt.TS(tree).save(tmp_path / name)
        assert bt.load(tmp_path / name).tree == tree
    assert names(tmp_path) == [name]


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for path, says in {"a\0b": "a path cannot have a NUL character in it", "x" * 300: "File name too long"}.items():
        with pytest.raises(BadPath, match=f"^cannot write .*{says}"):
            bt.TS(SHOP).save(tmp_path / path)
        with pytest.raises(BadPath, match=f"^cannot read .*{says}"):
            bt.load(tmp_path / path)
    assert names(tmp_path) == []
    for odd in (0, None, b"bytes"):
        with pytest.raises(InvalidType, match=r"it is of type .*; give the name of a file"):
            bt.load(odd)  # type: ignore[arg-type]
        with pytest.raises(InvalidType, match=r"it is of type .*; give the name of a file"):
            bt.TS(SHOP).save(odd)  # type: ignore[arg-type]
