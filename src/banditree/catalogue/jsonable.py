"""Convert results to values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from banditree.report.tables import Table


def jsonable(value: Any) -> Any:
    """Convert to lists, mappings, numbers and strings; infinity and NaN become None.

    >>> jsonable({"a": (1, float("inf")), "b": np.float64(0.5)})
    {'a': [1, None], 'b': 0.5}
    """
    if isinstance(value, Table):
        return [jsonable(row) for row in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
