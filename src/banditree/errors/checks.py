"""Check plain parameters: return the value, or raise an error that names the parameter and says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditree.errors import InvalidType, InvalidValue

# Twins of largest, largest_context and most_plays in native/policy/walk.hpp.
MAX_REWARD = 1e100  # largest reward: sums of rewards and of their squares stay finite
MAX_CONTEXT = 1e30  # largest entry of a context, so that products with rewards, and solutions, stay finite
MAX_PLAYS = 1e15  # most plays in one row of a batch: counts remain whole numbers that floats hold exactly


def whole(what: str, value: object, low: int, high: int | None = None, why: str = "") -> int:
    """Require an int from ``low`` to ``high``."""
    if type(value) is not int and (isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer)):
        raise InvalidType(f"{what}={value!r} must be an int")
    if value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidValue(f"{what}={value!s:.60} must be {allowed}{_because(why)}")
    return int(value)


def real(what: str, value: object, low: float = -math.inf, high: float = math.inf, why: str = "") -> float:
    """Require a finite number from ``low`` to ``high``."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidType(f"{what}={value!r} must be a number")
    if isinstance(value, int) and abs(value) > 2**1023:  # beyond what a float holds
        raise InvalidValue(f"{what}={value!s:.60} is too large to compute with{_because(why)}")
    if not math.isfinite(value) or not low <= value <= high:
        allowed = f"at least {low}" if high == math.inf else f"from {low} to {high}"
        if low == -math.inf or not math.isfinite(value):
            allowed = "finite"
        raise InvalidValue(f"{what}={value} must be {allowed}{_because(why)}")
    return float(value)


def positive(what: str, value: object) -> float:
    """Require a finite number above 0."""
    number = real(what, value)
    if number <= 0:
        raise InvalidValue(f"{what}={value} must be above 0")
    return number


def choice(what: str, value: object, options: Sequence[str]) -> str:
    """Require one of these strings."""
    if not isinstance(value, str) or value not in options:
        raise InvalidValue(f"{what}={value!r} must be one of {', '.join(map(repr, options))}")
    return value


def split_names(what: str, given: str | Sequence[str] | None) -> list[str]:
    """Split "a,b,c", or several such texts, into names."""
    names = []
    for text in [given] if isinstance(given, str) else given or ():
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise InvalidValue(f"{what} {text!r} contains no name; give names separated by commas: a,b,c")
        names += parts
    return names


def refuse_masked(what: str, values: object) -> None:
    """Refuse NumPy masked arrays, alone or as rows of a list: masked values must not be learned."""
    if type(values) is np.ndarray:
        return
    kinds = set(map(type, values)) if isinstance(values, list | tuple) else {type(values)}
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        raise InvalidType(f"{what} are in a masked array; leave out the masked values, for example with x.compressed()")


def _because(why: str) -> str:
    return f": {why}" if why else ""
