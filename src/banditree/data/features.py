"""Contexts: features by name and the vectors they become; vectors of mixed columns; errors that say what is wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditree.base.arrays import Array, Floats
from banditree.base.files import Json
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import MAX_REWARD, real
from banditree.tree.build import Name

MOST_COLUMNS = 1000  # of a vector: a linear policy has a matrix of this size, squared, at every node
RECIPE = "docs/contexts.md shows how to make numbers of such features with scikit-learn's ColumnTransformer"
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NOT_BOOLS = (int, float, np.integer, np.floating)
FLAGS = (bool, np.bool_)


class Features:
    """Features by name, and how they become a vector: one column per level, a range as -1 to 1, a bool as 0 or 1.

    A level that is not listed becomes zeros in all columns of its feature, and a number outside its range becomes -1
    or 1. A value that is missing, or of another type, is an error that names the feature.

    Parameters
    ----------
    features : mapping
        For each name a list of levels (all text, or all whole numbers), a range ``(low, high)``, or ``bool``. The
        columns of the vector are in this order.

    Examples
    --------
    >>> features = Features({"device": ["phone", "tablet", "desktop"], "age": (18, 90), "returning": bool})
    >>> features.names
    ('device=phone', 'device=tablet', 'device=desktop', 'age', 'returning')
    >>> features.encode({"device": "tablet", "age": 54, "returning": True}).tolist()
    [0.0, 1.0, 0.0, 0.0, 1.0]
    >>> Features.from_frame({"device": ["tv", "phone", "tv"], "age": [30, 20, 40]})
    Features({'device': ['phone', 'tv'], 'age': (20, 40)})
    """

    __slots__ = ("_kinds", "_starts", "dim", "names")

    names: tuple[str, ...]  # (dim,) of the columns: "age", or "device=phone" for a level
    dim: int  # length of the vectors

    def __init__(self, features: Mapping[str, object]) -> None:
        given: object = features
        if not isinstance(given, Mapping) or not given:
            raise InvalidType(
                f"features {features!r:.60} must be a mapping such as "
                "{'device': ['phone', 'desktop'], 'age': (18, 90), 'returning': bool}"
            )
        self._assemble({_check_name(name): _kind_of(name, value) for name, value in features.items()})

    def _assemble(self, kinds: Mapping[str, Kind]) -> None:
        dim = sum(kind.width for kind in kinds.values())
        if dim > MOST_COLUMNS:
            widest = max(kinds, key=lambda name: kinds[name].width)
            raise InvalidValue(
                f"these features make {dim:,} columns, {kinds[widest].width:,} of them feature {widest!r}; at most "
                f"{MOST_COLUMNS:,} are allowed, and up to 50 are sensible: keep frequent levels and group the others, "
                "or leave the feature out"
            )
        self._kinds = dict(kinds)
        self._starts = dict(zip(kinds, np.cumsum([0, *(kind.width for kind in kinds.values())]).tolist(), strict=False))
        self.names = tuple(column for name, kind in kinds.items() for column in kind.columns(name))
        self.dim = dim
        if len(set(self.names)) < dim:
            twice = Counter(self.names).most_common(1)[0][0]
            raise InvalidValue(f"two columns would be named {twice!r}; rename a feature or a level")

    @classmethod
    def from_frame(cls, frame: object) -> Features:
        """Read levels and ranges from the columns of a data frame, or of a mapping of columns.

        Text becomes levels, in sorted order, and so do categories of whole numbers; numbers become the range from the
        lowest to the highest; bools stay bools.
        """
        kinds: dict[str, Kind] = {}
        for name, column in _columns_of(frame).items():
            kinds[_check_name(name)] = _kind_of_column(name, column)
            if kinds[name].width > MOST_COLUMNS:
                break  # `_assemble` says so; other columns, which may be as long, need not be read
        if not kinds:
            raise InvalidValue("there are no columns; give a frame with one column per feature")
        features = cls.__new__(cls)
        features._assemble(kinds)
        return features

    @property
    def spec(self) -> dict[str, object]:
        """The argument of the constructor: {name: levels, (low, high) or bool}."""
        return {name: kind.spec() for name, kind in self._kinds.items()}

    def encode(self, context: object) -> Floats:
        """Return the vector of one visitor given as a mapping, (dim,), or one row per visitor of a frame, (n, dim).

        Keys and columns that are not features are ignored. A list of mappings is one row each.
        """
        if isinstance(context, Mapping):
            return self._encode_one(context)
        if isinstance(context, list | tuple) and all(isinstance(row, Mapping) for row in context):
            rows = [self._encode_one(visitor, row) for row, visitor in enumerate(context)]
            return np.array(rows).reshape(-1, self.dim)
        columns = _columns_of(context, self._kinds)
        return self.encode_columns({name: column.values for name, column in columns.items()})

    def encode_columns(self, columns: Mapping[str, Sequence[object]]) -> Floats:
        """Return one row per visitor, (n, dim), given a column of values for each feature."""
        missing = [name for name in self._kinds if name not in columns]
        if missing:
            present = ", ".join(map(repr, list(columns)[:10])) or "none"
            raise InvalidValue(f"feature {missing[0]!r} is not a column here; there are {present}")
        n = len(columns[next(iter(self._kinds))])
        encoded = np.zeros((n, self.dim))
        for name, kind in self._kinds.items():
            start = self._starts[name]
            kind.encode_column(name, columns[name], encoded[:, start : start + kind.width])
        return encoded

    def _encode_one(self, context: Mapping[object, object], row: int | None = None) -> Floats:
        vector = np.zeros(self.dim)
        for name, kind in self._kinds.items():
            try:
                value = context[name]
            except KeyError:
                known = ", ".join(map(repr, list(self._kinds)[:10]))
                raise InvalidValue(f"{_describe(name, row)} is missing from the context; it needs {known}") from None
            kind.encode(name, value, vector, self._starts[name], row)
        return vector

    def to_dict(self) -> Json:
        """Return the features as plain data for JSON; `from_dict` makes features of it again."""
        return {"features": [{"name": name, **_plain_of_spec(spec)} for name, spec in self.spec.items()]}

    @classmethod
    def from_dict(cls, plain: object) -> Features:
        """Make features of what `to_dict` returned."""
        listed = plain.get("features") if isinstance(plain, Mapping) else None
        if not isinstance(listed, list) or not listed:
            raise InvalidType(
                "features as plain data are like "
                '{"features": [{"name": "device", "levels": ["phone", "desktop"]}, {"name": "age", "range": [18, 90]}, '
                f'{{"name": "returning", "type": "bool"}}]}}; not {plain!r:.60}'
            )
        features: dict[str, object] = {}
        for part in listed:
            if not isinstance(part, Mapping) or not isinstance(part.get("name"), str) or part["name"] in features:
                raise InvalidValue(f"{part!r:.60} is not a feature with a name of its own")
            features[part["name"]] = _spec_of_plain(part)
        return cls(features)

    def __eq__(self, other: object) -> bool:
        """Whether the other features are the same, in the same order."""
        return isinstance(other, Features) and list(self._kinds.items()) == list(other._kinds.items())

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        shown = {name: "bool" if spec is bool else repr(spec) for name, spec in self.spec.items()}
        return f"Features({{{', '.join(f'{name!r}: {spec}' for name, spec in shown.items())}}})"

    def __reduce__(self) -> tuple[object, ...]:
        return Features, (self.spec,)


# What a feature can be


class Kind(ABC):
    """How one feature becomes one or more columns."""

    width = 1

    @abstractmethod
    def spec(self) -> object:
        """Return the value for the constructor of `Features`."""

    def columns(self, name: str) -> list[str]:
        return [name]

    @abstractmethod
    def encode(self, name: str, value: object, vector: Floats, start: int, row: int | None = None) -> None:
        """Write one value into its columns of a vector of zeros."""

    def encode_column(self, name: str, values: Sequence[object], into: Floats) -> None:
        """Write many values into their columns, (n, width), of zeros."""
        for row, value in enumerate(values):
            self.encode(name, value, into[row], 0, row)


@dataclass(frozen=True)
class Levels(Kind):
    """One column per level; a value that is none of them is zeros."""

    levels: tuple[Name, ...]  # all text, or all whole numbers
    width: int = field(init=False, compare=False)
    column_of: dict[object, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", len(self.levels))
        object.__setattr__(self, "column_of", {level: column for column, level in enumerate(self.levels)})

    def spec(self) -> list[Name]:
        return list(self.levels)

    def columns(self, name: str) -> list[str]:
        return [f"{name}={level}" for level in self.levels]

    def encode(self, name: str, value: object, vector: Floats, start: int, row: int | None = None) -> None:
        text = isinstance(self.levels[0], str)
        if not (isinstance(value, str) if text else _is_whole(value)):
            raise _refusal(name, value, row, f"{'text' if text else 'a whole number'} such as {self.levels[0]!r}")
        column = self.column_of.get(value)
        if column is not None:
            vector[start + column] = 1.0


@dataclass(frozen=True)
class Range(Kind):
    """A number, as -1 at ``low`` to 1 at ``high``."""

    low: float
    high: float

    def spec(self) -> tuple[float, float]:
        return self.low, self.high

    def encode(self, name: str, value: object, vector: Floats, start: int, row: int | None = None) -> None:
        number = value if type(value) is float or type(value) is int else _number(value)
        if number is None or not -MAX_REWARD <= number <= MAX_REWARD:
            raise _refusal(name, value, row, f"a finite number, such as {self.low}")
        vector[start] = min(max(2.0 * ((number - self.low) / (self.high - self.low)) - 1.0, -1.0), 1.0)

    def encode_column(self, name: str, values: Sequence[object], into: Floats) -> None:
        numbers = np.asarray(values)
        plain = numbers.dtype.kind in "iuf" and not {bool, np.bool_} & {*map(type, values)}
        if not plain or not (np.abs(numbers) <= MAX_REWARD).all():
            return super().encode_column(name, values, into)  # takes other types of numbers, or says what is wrong
        into[:, 0] = np.clip(2.0 * ((numbers - self.low) / (self.high - self.low)) - 1.0, -1.0, 1.0)
        return None


@dataclass(frozen=True)
class Flag(Kind):
    """True as 1 and False as 0."""

    def spec(self) -> type:
        return bool

    def encode(self, name: str, value: object, vector: Floats, start: int, row: int | None = None) -> None:
        if not isinstance(value, FLAGS):
            raise _refusal(name, value, row, "True or False")
        vector[start] = value


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidType(f"feature {name!r:.60} needs a name that is text")
    return name


def _kind_of(name: str, value: object) -> Kind:
    """Return the kind that a user has written for one feature."""
    if value is bool:
        return Flag()
    if isinstance(value, tuple):
        if len(value) != 2 or not all(isinstance(end, NOT_BOOLS) and not isinstance(end, bool) for end in value):
            raise InvalidType(
                f"feature {name!r}: {value!r:.60} is not a range (low, high) of two numbers; give levels in a list"
            )
        return _range(name, *value)
    if isinstance(value, list | np.ndarray):
        return _levels(name, list(value))
    raise InvalidType(
        f"feature {name!r}: {value!r:.60} must be a list of levels, a range such as (18, 90), or bool itself"
    )


def _range(name: str, low: float, high: float) -> Range:
    low, high = (end.item() if isinstance(end, np.generic) else end for end in (low, high))
    for end in (low, high):
        real(f"feature {name!r}: an end of the range", end, -MAX_REWARD, MAX_REWARD)
    if not low < high:
        raise InvalidValue(f"feature {name!r}: the range ({low}, {high}) must go from a lower to a higher number")
    if not high - low > 1e-300:
        raise InvalidValue(f"feature {name!r}: the range ({low}, {high}) is too narrow to compute with")
    return Range(low, high)


def _levels(name: str, levels: Iterable[Any]) -> Levels:
    plain = tuple(
        int(level) if _is_whole(level) else str(level) if isinstance(level, str) else level for level in levels
    )
    odd = [level for level in plain if not isinstance(level, str) and not _is_whole(level)]
    if odd or len({isinstance(level, str) for level in plain}) > 1:
        raise InvalidType(
            f"feature {name!r}: levels must be all text or all whole numbers; {(odd or plain)[0]!r:.60} is a "
            f"{type((odd or plain)[0]).__name__}{'' if odd else ' and others are not'}; a range is a tuple (low, high)"
        )
    if len(set(plain)) < len(plain):
        twice = Counter(plain).most_common(1)[0][0]
        raise InvalidValue(f"feature {name!r}: level {twice!r} is there twice")
    if len(plain) < 2:
        few = "one level" if plain else "no levels"
        raise InvalidValue(f"feature {name!r} has {few}, so it says nothing; leave it out, or give more")
    return Levels(plain)


def _plain_of_spec(spec: object) -> dict[str, object]:
    if spec is bool:
        return {"type": "bool"}
    return {"range": list(spec)} if isinstance(spec, tuple) else {"levels": spec}


def _spec_of_plain(part: Mapping[str, object]) -> object:
    if part.keys() == {"name", "levels"} and isinstance(part["levels"], list):
        return part["levels"]
    if part.keys() == {"name", "range"} and isinstance(part["range"], list):
        return tuple(part["range"])
    if part.keys() == {"name", "type"} and part["type"] == "bool":
        return bool
    raise InvalidValue(f'feature {part["name"]!r:.60} has neither "levels", nor a "range", nor "type": "bool"')


# Columns of frames


@dataclass(frozen=True)
class Column:
    """One column of a frame."""

    values: Sequence[Any]  # (n,)
    is_category: bool = False


def _columns_of(frame: object, wanted: Iterable[str] | None = None) -> dict[str, Column]:
    """Return the wanted columns, or all, of a data frame or a mapping of columns."""
    if wanted is None and isinstance(frame, Mapping):
        columns = {name: Column(_list_values(name, values)) for name, values in frame.items()}
        lengths = {name: len(column.values) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidValue(f"columns of different lengths: {lengths}; give as many values in each")
        return columns
    from banditree.data.sources import as_frame, is_category  # `import banditree` does not wait for it

    what = "a mapping {feature: value}, or a data frame" if wanted else "a data frame or a mapping of columns"
    table = as_frame(frame, what)
    present = list(table.columns)
    for name in wanted or ():
        if name not in present:
            shown = ", ".join(map(repr, present[:10])) or "none"
            raise InvalidValue(f"feature {name!r} is not a column of this frame, which has {shown}")
        if present.count(name) > 1:
            raise InvalidValue(f"feature {name!r} is several columns of this frame; rename all but one")
    names = present if wanted is None else list(wanted)
    table = table.select(*names)
    whole = table.collect() if hasattr(table, "collect") else table
    return {name: Column(whole[name].to_list(), is_category(whole[name].dtype)) for name in names}


def _list_values(name: object, values: object) -> list[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidType(f"feature {name!r}: {values!r:.60} is not a column; give one value per row, in a list")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _kind_of_column(name: str, column: Column) -> Kind:
    """Return the kind that fits all values of a column."""
    for row, value in enumerate(column.values):
        if _is_missing(value):
            raise InvalidValue(f"feature {name!r} is missing in row {row}; fill it in, or leave the column out")
    if not len(column.values):
        raise InvalidValue(f"feature {name!r} has no rows to read levels or a range from")
    different = set(column.values) if all(map(_is_plain, column.values)) else None
    if different is None:
        odd = next(value for value in column.values if not _is_plain(value))
        raise InvalidType(
            f"feature {name!r}: {odd!r:.60} is a {type(odd).__name__}; give text, numbers or bools; {RECIPE}"
        )
    if len({str(value) for value in different} if column.is_category else different) < 2:
        raise InvalidValue(f"feature {name!r} has one value, {column.values[0]!r:.60}, in all rows; leave it out")
    if all(isinstance(value, FLAGS) for value in column.values):
        return Flag()
    are_numbers = [isinstance(value, NOT_BOOLS) and not isinstance(value, bool) for value in column.values]
    if all(are_numbers) and not column.is_category:
        return _range(name, min(different), max(different))
    if (any(are_numbers) and not all(are_numbers)) or any(isinstance(value, FLAGS) for value in column.values):
        raise InvalidType(f"feature {name!r} mixes text, numbers and bools; give one kind of value")
    return _levels(name, sorted(different))


def _is_plain(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64))


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _number(value: object) -> float | None:
    """Return a number as a float, None if it is not one."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, NOT_BOOLS):
        return None
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _describe(name: str, row: int | None) -> str:
    return f"feature {name!r}" if row is None else f"feature {name!r} in row {row}"


