"""A table of the page: texts under column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """Texts in rows; the first ``words`` columns are words, the others numbers. ``label`` is read out, not shown."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    label: str
    words: int = 1
