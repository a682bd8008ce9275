"""The engines whose lazy frames `read_log` takes, for the tests: each makes one of a pandas data frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import duckdb
import polars as pl

to_dask: Any = import_module("dask.dataframe").from_pandas  # which has no types
Make = Callable[[Any], Any]


def on_duckdb(frame: Any) -> Any:
    return duckdb.connect().from_df(frame)


def on_dask(frame: Any) -> Any:
    return to_dask(frame, npartitions=2)


@cache
def _spark() -> Any:
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    return import_module("pyspark.sql").SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def on_spark(frame: Any) -> Any:
    return _spark().createDataFrame(frame)


def on_ibis(frame: Any) -> Any:
    return import_module("ibis").memtable(frame)


ENGINES: dict[str, Make] = {
    "DuckDB": on_duckdb,
    "Polars": lambda frame: pl.from_pandas(frame).lazy(),
    "Dask": on_dask,
}
# Not among the tools of `make setup`: they are large, or need Java. Where they are installed, they are tested too.
MORE: dict[str, tuple[str, Make]] = {"Spark": ("pyspark", on_spark), "Ibis": ("ibis", on_ibis)}
MISSING = [name for name, (module, _) in MORE.items() if find_spec(module) is None]
ENGINES |= {name: make for name, (_, make) in MORE.items() if name not in MISSING}
