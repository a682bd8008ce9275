"""Files that are not tables, or are tables in disguise: refused with a sentence, and never a traceback."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banditree.catalogue import Catalogue, CatalogueError, read_catalogue
from banditree.errors import InvalidType, InvalidValue

GOOD = "item,kind,plays,clicks\na,x,10,1\nb,y,20,2\n"


def counts(source: Any, **options: Any) -> Catalogue:
    return read_catalogue(source, arm="item", path=["kind"], plays="plays", successes="clicks", **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04\x14\0\0\0 a workbook", "is not a CSV or Parquet file; save it as CSV in UTF-8, or read it"),
        (GOOD.encode("utf-16"), "is not a CSV or Parquet file"),
        (b'{"item": "a"}\n{"item": "b"}\n', r"no such column; there are '\{\"item\": \"a\"\}'"),
        (b"", r"1 problem in items.*\n  it is empty; give a table"),
    ],
    ids=["binary", "utf-16", "json", "empty"],
)
def test_what_is_not_a_table_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    for name, packed in (("items.csv", content), ("items.csv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(InvalidValue, match=words):
            counts(tmp_path / name)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_the_header_has_most_of(delimiter: str, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(GOOD.replace(",", delimiter), encoding="utf-8")
    assert counts(tmp_path / "items.csv").tree.arms == ("a", "b")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_may_end_as_anywhere_and_names_may_hide_a_packed_file(
    end: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    file = tmp_path / "items.csv"
    file.write_bytes(pack(GOOD.replace("\n", end).encode()))
    assert repr(counts(file)) == "Catalogue(2 arms, 2 clusters, depth 1; 3 successes in 30 plays)"


def test_a_parquet_file_by_another_name(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"item": ["a", "b"], "kind": ["x", "y"], "plays": [10, 20], "clicks": [1, 2]})
    frame.write_parquet(tmp_path / "items.data")
    assert counts(tmp_path / "items.data").tree.arms == ("a", "b")


def test_files_that_are_damaged(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(GOOD.encode() * 50))
    for place in range(12, 40):
        packed[place] ^= 0xFF
    cut = gzip.compress(GOOD.encode() * 50)[:40]
    huge = f"item,{'k' * 140_000},plays,clicks\na,x,1,1\n".encode()
    for name, content, words in (
        ("a.csv.gz", bytes(packed), "a.csv.gz cannot be read"),
        ("b.csv.gz", cut, "b.csv.gz cannot be read"),
        ("c.csv", huge, "c.csv is not a CSV file: field larger"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidValue, match=words):
            counts(tmp_path / name)


def test_what_a_file_may_unpack_to_has_a_limit_that_can_be_raised(tmp_path: Path) -> None:
    rows = "".join(f"i{i},x,10,1\n" for i in range(10_000))
    content = f"item,kind,plays,clicks\n{rows}".encode()
    file = tmp_path / "items.csv.gz"
    file.write_bytes(gzip.compress(content))
    with pytest.raises(InvalidValue, match=r"1,000 bytes; .*max_bytes"):
        counts(file, max_bytes=1000)
    with pytest.raises(InvalidValue, match="unpacks"):
        counts(file, max_bytes=len(content) - 1)
    assert counts(file, max_bytes=len(content)).tree.n_arms == 10_000


def test_lists_in_messages_are_short(tmp_path: Path) -> None:
    columns = [f"column {i} {'x' * 500}" for i in range(2000)]
    file = tmp_path / "items.csv"
    file.write_text(",".join(columns) + "\n", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"and 1,990 more") as caught:
        counts(file)
    assert len(str(caught.value)) < 5000
    with pytest.raises(CatalogueError) as caught:
        counts({"item": ["a"], "kind": ["x"], "plays": ["9" * 10_000 + "?"], "clicks": [1]})
    assert len(str(caught.value)) < 200
    with pytest.raises(InvalidType, match="is a list; give a file, a data frame or a mapping"):
        counts([1, 2, 3])
