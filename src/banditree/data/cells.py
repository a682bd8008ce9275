"""Parse the cells of a table as people and programs write them: names, numbers, true and false, times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

import numpy as np

from banditree.base.arrays import Array, Floats
from banditree.data.defects import quote

Wrong = dict[int, str]  # {index of a cell: what is wrong with it}
Name = str | int | None
T = TypeVar("T")

# How data frame libraries print missing values, in upper or lower case.
MISSING = {"", "na", "n/a", "nan", "nat", "null", "none", "<na>"}
TRUTHS = {"true": 1.0, "false": 0.0}
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
CODE = re.compile(r"0\d+")  # a number would be written without the first 0
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)  # Python types of the lists and structs of Parquet files


def looks_missing(value: object) -> bool:
    """Whether this is how tables write a missing value."""
    return value is None or str(value).strip().lower() in MISSING


def is_nested(values: Sequence[object]) -> bool:
    """Whether a cell holds a list, a struct or an array."""
    return any(issubclass(kind, NESTED) for kind in set(map(type, values)))


# ---------------------------------------------------------------- names


def names(values: Sequence[object]) -> tuple[list[Name], Wrong]:
    """Read names: text stripped of white space, or ints; None for empty cells. A list or a struct is not a name."""
    wrong: Wrong = {}
    if is_nested(values):
        for at, value in enumerate(values):
            if isinstance(value, NESTED):
                wrong[at] = f"{quote(value)} is a {type(value).__name__}; give text or a whole number"
        values = [None if at in wrong else value for at, value in enumerate(values)]
    return _parse_distinct(values, name), wrong


def name(value: object) -> Name:
    """Return the name in a cell: text stripped of white space, or an int; None for an empty cell.

    Only empty text counts as an empty cell: an item or a category may well be called NA.
    """
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)  # a column of ints with missing values arrives as floats
    return None if looks_missing(value) else str(value).strip()


def _parse_distinct(values: Sequence[object], parse: Callable[[object], T]) -> list[T]:
    """Parse each distinct cell once, if cells that are equal have the same type (1 equals True)."""
    if len(set(map(type, values)) - {type(None)}) > 1:
        return [parse(value) for value in values]
    try:
        parsed = {value: parse(value) for value in dict.fromkeys(values)}
    except TypeError:  # not hashable
        return [parse(value) for value in values]
    return [parsed[value] for value in values]


# ---------------------------------------------------------------- numbers


def numbers(values: Sequence[object], *, truths: bool = False) -> tuple[Floats, Wrong]:
    """Read numbers: (values,), with NaN for empty cells and for cells that are wrong.

    With ``truths``, the words true and false stand for 1 and 0.
    """
    parsed = _numbers_at_once(values)
    wrong: Wrong = {}
    if parsed is None:
        parsed = np.full(len(values), np.nan)
        for at, number in enumerate(_parse_distinct(values, lambda value: _number(value, truths=truths))):
            if isinstance(number, str):
                wrong[at] = number
            else:
                parsed[at] = number
    for at in np.flatnonzero(np.isinf(parsed)).tolist():
        wrong[at] = f"{quote(values[at])} is not finite"
        parsed[at] = np.nan
    return parsed, wrong


def _numbers_at_once(values: Sequence[object]) -> Floats | None:
    """Convert all cells at once if every cell is already a number; None otherwise: (values,)."""
    if is_nested(values) or _is_python("".join([value for value in values if isinstance(value, str)])):
        return None
    try:
        return np.array(values, object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_python(text: str) -> bool:
    """Whether Python might read text as a number that a table would not mean, such as 1_000."""
    return "_" in text or not text.isascii()


def _number(value: object, *, truths: bool) -> float | str:
    """Parse one cell: a number, NaN if empty, or a message if it is neither. "1,200" and "3.5%" are numbers too."""
    if looks_missing(value):
        return math.nan
    text = str(value).strip()
    if truths and text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    plain = text.removesuffix("%").strip()
    if THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        if _is_python(plain):
            raise ValueError
        return float(plain) / 100 if text.endswith("%") else float(plain)
    except ValueError:
        return f"{quote(value)} is not a number"


def are_truths(values: Sequence[object]) -> bool:
    """Whether all cells are true, false or empty, and at least one is not empty."""
    words = {str(value).strip().lower() for value in set(map(_as_key, values))}
    return bool(words & set(TRUTHS)) and words <= set(TRUTHS) | MISSING


def kind_of(values: Sequence[object], *, untyped: bool) -> str:
    """Say what the cells of a feature are: "bool", "number" or "category".

    Text is a category. In a file without types, all cells are text: there a column is one of categories if one of its
    cells is a code such as 01234, or if none is a number.
    """
    distinct = list(dict.fromkeys(map(_as_key, values)))
    has_text = any(isinstance(value, str) for value in distinct)
    if are_truths(distinct) and (untyped or not has_text):
        return "bool"
    if not has_text:
        return "number"
    is_code = any(isinstance(value, str) and CODE.fullmatch(value.strip()) for value in distinct)
    return "category" if not untyped or is_code or bool(np.isnan(numbers(distinct)[0]).all()) else "number"


def _as_key(value: object) -> object:
    return str(value) if isinstance(value, NESTED) else value


def not_a_count(value: object, number: float) -> str | None:
    """Say what is wrong with a number as a count; None if it is a whole number or missing."""
    if math.isfinite(number) and not number.is_integer():
        text = quote(value) if isinstance(value, str) else f"{number:.12g}"
        return f"{text} is not a whole number; write 1200 for one thousand two hundred, without separators"
    return None


# ---------------------------------------------------------------- times

Times = Array  # (values,) numbers or datetime64 in UTC


def times(values: Sequence[object]) -> tuple[Times, Wrong]:
    """Read times as numbers or as datetime64 in UTC: numbers, dates, or ISO 8601 text.

    >>> times(["2024-03-01T10:00:00Z", "2024-03-01 12:00:00+01:00"])[0].astype(str).tolist()
    ['2024-03-01T10:00:00.000000', '2024-03-01T11:00:00.000000']
    """
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, str | date):
        return _numeric_times(values)
    if isinstance(first, str):
        parsed, odd = numbers(list(dict.fromkeys(map(_as_key, values)))[:100])
        if not odd and not np.isnan(parsed).all():
            return _numeric_times(values)
    moments = [_moment(value) for value in values]
    has_zone = {moment.tzinfo is not None for moment in moments if moment is not None}
    wrong: Wrong = {}
    for at, moment in enumerate(moments):
        if moment is None:
            wrong[at] = f"{quote(values[at])} is not a time; give numbers, or ISO 8601 as in 2024-03-01 10:00:00"
        elif len(has_zone) > 1 and moment.tzinfo is None:
            zone = "has no time zone, but other rows have one; give all rows a time zone, or none"
            wrong[at] = f"{quote(values[at])} {zone}"
    in_utc = [
        moment if moment is None or moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
        for moment in moments
    ]
    return np.array(in_utc, "datetime64[us]"), wrong


def _numeric_times(values: Sequence[object]) -> tuple[Times, Wrong]:
    parsed, wrong = numbers(values)
    for at in np.flatnonzero(np.isnan(parsed)).tolist():
        wrong[at] = f"{quote(values[at])} is not a time; give numbers or dates, the same kind in all rows"
    return parsed, wrong


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value == value else None  # noqa: PLR0124 (pandas' NaT is a datetime that differs from itself)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None
