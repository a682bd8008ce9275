"""Read values that users give per arm: {arm: value}, or in the order of the arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from banditree.base.arrays import Floats
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.errors.checks import refuse_masked

if TYPE_CHECKING:
    from banditree.tree.tree import Tree


def by_arm(tree: Tree, what: str, values: object) -> Floats:
    """Return numbers given as {arm: value} or in the order of ``tree.arms``, in that order: (arms, ...)."""
    return numbers(what, in_order(tree, what, values) if isinstance(values, Mapping) else values)


def numbers(what: str, values: object) -> Floats:
    """Return numbers for arms as a new read-only array; the caller checks its shape: (arms, ...)."""
    refuse_masked(what, values)
    unlike = InvalidValue(f"{what} has lists of different lengths; give every arm the same number of values")
    try:
        array = np.asarray(values)
    except ValueError:
        raise unlike from None
    numeric = array.dtype.kind in "fiub" or not array.size
    if array.dtype.kind == "O":  # decimals and fractions are numbers, None and text are not
        numeric = all(hasattr(value, "__float__") for value in array.flat)
    if array.ndim == 0 or not numeric:
        raise InvalidType(f"{what} must be numbers, in the order of the arms or as {{arm: ...}}, not {values!r:.60}")
    try:
        floats: Floats = array.astype(np.float64)
    except OverflowError:
        raise InvalidValue(f"{what} has a number that is too large to compute with") from None
    except (TypeError, ValueError):
        raise unlike from None
    floats.flags.writeable = False
    return floats


def in_order(tree: Tree, what: str, values: Mapping[object, object]) -> list[object]:
    """Return the values of {arm: value} in the order of ``tree.arms``; the keys must be exactly the arms."""
    strange = [arm for arm in values if arm not in tree]
    if strange:
        which = f"{strange[0]!r}, which is not an arm of {tree!r}"
        raise UnknownArm(f"{what} has {which}; leave it out or add it to the tree")
    missing = [arm for arm in tree.arms if arm not in values]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InvalidValue(f"{what} has no value for arm {missing[0]!r}{more}; give every arm of the tree a value")
    return [values[arm] for arm in tree.arms]
