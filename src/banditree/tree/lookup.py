"""Find arms by their ids, and read values that users give per arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.errors.checks import is_native_ready, refuse_masked
from banditree.tree.build import Name
from banditree.tree.shape import Floats, lazy

if TYPE_CHECKING:
    from banditree.tree.tree import Tree

PLAIN = {str, int}  # types that are valid ids; True and 1.0 equal 1 but are not ids


class Lookup:
    """The arm ids of one tree, strings or ints. ``tree`` returns a description of the tree for errors."""

    def __init__(self, arms: Sequence[Name], tree: Callable[[], str]) -> None:
        self.arms, self._tree = tuple(arms), tree
        self.index = dict(zip(self.arms, range(len(self.arms)), strict=True))
        if len(self.index) < len(self.arms):
            twice = next(arm for at, arm in enumerate(self.arms) if self.index[arm] != at)
            raise InvalidValue(f"arm {twice!r} appears more than once; arm ids are unique over the whole tree")

    def position(self, arm: Any) -> int:
        """Return the position of one arm."""
        if type(arm) not in PLAIN and (isinstance(arm, bool) or not isinstance(arm, str | int | np.integer)):
            raise self._unknown(arm, f"; ids are strings or ints, not of type {type(arm).__name__}")
        try:
            return self.index[arm]
        except KeyError:
            raise self._unknown(arm) from None

    def _unknown(self, arm: object, more: str = "") -> UnknownArm:
        shown = ", ".join(repr(arm) for arm in self.arms[:5])
        shown += f", ... ({len(self.arms):,} in all)" if len(self.arms) > 5 else ""
        return UnknownArm(f"arm {arm!r:.100} is not in {self._tree()}; its arms are {shown}{more}")

    def positions(self, arms: object, *, copy: bool = True) -> NDArray[np.int64]:
        """Return the positions of many arms. NumPy ints are looked up without making Python objects.

        The array is a new one, unless ``copy`` is false: then it may be ``arms`` itself.
        """
        refuse_masked("arms", arms)
        if isinstance(arms, np.ndarray):
            if arms.ndim == 1 and arms.dtype.kind in "iu" and self._table is not None:
                same = not copy and self._counts_up and arms.dtype == np.int64 and is_native_ready(arms)
                ids = arms if same else arms.astype(np.int64, order="C")
                positions = self._look_up(ids, arms.dtype.kind == "u", *self._table)
                if positions is not None:
                    return positions
            arms = arms.tolist()
        if hasattr(arms, "to_pylist"):  # PyArrow arrays hold PyArrow scalars
            arms = arms.to_pylist()
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise InvalidType(f"arms must be a list or an array of arm ids, not {arms!r}")
        if isinstance(arms, set | frozenset):
            raise InvalidType("arms is a set, which has no order; give a list, for example sorted(...)")
        listed = list(arms)
        if set(map(type, listed)) <= PLAIN:
            try:
                return np.array([self.index[arm] for arm in listed], np.int64)
            except KeyError:
                pass  # the slow way below raises for the right arm
        return np.array([self.position(arm) for arm in listed], np.int64)

    def _look_up(
        self, ids: NDArray[np.int64], unsigned: bool, low: int, table: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Look up the positions of ints in the table; None if one is missing or the types do not allow it.

        Where ids are positions, ``ids`` itself is returned. Elsewhere it is a copy, so that no other thread can change
        it between the check and the use.
        """
        if len(ids) == 0 or (unsigned and (low < 0 or int(ids.min()) < 0)):
            return None
        offset = ids - low if low else ids
        if int(offset.view(np.uint64).max()) >= len(table):  # negative numbers become huge as unsigned ones
            return None
        positions = offset if self._counts_up else table[offset]
        return positions if self._counts_up or int(positions.min()) >= 0 else None

    @lazy
    def ids(self) -> NDArray[Any]:
        """The ids as an array: of ints if all are ints, else of objects."""
        if set(map(type, self.arms)) == {int}:
            with suppress(OverflowError):
                ids = np.array(self.arms, np.int64)
                if ids.min() > -(2**62) and ids.max() < 2**62:  # the difference of two fits as well
                    return ids
        array = np.empty(len(self.arms), object)
        array[:] = self.arms
        return array

    @lazy
    def _table(self) -> tuple[int, NDArray[np.int64]] | None:
        """(lowest id, positions of the ids from there on, -1 for gaps); None unless ids are ints without large gaps."""
        if self.ids.dtype == object:
            return None
        low, high = int(self.ids.min()), int(self.ids.max())
        if high - low > 8 * len(self.arms) + 1024:
            return None
        table = np.full(high - low + 1, -1, np.int64)
        table[self.ids - low] = np.arange(len(self.arms))
        return low, table

    @lazy
    def _counts_up(self) -> bool:
        """Whether the ids are 0, 1, 2, ..., so that an id is its own position."""
        return bool((self.ids == np.arange(len(self.arms))).all())


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


def in_order(tree: Tree, what: str, values: Mapping[Any, Any]) -> list[Any]:
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
