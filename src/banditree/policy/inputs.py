"""Check the arguments of a policy's methods and convert them for the engines, or raise an error with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.words import count as count_of
from banditree.beliefs import Rows
from banditree.data import features
from banditree.data.features import Features
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import MAX_CONTEXT, MAX_PLAYS, MAX_REWARD, refuse_masked

MAX_SHORT = 256  # most rewards that an engine takes in lists
MAX_FEATURES_NAMED = 5  # features that an error names, at most


def short(values: object) -> object:
    """Return a short array as a list, which the native engine reads faster; anything else as it is."""
    if type(values) is np.ndarray and values.ndim == 1 and len(values) <= MAX_SHORT and values.dtype.kind not in "mM":
        return values.tolist()  # of times, this would make ints
    return values


def reward(value: object, rows: Rows, arm: object) -> float:
    """Return one reward as a float inside the belief's support."""
    refuse_masked("rewards", value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.timedelta64) or not isinstance(value, int | float | np.integer | np.floating | np.bool_):
        raise InvalidType(f"reward {value!r:.60} for arm {arm!r} is a {type(value).__name__}; give a number")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise InvalidValue(
            f"reward {value!s:.60} for arm {arm!r} is not finite; leave out rewards that were not observed"
        )
    if abs(number) > MAX_REWARD:
        raise InvalidValue(f"reward {number:g} for arm {arm!r} is too large to compute with; scale your rewards")
    low, high = rows.support
    if not low <= number <= high:
        raise InvalidValue(f"reward {value!r} for arm {arm!r} is outside [{low:g}, {high:g}]; {rows.hint}")
    return number


def rewards(values: object, n: int) -> Floats:
    """Return many rewards as floats, one for each of n arms; the engines read them once, and check the support."""
    return _one_each(values, n, "rewards", "reward", features.NUMBERS)


def plays(values: object, n: int) -> Floats:
    """Return how many rewards each of n rows stands for; the engines read them once, and check the range."""
    return _one_each(values, n, "plays", "plays", features.NOT_BOOLS)


def _one_each(values: object, n: int, what: str, one: str, kinds: tuple[type, ...]) -> Floats:
    """Return one number for each of n arms as floats, maybe ``values`` itself; ``kinds`` are the types of numbers."""
    refuse_masked(what, values)
    if isinstance(values, set | frozenset):
        raise InvalidType(f"{what} is a set, which has no order; give a list")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(f"{n} arms but {what} in lists of different lengths; give one number for each arm") from None
    if array.shape != (n,):
        raise InvalidValue(f"{n} arms but {what} of shape {array.shape}; give one number for each arm, in a flat list")
    if n and array.dtype.kind not in ("iuf" if bool not in kinds else "biuf"):
        # each as it was given: one text among numbers makes text of all
        objects = array if array.dtype.kind in "mM" else np.asarray(values, dtype=object)
        return features.from_column(objects, one, kinds)
    return np.require(array, np.float64, ["C", "A"])


def refuse_row(row: int, arm: object, rewards: Floats, plays: Floats | None, rows: Rows) -> None:
    """Raise the error for a row of a batch that an engine refused."""
    total = float(rewards[row])
    if plays is None or not abs(total) <= MAX_REWARD:
        reward(total, rows, arm)
        raise InvalidValue(f"reward {total!r} for arm {arm!r} cannot be learned")
    count = float(plays[row])
    if not 0 < count <= MAX_PLAYS:
        raise InvalidValue(f"plays {count:g} for arm {arm!r} must be above 0 and at most {MAX_PLAYS:g}")
    low, high = rows.support
    raise InvalidValue(
        f"the sum of rewards {total:g} for arm {arm!r} cannot come from {count:g} plays with rewards "
        f"in [{low:g}, {high:g}]; {rows.hint or 'check rewards and plays'}"
    )


