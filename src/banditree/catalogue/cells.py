"""Single cells of a table, as people and programs write them: names, and numbers that may be text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_VALUE = {"", "na", "n/a", "nan", "null", "none", "<na>"}  # as data frame libraries read them; case does not matter
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def name(value: Any, *, no_value: frozenset[str] | set[str] = NO_VALUE) -> str | int | None:
    """A string without the white space around it, or an int; None where there is nothing."""
    if type(value) is str:
        text = value.strip()
        return None if text.lower() in no_value else text
    if value is None or isinstance(value, bool):
        return None if value is None else str(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return None
        return int(value) if value == int(value) else str(value)  # a column of ints with gaps comes as floats
    text = str(value).strip()
    return None if text.lower() in no_value else text


def numbers(values: Sequence[Any]) -> tuple[NDArray[np.float64], dict[int, str]]:
    """The numbers, NaN where there is none, and what is wrong with the others by their place: (values,)."""
    try:
        found = np.array(values, object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        parsed, wrong = np.full(len(values), np.nan), {}
        for place, value in enumerate(values):
            number = _number(value)
            if isinstance(number, str):
                wrong[place] = number
            else:
                parsed[place] = number
        found = parsed
    else:
        wrong = {}
    for place in np.flatnonzero(np.isinf(found)).tolist():
        wrong[place] = f"{values[place]!r} is not finite"
    return found, wrong


def _number(value: Any) -> float | str:
    """A number, NaN for an empty cell, or what is wrong. "1,200" and "3.5%" are numbers too."""
    text = "" if value is None else str(value).strip()
    if text.lower() in NO_VALUE:
        return math.nan
    if THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return f"{value!r} is not a number"
