"""Single cells: numbers as they are written in several countries, and names that look like nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditree.catalogue import Catalogue, CatalogueError, read_catalogue
from banditree.data import cells


def read(kinds: list[Any], *, plays: Any = 10, clicks: Any = 1) -> Catalogue:
    n = len(kinds)
    table = {"item": [f"i{i}" for i in range(n)], "kind": kinds, "plays": [plays] * n, "clicks": [clicks] * n}
    return read_catalogue(table, arm="item", path=["kind"], plays="plays", successes="clicks")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,200", 1200),
        ("-1,200,000.5", -1_200_000.5),
        ("1,250%", 12.5),
        ("3.5 %", 0.035),
        (" 1e3 ", 1000),
        ("1200.0", 1200),
    ],
)
def test_numbers_that_are_text(text: str, number: float) -> None:
    result, wrong = cells.numbers([text])
    assert (result.tolist(), wrong) == ([number], {})


@pytest.mark.parametrize("text", ["1_000", "\u0663\u0660\u0660"])
def test_numbers_of_pythons_own_are_not_meant(text: str) -> None:
    _, wrong = cells.numbers([text, "3"])
    assert wrong == {0: f"{text!r} is not a number"}


@pytest.mark.parametrize("text", ["0,012", "00,120", "1,2", "1,25%", "1.200,5", "1.200.000", "12,00,000"])
def test_numbers_of_other_countries_are_not_guessed(text: str) -> None:
    _, wrong = cells.numbers([text])
    assert wrong == {0: f"{text!r} is not a number"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.200", "'1.200' is not a whole number; write 1200 for one thousand two hundred, without separators"),
        ("120.5", "'120.5' is not a whole number; write 1200 for one thousand two hundred, without separators"),
        (np.float64(1.2), "1.2 is not a whole number; write 1200 for one thousand two hundred, without separators"),
    ],
)
def test_counts_are_whole(value: Any, message: str) -> None:
    for column, counts in (("plays", {"plays": value}), ("clicks", {"plays": 9999, "clicks": value})):
        with pytest.raises(CatalogueError) as caught:
            read(["x"], **counts)
        assert [str(problem) for problem in caught.value.problems] == [f"row 0, column {column!r}: {message}"]


@pytest.mark.parametrize("value", [1200, 1200.0, "1200", "1,200", "1200.0", "1200.000", "1.2e3"])
def test_counts_that_are_written_otherwise(value: Any) -> None:
    assert repr(read(["x"], plays=value)).endswith("1 success in 1,200 plays)")


@pytest.mark.parametrize("word", ["NA", "None", "null", "n/a", "NaN"])
def test_a_category_may_have_a_name_that_looks_like_nothing(word: str) -> None:
    catalogue = read([word, " ", "x"])
    assert catalogue.tree.clusters == {word: ["i0"], "(no kind)": ["i1"], "x": ["i2"]}
    assert f"the category {word!r} was taken as a name; leave a cell empty if it has no category" in catalogue.notes


def test_cells_of_data_frames_that_are_nothing() -> None:
    missing: list[Any] = [None, float("nan"), np.float32("nan"), np.datetime64("NaT", "s")]
    pandas = pytest.importorskip("pandas")
    for value in (*missing, pandas.NA, pandas.NaT):
        assert cells.name(value) is None
    assert list(read([*missing, pandas.NA]).tree.clusters) == ["(no kind)"]


def test_infinite_names_are_names() -> None:
    assert read([float("inf"), np.float64("-inf")]).tree.clusters == {"inf": ["i0"], "-inf": ["i1"]}
