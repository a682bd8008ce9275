"""Make data frames with whichever library is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from banditree.errors import MissingExtra

MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # the first one installed is used


def frame(columns: Mapping[str, list[Any]]) -> Any:
    """Make a data frame of these columns, in pandas, Polars or PyArrow."""
    for library, maker in MAKERS.items():
        try:
            module = import_module(library)
        except ImportError:
            continue
        return getattr(module, maker)(dict(columns))
    raise MissingExtra("no data frame library is installed; pip install pandas, polars or pyarrow")