@dataclass(frozen=True)
class Contexts:
    """The contexts that a policy takes: their length, or features by name, and their encoding for the engines."""

    owner: str  # the policy's name, for errors
    dim: int | None  # length of the vectors that users give, None if the policy takes no contexts
    features: Features | None = None
    constant: bool = False  # whether the engines need a 1 after the features

    @classmethod
    def of(cls, owner: str, dim: int | None, features: object, has_intercept: bool) -> Contexts:
        """Check the features of a policy whose belief takes contexts of length ``dim``."""
        if features is None:
            return cls(owner, dim)
        if not isinstance(features, Features):
            raise InvalidType(f"features={features!r:.60} must be bt.Features(...)")
        if dim is None:
            raise InvalidType(f"{owner} takes no context; leave out features=, or use a policy such as LinATS")
        if dim != features.dim + (not has_intercept):
            one = "" if has_intercept else ", and a constant for the level"
            raise InvalidValue(
                f"{owner} has features of {features.dim} columns{one}, which does not fit a belief of dim={dim}"
            )
        return cls(owner, features.dim, features, not has_intercept)

    @property
    def need(self) -> str:
        numbers = f"{self.dim} numbers"
        if self.features is None:
            return numbers
        named = ", ".join(map(repr, list(self.features.spec)[:MAX_FEATURES_NAMED]))
        return f"the features {named}{', ...' if len(self.features.spec) > MAX_FEATURES_NAMED else ''}, or {numbers}"

    def one(self, value: object) -> Floats | None:
        """Return one context as floats of the right length, or None if the policy takes none."""
        if self.dim is None:
            if value is not None:
                raise InvalidValue(
                    f"{self.owner} takes no context; leave it out, or use a policy that does, such as LinATS"
                )
            return None
        if value is None:
            raise InvalidValue(f"{self.owner} needs a context of {self.need}; pass context=x")
        if self.features is not None and (named := _by_name(value)) is not None:
            return self._complete(self.features.encode(named))
        return self._complete(_floats(value, (self.dim,), f"{self.owner} needs a context of {self.need}", "context"))

    def many(self, value: Any, n: int | None) -> Floats | None:
        """Return many contexts as floats, one row each, or None if the policy takes none."""
        if self.dim is None:
            return self.one(value)
        if value is None:
            raise InvalidValue(f"{self.owner} needs contexts of {self.need} each; pass contexts=X")
        if self.features is not None and (frame := _frame(value)) is not None:
            rows = self.features.encode(frame)
            if n is not None and len(rows) != n:
                raise InvalidValue(
                    f"{self.owner} needs {count_of(n, 'context')}, one row each; this frame has {len(rows)}"
                )
            return self._complete(rows)
        if n is None:
            try:
                n = 1 if isinstance(value, Mapping | str) else len(value)
            except TypeError:
                raise InvalidType(
                    f"{self.owner} needs contexts of {self.need} each, one row each; not {value!r}"
                ) from None
        need = f"{self.owner} needs {count_of(n, 'context')} of {self.need} each"
        return self._complete(_floats(value, (n, self.dim), need, "contexts"))

    def _complete(self, rows: Floats) -> Floats:
        """Put the constant after the features: (dim,) or (n, dim)."""
        return np.concatenate([rows, np.ones((*rows.shape[:-1], 1))], axis=-1) if self.constant else rows


def _by_name(value: object) -> object:
    """Return a context that has its features by name as a mapping, None for numbers in an order."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a row of a pandas frame
        row = value.to_dict()
        return row if any(isinstance(name, str) for name in row) else None
    return None


def _frame(value: object) -> object:
    """Return contexts whose columns have names: a frame, or a list of mappings; None for rows of numbers."""
    if isinstance(value, Mapping):
        raise InvalidType("contexts is a mapping, which is one visitor; give a data frame, or a list of mappings")
    if isinstance(value, list | tuple):
        return value if value and isinstance(value[0], Mapping) else None
    names = getattr(value, "columns", None) if not isinstance(value, np.ndarray) else None
    return value if names is not None else None


def _floats(value: object, shape: tuple[int, ...], need: str, what: str) -> Floats:
    """Return finite floats of this shape, in a new array that no other thread can change."""
    refuse_masked("contexts", value)
    features.refuse_named(value, what, need)
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidValue(f"{need}; these are of different lengths") from None
    if array.shape == (0,) and shape[0] == 0:
        array = np.empty(shape)  # an empty list of contexts
    if array.shape != shape:
        raise InvalidValue(f"{need}, a shape of {shape}; this one has shape {array.shape}")
    if array.dtype.kind in "OSU":
        array = np.asarray(value, dtype=object)  # each as it was given: one text among numbers makes text of all
        array = features.from_objects(array, value, what, need)
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{need}; {what} holds values of type {array.dtype}")
    array = np.array(array, np.float64, order="C")
    fits = np.abs(array) <= MAX_CONTEXT  # false for NaN
    if not fits.all():
        where = tuple(int(i) for i in np.argwhere(~fits)[0])
        why = "all must be finite"
        if np.isfinite(array[where]):
            why = f"the largest allowed is {MAX_CONTEXT:g}; scale your contexts"
        raise InvalidValue(f"{what} has {array[where]} at {where if len(where) > 1 else where[0]}; {why}")
    return array
