"""Cut rows into folds by a hash of a number or a time: the same folds in memory and on every engine.

A number is multiplied by a constant modulo a prime; which fifth of the range the product falls into is the fold. All
products fit into 63 bits, so that every engine computes the same. Each function on arrays has a twin on the expressions
of narwhals, which engines evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Places
from banditree.data import cells
from banditree.data.cells import Wrong

if TYPE_CHECKING:
    import narwhals as nw

FOLDS = 5
BLOCKS = 20  # into which the log of a learning policy is divided, in the order of time
PRIME, FACTOR = 2**31 - 1, 1_588_635_695  # after L'Ecuyer 1988: neighbours fall into folds as if at random
PARTS = 1_000_000  # of a number's fraction, and of a second
UTC_NAMES = ("UTC", "Etc/UTC", "GMT")


def folds_of(values: Sequence[Any]) -> tuple[Places, Wrong]:
    """Return the fold of each cell, a whole number, another number or a time: (values,)."""
    if set(map(type, values)) <= {int}:
        return _fold(np.array([value % PRIME for value in values], np.int64)), {}
    times, wrong = cells.times(values)
    if times.dtype.kind == "M":
        return _fold(_microseconds(times) % PRIME), wrong
    times = np.where(np.isfinite(times), times, 0.0)
    below = np.floor(times)
    fraction = np.floor((times - below) * PARTS).astype(np.int64)
    return _fold((np.fmod(below, PRIME).astype(np.int64) + fraction) % PRIME), wrong


def _fold(key: NDArray[np.int64]) -> Places:
    spread = key * FACTOR % PRIME
    return np.asarray(np.searchsorted(_starts(), spread, side="right"), np.intp)


def _starts() -> list[int]:
    return [at * PRIME // FOLDS for at in range(1, FOLDS)]


def _microseconds(times: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """Number times so that later ones have higher numbers; years count as 366 days, as engines know days of a year."""
    times = np.where(np.isnat(times), np.datetime64(0, "us"), times.astype("datetime64[us]"))
    years, days = times.astype("datetime64[Y]"), times.astype("datetime64[D]")
    day = (years.astype(np.int64) + 1970) * 366 + (days - years.astype("datetime64[D]")).astype(np.int64) + 1
    return np.asarray(day * 86_400 * PARTS + (times - days).astype(np.int64), np.int64)


# ---------------------------------------------------------------- the same for engines


def fold_expression(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr | None:
    """Describe the fold of each row by an expression of narwhals; None for a column that is neither number nor time."""
    import narwhals as nw

    key = time_expression(column, dtype)
    if key is None:
        return None
    if dtype.is_float():
        below = column.cast(nw.Float64).floor()
        fraction = ((column.cast(nw.Float64) - below) * PARTS).floor().cast(nw.Int64)
        key = _modulo(below.cast(nw.Int64)) + fraction
    elif dtype.is_numeric():
        key = column.cast(nw.Int64)
    spread = _modulo(_modulo(key) * FACTOR)
    first, *rest = [(spread >= at).cast(nw.Int64) for at in _starts()]
    for one in rest:
        first = first + one
    return first


def _modulo(key: nw.Expr) -> nw.Expr:
    return ((key % PRIME) + PRIME) % PRIME  # remainders of negative numbers have the sign that the engine gives them


def time_expression(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr | None:
    """Describe a number that grows with time: the number itself, or microseconds; None for other kinds of columns."""
    import narwhals as nw

    if dtype.is_numeric():
        return column.cast(nw.Float64)
    if dtype not in (nw.Datetime, nw.Date):
        return None
    if dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    elif isinstance(dtype, nw.Datetime) and dtype.time_zone not in (None, *UTC_NAMES):
        column = column.dt.convert_time_zone("UTC")
    names = ("year", "ordinal_day", "hour", "minute", "second", "microsecond")
    parts: list[nw.Expr] = [getattr(column.dt, name)().cast(nw.Int64) for name in names]
    year, day, hour, minute, second, rest = parts
    rest = ((rest % PARTS) + PARTS) % PARTS  # below 0 in Spark before 1970
    return ((((year * 366 + day) * 24 + hour) * 60 + minute) * 60 + second) * PARTS + rest