def _refusal(name: str, value: object, row: int | None, need: str) -> InvalidType | InvalidValue:
    if _is_missing(value):
        return InvalidValue(f"{_describe(name, row)} is missing ({value}); give {need}")
    if isinstance(value, NOT_BOOLS) and not isinstance(value, bool) and "finite" in need:
        return InvalidValue(f"{_describe(name, row)} is {value!r:.60}; give {need}")
    return InvalidType(f"{_describe(name, row)} is {value!r:.60}, of type {type(value).__name__}; give {need}")


# Vectors of numbers, such as dummies beside ages


def refuse_named(value: object, what: str, need: str) -> None:
    """Refuse text and dicts, which have features by name and not numbers in an order; also a list of them."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(first, str | bytes | Mapping):
        kind = "text" if isinstance(first, str | bytes) else f"a {type(first).__name__}"
        raise InvalidType(
            f"{need}, and {what} is {'' if first is value else 'a list of '}{kind}; build the policy with "
            f"features=bt.Features(...) for contexts by name; {RECIPE}"
        )


def from_objects(array: Array, value: object, what: str, need: str) -> Floats:
    """Numbers and bools held as Python objects, as floats of the same shape."""
    numbers = np.empty(array.shape)
    for where, entry in np.ndenumerate(array):
        if isinstance(entry, NUMBERS) and not isinstance(entry, np.timedelta64):
            try:
                numbers[where] = entry
            except OverflowError:
                numbers[where] = np.inf
        elif _is_absent(entry):
            raise InvalidValue(
                f"{need}; {_place(value, where)} of {what} is missing ({entry}): fill it in, or leave it out"
            )
        else:
            raise InvalidType(
                f"{need}; {_place(value, where)} of {what} is {entry!r:.60}, of type {type(entry).__name__}; {RECIPE}"
            )
    return numbers


def from_column(column: Array, what: str, kinds: tuple[type, ...]) -> Floats:
    """Numbers held as Python objects, (n,), as floats; ``kinds`` are the types of numbers."""
    numbers = np.empty(len(column))
    for row, entry in enumerate(column):
        if _is_absent(entry):
            raise InvalidValue(f"{what} {entry} is missing, in row {row}; leave out rows without a value")
        is_number = isinstance(entry, kinds) and not (isinstance(entry, bool) and bool not in kinds)
        if isinstance(entry, np.timedelta64) or not is_number:
            raise InvalidType(f"{what} {entry!r:.60} is a {type(entry).__name__}, in row {row}; give numbers")
        try:
            numbers[row] = float(entry)
        except OverflowError:
            numbers[row] = np.inf
    return numbers


def _is_absent(value: object) -> bool:
    """None, and what pandas has for it, whether or not pandas is there."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_missing(value: object) -> bool:
    """What stands for a missing value in a frame: also a NaN."""
    return _is_absent(value) or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _place(value: object, where: tuple[int, ...]) -> str:
    """Name an entry as users do: by its column, if that has a name, and its row."""
    names = getattr(value, "columns", None) if len(where) > 1 else getattr(value, "index", None)
    column: object = where[-1]
    if names is not None and not callable(names):  # a list has a method `index`
        column = repr(list(names)[where[-1]])
    row = f" in row {where[0]}" if len(where) > 1 else ""
    return f"column {column}{row}" if len(where) > 1 else f"entry {column}"
