"""One reader of tables: every problem with its column and rows, one error for catalogues and logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import banditree as bt
from banditree.catalogue import CatalogueError
from banditree.data import TableError, column_names, load, read_tree
from banditree.errors import InvalidType
from banditree.ope import LogError


def read_items(source: Any) -> Any:
    return bt.read_catalogue(source, arm="item", path=["kind"], reward="click")


def read_log(source: Any) -> Any:
    return bt.read_log(source, arm="item", reward="click", context=["kind"])


READERS: dict[type[TableError], Callable[[Any], Any]] = {CatalogueError: read_items, LogError: read_log}


@pytest.mark.parametrize("error", READERS)
def test_readers_raise_their_own_table_error_for_a_missing_column(error: type[TableError], tmp_path: Path) -> None:
    file = tmp_path / "1 problem in 2 in tables.csv"  # a name that reads like a message
    file.write_text("item,kind\na,x\n", encoding="utf-8")
    with pytest.raises(error) as caught:
        READERS[error](file)
    assert isinstance(caught.value, TableError)
    assert [(problem.row, problem.rows, problem.column) for problem in caught.value.problems] == [(None, (), "click")]
    assert str(caught.value).startswith(f"1 problem in {file.name}\n")


NESTED: dict[str, list[Any]] = {"list": [["x", "y"], ["z"]], "struct": [{"a": 1}, {"a": 2}]}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("column", ["item", "kind"])
@pytest.mark.parametrize("error", READERS)
def test_lists_and_structs_are_not_names(error: type[TableError], column: str, kind: str, tmp_path: Path) -> None:
    table = {"item": ["a", "b"], "kind": ["x", "y"], "click": [1, 0]} | {column: NESTED[kind]}
    pq.write_table(pa.table(table), tmp_path / "items.parquet")
    for source in (table, pd.DataFrame(table), pl.DataFrame(table), pa.table(table), tmp_path / "items.parquet"):
        with pytest.raises(error) as caught:
            READERS[error](source)
        assert {problem.column for problem in caught.value.problems} == {column}
        assert sorted(row for problem in caught.value.problems for row in problem.rows) == [0, 1]


@pytest.mark.parametrize("error", READERS)
def test_lists_are_not_numbers(error: type[TableError]) -> None:
    for rewards in ([[1], [0]], [np.array([1.0]), np.array([0.0])]):
        with pytest.raises(error, match="column 'click'"):
            READERS[error]({"item": ["a", "b"], "kind": ["x", "y"], "click": rewards})


@pytest.mark.parametrize("read", READERS.values())
def test_true_false_and_missing_mean_the_same_in_items_and_logs(read: Callable[[Any], Any]) -> None:
    words = [True, "false", " TRUE", None, "NA", 0, "1"]
    table = {"item": ["a"] * 7, "kind": ["x"] * 7, "click": words}
    result = read(table)
    rows, total = (len(result), result.rewards.sum()) if hasattr(result, "codes") else (result.plays, result.successes)
    assert (int(np.sum(rows)), int(np.sum(total))) == (5, 3)


def test_names_of_columns_without_their_values(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("at;arm;reward\n1;a;0\n", encoding="utf-8")
    table = {"arm": ["a"], "reward": [1]}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    assert column_names(tmp_path / "log.csv") == ["at", "arm", "reward"]
    for source in (tmp_path / "log.parquet", table, pd.DataFrame(table)):
        assert column_names(source) == ["arm", "reward"]


def test_columns_are_named_once_and_by_text() -> None:
    with pytest.raises(InvalidType, match="must be the name of a column"):
        load({"a": [1]}, ["a", 3])
    with pytest.raises(TableError, match="no such column"):
        read_tree({"item": ["a"]}, arm="item", path=["kind"])
