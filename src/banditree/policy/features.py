"""Contexts made of mixed columns, such as dummies beside numbers; or the error that says which column is in the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banditree.beliefs.base import Floats
from banditree.errors import InvalidType, InvalidValue

RECIPE = "docs/contexts.md shows how to make numbers of such features with scikit-learn's ColumnTransformer"
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NOT_BOOLS = (int, float, np.integer, np.floating)


def refuse_named(value: Any, what: str, need: str) -> None:
    """Refuse text and dicts, which have features by name and not numbers in an order; also a list of them."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(first, str | bytes | Mapping):
        kind = "text" if isinstance(first, str | bytes) else f"a {type(first).__name__}"
        raise InvalidType(f"{need}, and {what} is {'' if first is value else 'a list of '}{kind}; {RECIPE}")


def from_objects(array: Any, value: Any, what: str, need: str) -> Floats:
    """Numbers and bools held as Python objects, as floats of the same shape."""
    found = np.empty(array.shape)
    for where, each in np.ndenumerate(array):
        if isinstance(each, NUMBERS) and not isinstance(each, np.timedelta64):
            try:
                found[where] = each
            except OverflowError:
                found[where] = np.inf
        elif _is_missing(each):
            raise InvalidValue(
                f"{need}; {_place(value, where)} of {what} is missing ({each}): fill it in, or leave it out"
            )
        else:
            raise InvalidType(
                f"{need}; {_place(value, where)} of {what} is {each!r:.60}, a {type(each).__name__}; {RECIPE}"
            )
    return found


def from_column(column: Any, what: str, kinds: tuple[type, ...]) -> Floats:
    """Numbers held as Python objects, (n,), as floats; ``kinds`` says what a number is."""
    found = np.empty(len(column))
    for row, each in enumerate(column):
        if _is_missing(each):
            raise InvalidValue(f"{what} {each} is missing, in row {row}; leave out rows without a value")
        is_number = isinstance(each, kinds) and not (isinstance(each, bool) and bool not in kinds)
        if isinstance(each, np.timedelta64) or not is_number:
            raise InvalidType(f"{what} {each!r:.60} is a {type(each).__name__}, in row {row}; give numbers")
        try:
            found[row] = float(each)
        except OverflowError:
            found[row] = np.inf
    return found


def _is_missing(value: Any) -> bool:
    """None, and what pandas has for it, whether or not pandas is there."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _place(value: Any, where: tuple[int, ...]) -> str:
    """What a user calls an entry: its column by name, where there are names, and its row."""
    names = getattr(value, "columns", None) if len(where) > 1 else getattr(value, "index", None)
    column: Any = where[-1]
    if names is not None and not callable(names):  # a list has a method `index`
        column = repr(list(names)[where[-1]])
    row = f" in row {where[0]}" if len(where) > 1 else ""
    return f"column {column}{row}" if len(where) > 1 else f"entry {column}"
