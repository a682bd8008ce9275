"""Parse the times of a log's rows: numbers, dates, or ISO 8601 text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import cells

Found = tuple[NDArray[Any], NDArray[np.bool_], str]


def as_times(values: Sequence[Any]) -> Found:
    """Return the times as numbers or datetime64 in UTC, a mask of the rows that failed, and the error message for them.

    >>> as_times(["2024-03-01T10:00:00Z", "2024-03-01 12:00:00+01:00"])[0].astype(str).tolist()
    ['2024-03-01T10:00:00.000000', '2024-03-01T11:00:00.000000']
    """
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, str | date):
        return _numbers(values)
    if isinstance(first, str):
        numbers, odd = cells.numbers(list(dict.fromkeys(values))[:100])
        if not odd and not np.isnan(numbers).all():
            return _numbers(values)
    moments = [_moment(value) for value in values]
    bad = np.array([moment is None for moment in moments], bool)
    aware = {moment.tzinfo is not None for moment in moments if moment is not None}
    message = "is not a time; give numbers, or ISO 8601 as in 2024-03-01 10:00:00"
    if len(aware) > 1:
        bad = np.array([moment is None or moment.tzinfo is None for moment in moments], bool)
        message = "has no time zone, but other rows have one; give all rows a time zone, or none"
    naive = [_naive(moment) if moment is not None else None for moment in moments]
    if bad.any():
        message = f"{values[int(bad.argmax())]!r:.40} {message}"
    return np.array(naive, "datetime64[us]"), bad, message


def _numbers(values: Sequence[Any]) -> Found:
    found, _ = cells.numbers(values)
    bad = ~np.isfinite(found)
    shown = f"{values[int(bad.argmax())]!r:.40} " if bad.any() else ""
    return found, bad, f"{shown}is not a time; give numbers or dates, the same kind in all rows"


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value if value == value else None  # noqa: PLR0124 (pandas' NaT is a datetime that differs from itself)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value.strip())
    except (AttributeError, ValueError):
        return None


def _naive(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
