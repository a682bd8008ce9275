"""Results as JSON knows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from banditree.output.tables import Table


def plain(value: Any) -> Any:
    """Lists, mappings, numbers and strings; None for numbers that are infinite or none at all.

    >>> plain({"a": (1, float("inf")), "b": np.float64(0.5)})
    {'a': [1, None], 'b': 0.5}
    """
    if isinstance(value, Table):
        return [plain(row) for row in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
