"""Parse single table cells as people and programs write them: names, and numbers that may be text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.defects import shown

# How data frame libraries print missing values, in upper or lower case.
NO_VALUE = {"", "na", "n/a", "nan", "nat", "null", "none", "<na>"}
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
DOTTED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")  # thousands as written in much of Europe, or three decimals


def name(value: Any) -> str | int | None:
    """Return the name in a cell: a string stripped of white space, or an int; None for an empty cell.

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
    text = str(value).strip()
    return None if looks_empty(text) else text


def looks_empty(text: str) -> bool:
    """Whether this is how tables write a missing value."""
    return text.lower() in NO_VALUE


def numbers(values: Sequence[Any]) -> tuple[NDArray[np.float64], dict[int, str]]:
    """Parse numbers: (values,) with NaN for empty cells, and {index: what is wrong} for the cells that fail."""
    found = _at_once(values)
    wrong: dict[int, str] = {}
    if found is None:
        found = np.full(len(values), np.nan)
        for place, value in enumerate(values):
            number = _number(value)
            if isinstance(number, str):
                wrong[place] = number
            else:
                found[place] = number
    for place in np.flatnonzero(np.isinf(found)).tolist():
        wrong[place] = f"{shown(values[place])} is not finite"
    return found, wrong


def _at_once(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Convert all cells at once if every cell is already a number; None otherwise: (values,)."""
    if _is_python("".join([value for value in values if isinstance(value, str)])):
        return None
    try:
        return np.array(values, object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_python(text: str) -> bool:
    """Whether Python might read text as a number that a table would not mean, such as 1_000."""
    return "_" in text or not text.isascii()


def truth(value: Any) -> Any:
    """Convert "true" and "false" to 1 and 0; return anything else unchanged."""
    if isinstance(value, str):
        return {"true": 1, "false": 0}.get(value.strip().lower(), value)
    return value


def not_a_count(value: Any, number: float) -> str | None:
    """Say what is wrong with a number as a count; None if it is a whole number or missing."""
    if isinstance(value, str) and DOTTED.fullmatch(value.strip()):
        return (
            f"{shown(value)} may be {number:.12g} or {value.strip().replace('.', '')}; write counts without separators"
        )
    if math.isfinite(number) and not number.is_integer():
        found = shown(value) if isinstance(value, str) else f"{number:.12g}"
        return f"{found} is not a whole number; write 1200 for one thousand two hundred, without separators"
    return None


def _number(value: Any) -> float | str:
    """Parse one cell: a number, NaN if empty, or a message if it is neither. "1,200" and "3.5%" are numbers too."""
    text = "" if value is None else str(value).strip()
    if looks_empty(text):
        return math.nan
    plain = text.removesuffix("%").strip()
    if THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    try:
        if _is_python(plain):
            raise ValueError
        return float(plain) / 100 if text.endswith("%") else float(plain)
    except ValueError:
        marks = "; a point marks decimals and a comma thousands, as in 1,200.5" if re.search(r"\d[.,]\d", text) else ""
        return f"{shown(value)} is not a number{marks}"
