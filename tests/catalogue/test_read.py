"""Reading a catalogue: what is mended, what is reported, and where tables may come from."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditree.catalogue import Catalogue, CatalogueError, Defect, read_catalogue, write_example
from banditree.data.defects import MAX_LINES
from banditree.errors import InvalidType, InvalidValue, MissingExtra
from banditree.tree import Tree

MESSY = """\
Item ;Category; Sub;plays;clicks;note
 a1 ; Shoes;Warm ;"1,200";36;"two
lines"
a2;Shoes ;Warm;300;9;
a2;Shoes;Warm; 100 ;1;again

b1;Hats;Warm;50.0;2;
b2;Hats;;40;2;
c1;;Sun;10;1;
c2;NA;;1e1;0;
007;Hats;Sun;0;0;
"""


def counts(source: Any, path: list[str] | None = None) -> Catalogue:
    return read_catalogue(source, arm="item", path=path or ["kind"], plays="plays", successes="clicks")


def written(tmp_path: Path, text: str, name: str = "items.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def defects(text: str, tmp_path: Path, **options: Any) -> CatalogueError:
    options = {"plays": "plays", "successes": "clicks"} | options
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(written(tmp_path, text), arm="item", path=["kind"], **options)
    return caught.value


def test_a_messy_file_is_recover_state_and_says_so(tmp_path: Path) -> None:
    catalogue = read_catalogue(
        written(tmp_path, "\ufeff" + MESSY), arm="Item", path=["Category", "Sub"], plays="plays", successes="clicks"
    )
    assert catalogue.tree.paths() == [
        ("Shoes", "Warm", "a1"),
        ("Shoes", "Warm", "a2"),
        ("Hats", "Warm", "b1"),
        ("Hats", "b2"),
        ("(no Category)", "Sun", "c1"),
        ("NA", "c2"),
        ("Hats", "Sun", "007"),
    ]
    assert catalogue.plays is not None
    assert catalogue.successes is not None
    assert catalogue.plays.tolist() == [1200, 400, 50, 40, 10, 10, 0]
    assert catalogue.successes.tolist() == [36, 10, 2, 2, 1, 0, 0]
    assert catalogue.rates[:2].tolist() == [0.03, 0.025]
    assert np.isnan(catalogue.rates[-1])
    notes = "\n".join(catalogue.notes)
    assert "1 row without a category" in notes
    assert "the category 'NA' was taken as a name" in notes
    assert "2 rows with fewer categories" in notes
    assert "Sub 'Warm' and 1 more under several parents" in notes
    assert "1 arm on several rows" in notes


def test_every_trouble_is_reported_at_once_with_row_and_column(tmp_path: Path) -> None:
    text = "item,kind,plays,clicks\na,x,10,11\n,x,1,0\nb,x,many,1\nc,x,5\nd,x,-1,0\na,y,3,1\ne,x,,0\nf,x,inf,1\n"
    error = defects(text, tmp_path)
    assert [(item.row, item.column) for item in error.problems] == [
        (2, "clicks"),
        (3, "item"),
        (4, "plays"),
        (5, None),
        (5, "clicks"),
        (6, "plays"),
        (6, "clicks"),
        (7, "item"),
        (8, "plays"),
        (9, "plays"),
    ]
    message = str(error)
    assert "10 problems in items.csv" in message
    assert "row 4, column 'plays': 'many' is not a number" in message
    place = "'a' is in y here, but in x in row 2; an arm has only one place"
    assert f"{place}: correct one of the rows, or rename one of the arms" in message
    assert isinstance(error, ValueError)


def test_a_message_stays_short(tmp_path: Path) -> None:
    error = CatalogueError("items.csv", [Defect(row, None, f"defect {row}") for row in range(50)])
    assert len(error.problems) == 50
    assert len(str(error).splitlines()) == MAX_LINES + 2
    assert f"and {50 - MAX_LINES} more" in str(error)


def test_troubles_that_are_alike_share_a_line(tmp_path: Path) -> None:
    error = defects("item,kind,plays,clicks\n" + "a,x,?,1\n" * 50, tmp_path)
    assert len(error.problems) == 50
    assert str(error).splitlines()[1:] == ["  50 rows (2, 3, 4, ...), column 'plays': '?' is not a number"]
    rows = "".join(f"i{i},x,{i}.5\n" for i in range(1, 3115)) + "b,x,no\n"
    error = defects("item,kind,m\n" + rows, tmp_path, plays=None, successes=None, mean="m")
    first, *lines = str(error).splitlines()
    assert first == "3,115 problems in items.csv"
    assert lines[0].startswith("  3,114 rows (2, 3, 4, ...), column 'm': 1.5 is above 1; a mean is a rate from 0 to 1")
    assert lines[0].endswith("(row 2), and so on")
    assert lines[1:] == ["  row 3116, column 'm': 'no' is not a number"]


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    error = defects("item,kinds,plays,plays\na,x,1,1\n", tmp_path)
    assert {(item.row, item.column) for item in error.problems} == {(None, "kind"), (None, "plays"), (None, "clicks")}
    assert "did you mean 'kinds'?" in str(error)
    assert "several columns" in str(error)
    assert "it is empty" in str(defects("", tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [("item,kind,plays,clicks\n", "no rows"), ("item,kind,plays,clicks\na,x,0,0\n", "no arm was ever played")],
)
def test_tables_with_nothing_to_go_by(text: str, message: str, tmp_path: Path) -> None:
    assert message in str(defects(text, tmp_path))


def test_means_and_weights(tmp_path: Path) -> None:
    text = "item,kind,ctr,w\na,x,3.5%,1\na,x,0.065,3\nb,y,0.5,1\n"
    catalogue = read_catalogue(written(tmp_path, text), arm="item", path=["kind"], mean="ctr", weight="w")
    assert catalogue.means is not None
    assert catalogue.means.tolist() == pytest.approx([(0.035 + 3 * 0.065) / 4, 0.5])
    assert catalogue.plays is None
    options = {"plays": None, "successes": None, "mean": "ctr"}
    assert "name a column of weights" in str(defects(text, tmp_path, **options))
    bad = "item,kind,ctr,w\na,x,1.5,1\nb,y,0.5,0\n"
    error = defects(bad, tmp_path, **options, weight="w")
    assert [(item.row, item.column) for item in error.problems] == [(2, "ctr"), (3, "w")]


@pytest.mark.parametrize(
    "options",
    [
        {"plays": "plays"},
        {"plays": "plays", "successes": "clicks", "mean": "m"},
        {"plays": "plays", "successes": "clicks", "weight": "w"},
        {"plays": "plays", "successes": "clicks", "path": "kind"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidType):
        read_catalogue({"item": ["a"]}, **({"arm": "item", "path": ["kind"]} | options))


def test_a_column_has_one_meaning() -> None:
    with pytest.raises(InvalidValue, match="'item' is named twice"):
        read_catalogue({"item": ["a"]}, arm="item", path=["item"], mean="m")


@pytest.mark.parametrize(
    ("source", "error"),
    [("no-such.csv", InvalidValue), (".", InvalidValue), (3, InvalidType)],
)
def test_sources_that_are_none(source: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        counts(source)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("item,kind,plays,clicks\nhøst,x,1,1\n".encode("latin-1"))
    (tmp_path / "items.parquet").write_bytes(b"not parquet")
    (tmp_path / "items.csv.gz").write_bytes(b"not gzip")
    (tmp_path / "nul.csv").write_text('item,kind,plays,clicks\n"' + "x" * 200_000 + '",x,1,1\n', encoding="utf-8")
    for name, words in (
        ("latin.csv", "UTF-8"),
        ("items.parquet", "not a Parquet"),
        ("items.csv.gz", "cannot be read"),
        ("nul.csv", "not a CSV"),
    ):
        with pytest.raises(InvalidValue, match=words):
            counts(tmp_path / name)


TABLE = {
    "item": [1, 2, 3],
    "kind": ["x", None, "y"],
    "plays": [10, 20, 30],
    "clicks": [1.0, 2.0, 3.0],
    "more": [0, 0, 0],
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_and_parquet(library: str, tmp_path: Path) -> None:
    module = pytest.importorskip(library)
    frame = module.DataFrame(TABLE)
    sources = [frame]
    if library == "polars":
        frame.write_parquet(tmp_path / "items.parquet")
        sources += [frame.lazy(), tmp_path / "items.parquet"]
    for source in sources:
        catalogue = counts(source)
        assert catalogue.tree.clusters == {"x": [1], "(no kind)": [2], "y": [3]}
        assert repr(catalogue) == "Catalogue(3 arms, 3 clusters, depth 1; 6 successes in 60 plays)"


def test_names_of_other_types() -> None:
    table: dict[str, list[Any]] = {
        "item": [1.0, 2.5, float("nan")],
        "kind": [True, b"x", np.int64(4)],
        "m": ["0.1", 0.2, 0.3],
    }
    with pytest.raises(CatalogueError, match="row 2, column 'item': empty"):
        read_catalogue(table, arm="item", path=["kind"], mean="m")
    table["item"][2] = np.int32(7)
    catalogue = read_catalogue(table, arm="item", path=["kind"], mean="m")
    assert catalogue.tree.paths() == [("True", 1), ("b'x'", "2.5"), (4, 7)]


def test_a_mapping_of_columns_of_different_lengths() -> None:
    with pytest.raises(InvalidValue, match="different lengths"):
        counts(TABLE | {"plays": [1]})


def test_a_gzipped_file_and_the_example(tmp_path: Path) -> None:
    write_example(tmp_path / "items.csv", campaign="men")
    with gzip.open(tmp_path / "items.csv.gz", "wb") as file:
        file.write((tmp_path / "items.csv").read_bytes())
    catalogue = [counts(tmp_path / name, ["category", "subcategory"]) for name in ("items.csv", "items.csv.gz")]
    assert catalogue[0].tree == catalogue[1].tree
    assert catalogue[0].tree.n_arms == 34


def test_the_example_leaves_a_file_of_yours_alone(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    write_example(file)
    write_example(file)
    edited = file.read_bytes() + b"mine,shoes,boots,10,1\n"
    file.write_bytes(edited)
    with pytest.raises(InvalidValue, match="already exists"):
        write_example(file)
    assert file.read_bytes() == edited


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("narwhals", "pyarrow"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(MissingExtra, match="narwhals"):
        counts(object())
    written(tmp_path, "", "items.parquet")
    with pytest.raises(MissingExtra, match="Parquet"):
        counts(tmp_path / "items.parquet")


def test_a_hundred_thousand_rows_take_seconds(tmp_path: Path) -> None:
    lines = [f"i{i},c{i % 20},s{i % 400},t{i % 4000},{i % 300 + 10},{i % 10}" for i in range(100_000)]
    path = written(tmp_path, "item,a,b,c,plays,clicks\n" + "\n".join(lines) + "\n")
    started = time.process_time()
    catalogue = counts(path, ["a", "b", "c"])
    assert time.process_time() - started < 8  # about 1.5 on a machine of 2020
    assert catalogue.tree.n_arms == 100_000
    assert catalogue.tree.depth == 3


NONSENSE: list[tuple[type[Exception], dict[str, Any]]] = [
    (InvalidType, {}),
    (InvalidType, {"plays": [1, 1]}),
    (InvalidType, {"plays": [1, 1], "successes": [0, 1], "means": [0, 1]}),
    (InvalidValue, {"means": [0.1]}),
    (InvalidValue, {"means": [0.1, 1.2]}),
    (InvalidValue, {"means": [0.1, np.nan]}),
    (InvalidValue, {"plays": [1, 1], "successes": [0, 2]}),
    (InvalidValue, {"plays": [1, -1], "successes": [0, 0]}),
]


@pytest.mark.parametrize(("error", "options"), NONSENSE)
def test_a_catalogue_made_by_hand(error: type[Exception], options: dict[str, Any]) -> None:
    tree = Tree({"x": ["a"], "y": ["b"]})
    assert repr(Catalogue(tree, means=[0.1, 0.2])) == "Catalogue(2 arms, 2 clusters, depth 1; means known)"
    with pytest.raises(error):
        Catalogue(tree, **options)
