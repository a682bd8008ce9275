"""Logs of decisions: `read_log` reads one from a table, `Log` holds it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Array, Floats, Places
from banditree.base.words import count
from banditree.data import cells
from banditree.data.defects import TableError, quote
from banditree.data.dsjson import COLUMNS as DSJSON_COLUMNS
from banditree.data.dsjson import is_dsjson, load_dsjson
from banditree.data.features import Features
from banditree.data.folds import folds_of
from banditree.data.propensities import fit_propensities
from banditree.data.sources import MAX_BYTES, Columns, Mask, column_names, is_lazy, load, require_list
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.errors.checks import real
from banditree.tree import Tree
from banditree.tree.build import Name

CATEGORY = "category"
CONTEXT_KINDS = (CATEGORY, "number")
ESTIMATED = "estimated"  # in place of a column of propensities
MAX_CATEGORIES = 1000  # per column; a column with more is an id rather than a category
MAX_ARMS_NAMED = 5  # in an error
EMPTY_ARM = "empty; every row needs an arm"
PROPENSITY = "a propensity is the probability with which the logging policy chose this arm"
WRONG_PROPENSITIES = (  # (message, kind)
    (f"empty; {PROPENSITY}, and every row needs one", ""),
    (f"0; {PROPENSITY}, so it must be above 0", "zero"),
    (f"negative; {PROPENSITY}, so it must be above 0", "negative"),
    (f"above 1; {PROPENSITY}, so it must be at most 1", "above 1"),
)
FITTED = "propensities are estimated from the log ({}): other influences on what was shown are ignored"


class LogError(TableError):
    """A table cannot be read as a log. ``problems`` lists every kind of problem with all of its rows."""


@dataclass(eq=False, repr=False)
class Log:
    """A log with one row per decision, in the order of the source. `read_log` reads one.

    >>> import banditree as bt
    >>> log = bt.read_log({"arm": ["a", "b", "a"], "reward": [1, 0, 0]}, arm="arm", reward="reward")
    >>> len(log), log.arms.tolist(), log.rewards.tolist()
    (3, ['a', 'b', 'a'], [1.0, 0.0, 0.0])
    """

    ids: tuple[Name, ...]  # the distinct arms, in the order of their first row
    codes: Places  # (n,) index of each row's arm in ids
    rewards: Floats  # (n,)
    propensities: Floats | None = None  # (n,) probability with which the logging policy chose the arm
    contexts: Floats | None = None  # (n, dim)
    times: Array | None = None  # (n,) numbers or datetime64
    context_names: tuple[str, ...] = ()  # (dim,) a column's name, or "column=category" for a category
    columns: dict[str, list[object]] = field(default_factory=dict)  # {column of the context: (n,) values as given}
    without_reward: int = 0  # rows that were left out because their reward has not arrived yet
    estimated: bool = False  # whether the propensities were estimated from the log itself
    paths: dict[Name, tuple[Name, ...]] | None = None  # {arm: its path}, if the rows have paths
    learned_online: bool = False  # whether the policy that wrote the log learned from it
    notes: tuple[str, ...] = ()  # what readers of results should know about the data
    folds: Places | None = None  # (n,) part of the rows that predictions of a row's reward do not see
    # Sums of a lazy log: a row stands for several, of the same arm and fold and of nearly the same propensity.
    plays: Floats | None = None  # (n,) how many; None if each row stands for itself
    inside: Floats | None = None  # (n, 3, 3) sums of products of r, 1/p and r/p about their means in a row
    bounds: tuple[Floats, Floats] | None = None  # (n,) each, lowest and highest reward
    reach: tuple[Floats, Floats] | None = None  # (n,) each, lowest and highest propensity
    tails: tuple[Floats, Floats] | None = None  # (n,) each, sums of third and fourth powers of rewards about their mean
    unusual: tuple[float, Floats] | None = None  # the reward that may be the most frequent; (n,) how many differ

    @property
    def is_lazy(self) -> bool:
        """Whether the rows are kept by an engine, such as DuckDB or Spark, and not in memory."""
        return False

    def summed(self, by: str = "arms") -> Log:
        """Return a log in memory that evaluation and learning work on: itself, or the sums of a lazy log.

        The sums are by "arms" alone, or also by propensity and by "folds" or "blocks" of time.
        """
        return self

    def chunks(self, *, by_name: bool = False) -> Iterator[Log]:
        """Return the rows in parts that fit into memory; ``by_name`` allows contexts of categories in a lazy log."""
        return iter([self])

    def given(self, propensities: Floats) -> Log:
        """Return the same log with propensities that are equal in all rows which a row stands for: (n,)."""
        if self.inside is None:
            return replace(self, propensities=propensities)
        ones = np.ones_like(propensities)
        inside = multiples(self.inside[:, 0, 0], ones, 0 * ones, 1 / propensities)
        return replace(self, propensities=propensities, inside=inside, reach=(propensities, propensities))

    @property
    def counted(self) -> Floats:
        """How many rows each row stands for: (n,)."""
        return np.ones(len(self.codes)) if self.plays is None else self.plays

    @property
    def squares(self) -> Floats:
        """Sums of squares about each row's mean, of the rewards it stands for: (n,)."""
        return np.zeros(len(self.codes)) if self.inside is None else self.inside[:, 0, 0]

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest reward."""
        low, high = self.bounds or (self.rewards, self.rewards)
        return float(low.min()), float(high.max())

    @property
    def is_binary(self) -> bool:
        """Whether all rewards are 0 or 1."""
        if self.bounds is None:
            return bool(np.isin(self.rewards, (0.0, 1.0)).all())
        within = self.extremes[0] >= 0 and self.extremes[1] <= 1
        between = self.counted * self.rewards * (1 - self.rewards) - self.squares  # 0 up to rounding if none is between
        return bool(within and (between <= 1e-6 + 1e-12 * self.counted).all())

    def __len__(self) -> int:
        return len(self.codes) if self.plays is None else round(float(self.plays.sum()))

    @property
    def arms(self) -> Array:
        """The arm of each row, as ints if all ids are ints, else as objects: (n,)."""
        if all(isinstance(arm, int) for arm in self.ids):
            try:
                return np.array(self.ids, np.int64)[self.codes] if self.ids else np.empty(0, np.int64)
            except OverflowError:
                pass
        return np.asarray(_object_array(self.ids)[self.codes])

    @property
    def features(self) -> Features | None:
        """The features that the columns of the context make: levels, ranges and bools; None without a context."""
        return Features.from_frame(self.columns) if self.columns else None

    def encode(self, features: Features) -> Floats:
        """Encode the columns of the context by these features, which may be those of a policy: (n, dim)."""
        if not self.columns:
            raise InvalidValue("this log has no contexts; name their columns: read_log(..., context=[...])")
        return features.encode_columns(self.columns)

    def contexts_for(self, policy: object) -> Floats:
        """Return the contexts as a policy takes them, encoded by its features if it has any: (n, dim)."""
        features: Features | None = getattr(policy, "features", None)
        if features is not None:
            return self.encode(features)
        assert self.contexts is not None
        return self.contexts

    @property
    def tree(self) -> Tree | None:
        """The tree that the paths of the rows make; None if they have none."""
        return None if self.paths is None else Tree.from_paths(list(self.paths.values()))

    def places(self, tree: Tree) -> Places:
        """Return the index of each row's arm in ``tree.arms``: (n,). Arms that the tree does not have are an error.

        Ids read from a CSV file are text. They match a tree whose ids are ints (or the other way round) if all of them
        do.
        """
        places = match_arms(self.ids, tree)
        if None in places:
            n_rows = np.bincount(self.codes, self.counted, len(places))
            is_strange = np.array([place is None for place in places]) & (n_rows > 0)
            if not is_strange.any():
                return np.array([place or 0 for place in places], np.intp)[self.codes]
            strange = [arm for arm, is_unknown in zip(self.ids, is_strange, strict=True) if is_unknown]
            rows = round(float(n_rows[is_strange].sum()))
            named = ", ".join(map(repr, strange[:MAX_ARMS_NAMED])) + (", ..." if len(strange) > MAX_ARMS_NAMED else "")
            raise UnknownArm(
                f"{count(len(strange), 'arm')} of the log, on {count(rows, 'row')}, not in {tree!r}: {named}"
                f"{different_kinds(self.ids, tree, 'log')}; add them to the tree, or leave their rows out of the log"
            )
        return np.array(places, np.intp)[self.codes] if places else np.empty(0, np.intp)

    def rows(self, chosen: slice | Mask | Places) -> Log:
        """Return a log of only these rows, given as a slice, a mask or indices."""
        names = ("codes", "rewards", "propensities", "contexts", "times", "folds")
        arrays = {name: array[chosen] for name in names if (array := getattr(self, name)) is not None}
        columns = {name: _object_array(values)[chosen].tolist() for name, values in self.columns.items()}
        return replace(self, **arrays, columns=columns, without_reward=0)

    def in_time(self) -> Log:
        """Sort the log by time; rows with equal times, and logs without times, keep their order."""
        return self if self.times is None else self.rows(np.argsort(self.times, kind="stable"))

    def split(self, share: float = 0.5) -> tuple[Log, Log]:
        """Split into the earlier ``share`` of the rows and the rest, by time, or in row order if there are no times."""
        share = real("share", share, 0.0, 1.0, why="the part of the rows that comes first")
        cut = round(share * len(self))
        if not 0 < cut < len(self):
            raise InvalidValue(
                f"share={share} of {count(len(self), 'row')} leaves one part empty; give a share nearer to 0.5"
            )
        ordered = self.in_time()
        return ordered.rows(slice(0, cut)), ordered.rows(slice(cut, None))

    def counts(self, tree: Tree) -> tuple[Floats, Floats]:
        """Count the rows and sum the rewards of each arm, in the order of ``tree.arms``: (arms,) both."""
        places = self.places(tree)
        rows, sums = self.counted, self.counted * self.rewards
        by_arm = [np.bincount(places, each, minlength=tree.n_arms).astype(np.float64) for each in (rows, sums)]
        return by_arm[0], by_arm[1]

    def to_dsjson(self, path: str | os.PathLike[str]) -> None:
        """Write the log in Vowpal Wabbit's format, one JSON object per line, gzipped if the name ends in .gz.

        `read_log` reads it back as it was, and ``vw --dsjson`` reads it too. The log must have propensities.
        """
        from banditree.data.dsjson import write_dsjson

        write_dsjson(self, path)

    def __repr__(self) -> str:
        parts = [f"{count(len(self), 'row')}", f"{count(len(self.ids), 'arm')}"]
        if len(self):
            parts.append(f"mean reward {self.rewards.mean():.4g}")
        estimated = "estimated " if self.estimated else ""
        parts.append(f"{estimated}propensities" if self.propensities is not None else "no propensities")
        if self.contexts is not None:
            parts.append(f"contexts of {self.contexts.shape[1]}")
        if self.without_reward:
            parts.append(f"{count(self.without_reward, 'more row')} without a reward")
        return f"Log({', '.join(parts)})"


def read_log(
    source: object,
    *,
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    context: Sequence[str] | Mapping[str, str | None] = (),
    time: str | None = None,
    fold: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Log:
    """Read a log of decisions from a CSV or Parquet file, any data frame, or a mapping of columns.

    A DuckDB relation, a Polars LazyFrame, a Dask or Spark DataFrame, or an Ibis table becomes a lazy log: its rows stay
    with the engine, which only sums them (``log.is_lazy``). Nothing is read before an answer is wanted.

    There is one row per decision, and the rows keep their order. All problems are reported at once in a `LogError`.
    A file in Vowpal Wabbit's format (.dsjson, also gzipped) needs no column named; ``arm`` may name the feature of an
    action that is its id, such as "TAction.topic", in place of its number.
    Without ``arm`` and ``reward``, a table is one that `banditree serve` wrote: its columns are known, ``log.tree`` is
    made of the paths in it, and rows that say nothing about a choice (withdrawn, shadow mode, with limits) are left
    out and noted.

    Parameters
    ----------
    source
        The table.
    arm
        The column of what was shown.
    reward
        The column of what it earned. Rows without a reward yet are counted and left out.
    propensity
        The column of the probability with which the logging policy chose that arm (`Policy.decide` gives it).
        "estimated" fits it to the log itself, which is right only if nothing but the context columns decided what was
        shown.
    context
        Columns of numbers or of categories. A category becomes one column of zeros and ones per value, in sorted
        order (see ``log.context_names``). The types of a frame decide which is which; in a CSV file numbers are
        numbers, unless some begin with a 0, as codes do. ``{"zip": "category", "age": "number"}`` says which is which.
    time
        The column of times, used to split the log and to replay it.
    fold
        The column of whole numbers or times, such as a visitor's id, by which rows fall into the folds of
        `evaluate`: rows with equal values into the same one, on every engine. Without it, rows in memory fall into
        random folds, and those of a lazy log go by ``time``.
    max_bytes
        The most bytes that a gzipped file may expand to.

    >>> table = {"item": ["hat", "cap", "hat"], "click": [1, 0, None], "p": [0.5, 0.25, 0.5]}
    >>> table |= {"device": ["tv", "pc", "tv"]}
    >>> log = read_log(table, arm="item", reward="click", propensity="p", context=["device"])
    >>> log
    Log(2 rows, 2 arms, mean reward 0.5, propensities, contexts of 2, 1 more row without a reward)
    >>> log.context_names, log.contexts.tolist()
    (('device=pc', 'device=tv'), [[0.0, 1.0], [1.0, 0.0]])
    """
    kinds = parse_context(context)
    context = list(kinds)
    if is_lazy(source):
        from banditree.data.lake import read_lazy

        return read_lazy(source, arm, reward, propensity, kinds, time, fold)
    if is_dsjson(source):
        if any(name is not None for name in (reward, propensity, time, fold)):
            raise InvalidType("a decision log of Vowpal Wabbit has no columns to name but arm= and context=")
        table, names, is_estimated = load_dsjson(source, arm, context, max_bytes)
        kinds = {name: kinds.get(name) for name in names}
        arm, reward, propensity, time, path = DSJSON_COLUMNS
        has_times, has_paths = (any(value is not None for value in table.values[name]) for name in (time, path))
        log = _read(table, arm, reward, propensity, kinds, time if has_times else None, path if has_paths else None)
        log.estimated, log.learned_online = is_estimated, False
        return log
    if arm is None and reward is None and propensity is None:
        return _read_service_log(source, kinds, max_bytes)
    if arm is None or reward is None:
        raise InvalidType("name both columns, arm= and reward=; a log of `banditree serve` needs no column named")
    fit = propensity == ESTIMATED
    others = [name for name in (None if fit else propensity, *context, time) if name is not None]
    others += [fold] if fold is not None and fold != time else []
    table = load(source, [arm, reward, *others], max_bytes=max_bytes, error=LogError)
    return _read(table, arm, reward, propensity, kinds, time, fold=fold)


def _read(
    whole: Columns,
    arm: str,
    reward: str,
    propensity: str | None,
    context: Mapping[str, str | None],
    time: str | None,
    path: str | None = None,
    fold: str | None = None,
) -> Log:
    """Read the log from its columns."""
    left_out = tuple(whole.notes)
    rewards, is_known = whole.rewards(reward)
    table, n_missing = whole.keep(is_known), len(whole) - int(is_known.sum())
    ids, codes = _read_arms(table, arm)
    fit = propensity == ESTIMATED
    propensities = None if propensity is None or fit else _read_propensities(table, propensity)
    names, columns, values = _read_contexts(table, context)
    times = None if time is None else table.times(time)
    paths = None if path is None else read_paths(table, path, ids, codes)
    folds = None if fold is None else _read_folds(table, fold)
    if not len(table) and not table.problems:
        table.report_table(no_rows(n_missing, left_out))
    table.check(LogError)

    contexts = np.column_stack(columns) if columns else None
    notes = list(table.notes)
    if fit:
        propensities, how = fit_propensities(codes, len(ids), contexts)
        notes.append(FITTED.format(how))
    return Log(
        tuple(ids),
        codes,
        rewards[is_known],
        propensities,
        contexts,
        times,
        context_names=tuple(names),
        columns=values,
        without_reward=n_missing,
        estimated=fit,
        paths=paths,
        learned_online=path is not None,
        notes=tuple(notes),
        folds=folds,
    )


# ---------------------------------------------------------------- logs of the service

SERVICE_COLUMNS = ("arm", "propensity", "reward", "path", "at")  # of GET /v1/log?format=csv
# A propensity is given the group; with rows of both groups, what counts is how likely the choice was over both.
GROUP, CONTROL, OVERALL = "group", "control", "propensity_overall"
WITHOUT_OVERALL = f"without a probability over both groups ({OVERALL})"
OF_CONTROL = f"of the control group: the log does not say how likely a choice was over both groups ({OVERALL})"


def _is_limit(cell: object, _: object) -> bool:
    return not cells.looks_missing(cell) and cell != "[]"


# {column: (why a row is not a free choice of the policy, whether that is so by its cell and its arm)}
SERVICE_FILTERS: dict[str, tuple[str, Callable[[object, object], bool]]] = {
    "withdrawn": ("withdrawn before it was shown", lambda cell, _: cell == "true" or cell is True),
    "shown": ("in shadow mode: what was shown was not this policy's choice", lambda cell, arm: cell != arm),
    "only": ("limited by 'only'", _is_limit),
    "exclude": ("limited by 'exclude'", _is_limit),
}


def is_service_log(source: object) -> bool:
    """Whether a table has the columns of a log that `banditree serve` wrote."""
    return set(SERVICE_COLUMNS) <= set(column_names(source))


def require_service_log(present: Sequence[str]) -> None:
    """Require the columns of a log that `banditree serve` wrote."""
    if not set(SERVICE_COLUMNS) <= set(present):
        missing = ", ".join(name for name in SERVICE_COLUMNS if name not in present)
        raise InvalidType(
            f"name the columns of the log: arm=..., reward=..., propensity=...; a log of `banditree serve` needs none, "
            f"but this one lacks {missing}"
        )


def _read_service_log(source: object, context: Mapping[str, str | None], max_bytes: int) -> Log:
    present = column_names(source, max_bytes=max_bytes)
    require_service_log(present)
    wanted = [*SERVICE_COLUMNS, *(name for name in (*SERVICE_FILTERS, GROUP, OVERALL) if name in present), *context]
    table = load(source, wanted, max_bytes=max_bytes, error=LogError)
    for column, (why, is_out) in SERVICE_FILTERS.items():
        if column in table.values:
            both = zip(table.values[column], table.values["arm"], strict=True)
            table = _leave_out(table, np.array([is_out(cell, arm) for cell, arm in both], bool), why)
    propensity = "propensity"
    groups = table.values.get(GROUP, [])
    if CONTROL in groups and len(set(groups)) > 1:
        if OVERALL in table.values:
            propensity = OVERALL
            lacks = np.array([cells.looks_missing(cell) for cell in table.values[OVERALL]], bool)
            table = _leave_out(table, lacks, WITHOUT_OVERALL)
        else:
            table = _leave_out(table, np.array([group == CONTROL for group in groups], bool), OF_CONTROL)
    return _read(table, "arm", "reward", propensity, context, "at", "path")


def no_rows(n_missing: int, left_out: Sequence[str]) -> str:
    """Say that a log has no rows of use, and why others are not."""
    waiting = f" with a reward ({count(n_missing, 'row')} without)" if n_missing else ""
    return "; ".join([f"no rows{waiting}", *left_out, "a log needs at least one"])


def _leave_out(table: Columns, is_out: NDArray[np.bool_], why: str) -> Columns:
    """Return the other rows, and note how many are left out, if there are any."""
    if is_out.any():
        table.notes.append(f"{count(int(is_out.sum()), 'row')} {why}: left out")
    return table.keep(~is_out)


def read_paths(table: Columns, column: str, ids: Sequence[Name], codes: Places) -> dict[Name, tuple[Name, ...]]:
    """Read each arm's path, a JSON list that ends in the arm; if it has moved, the last row says where it is."""
    paths: dict[Name, tuple[Name, ...]] = {}
    last_row = {int(code): at for at, code in enumerate(codes.tolist()) if code >= 0}
    for code, at in last_row.items():
        cell = table.values[column][at]
        try:
            names = cell if isinstance(cell, list) else json.loads(str(cell))
            if not isinstance(names, list) or not all(isinstance(name, str | int) for name in names) or not names:
                raise ValueError
            paths[ids[code]] = (*names[:-1], ids[code])
        except (TypeError, ValueError):
            table.report(at, column, f"{quote(cell)} is not a path; give a JSON list of names that ends in the arm")
    return paths


# ---------------------------------------------------------------- columns of a log


def _read_arms(table: Columns, column: str) -> tuple[list[str | int], Places]:
    """Return the distinct arms, and the index of each row's arm among them: (rows,)."""
    names = table.names(column, if_empty=EMPTY_ARM)
    ids = [name for name in dict.fromkeys(names) if name is not None]
    index: dict[str | int | None, int] = {name: at for at, name in enumerate(ids)}
    return ids, np.fromiter((index.get(name, -1) for name in names), np.intp, len(names))


def _read_propensities(table: Columns, column: str) -> Floats:
    """Read probabilities above 0 and at most 1: (rows,)."""
    (if_empty, _), *others = WRONG_PROPENSITIES
    numbers = table.numbers(column, if_empty=if_empty)
    for (message, kind), is_wrong in zip(others, (numbers == 0, numbers < 0, numbers > 1), strict=True):
        table.report(is_wrong, column, message, kind=kind)
    return numbers


def _read_folds(table: Columns, column: str) -> Places:
    """Return the fold of each row, by the value in a column: (rows,)."""
    folds, wrong = folds_of(table.values[column])
    table.report_wrong(wrong, column)
    return folds


def _read_contexts(
    table: Columns, features: Mapping[str, str | None]
) -> tuple[list[str], list[Floats], dict[str, list[object]]]:
    """Read the contexts: the names of the vector's columns, these columns, and the values before: (dim,) of (rows,)."""
    if_empty = "empty; fill it in, or leave the column out"
    names: list[str] = []
    columns: list[Floats] = []
    as_given: dict[str, list[object]] = {}
    for column, declared in features.items():
        kind = "category" if column in table.categories else cells.kind_of(table.values[column], untyped=table.untyped)
        if (declared or kind) == CATEGORY:
            values = table.names(column, if_empty=if_empty)
            categories = sorted({str(value) for value in values if value is not None})
            if len(categories) > MAX_CATEGORIES:
                many = f"{len(categories):,} different texts; at most {MAX_CATEGORIES:,} are allowed"
                table.report_table(f"{many}: group them, or give numbers", column)
                continue
            names += [f"{column}={category}" for category in categories]
            index = {category: at for at, category in enumerate(categories)}
            codes = np.fromiter((index.get(str(value), -1) for value in values), np.intp, len(values))
            columns += [(codes == at).astype(np.float64) for at in range(len(categories))]
            as_given[column] = [str(value) for value in values]
            continue
        before = len(table.problems)
        numbers = table.numbers(column, if_empty=if_empty, truths=True)
        if declared is None:
            how = f"context={{{column!r}: 'category'}}, or --context {column}:category"
            hint = f"is not a number; if these are categories, say so: {how}"
            table.problems[before:] = [
                replace(one, message=one.message.replace("is not a number", hint)) for one in table.problems[before:]
            ]
        names.append(column)
        columns.append(numbers)
        if kind == "bool":
            as_given[column] = (numbers == 1).tolist()
        else:
            is_whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all())
            as_given[column] = numbers.astype(np.int64).tolist() if is_whole else numbers.tolist()
    return names, columns, as_given


def parse_context(given: object) -> dict[str, str | None]:
    """Return {column: "category", "number", or None to go by its cells} of a list or a mapping."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(require_list("context", given))
    for column, kind in given.items():
        if kind is not None and kind not in CONTEXT_KINDS:
            raise InvalidValue(f"context={{{column!r}: {kind!r}}}: a column is {' or '.join(map(repr, CONTEXT_KINDS))}")
    return dict(given)


def match_arms(ids: Sequence[Any], tree: Tree) -> list[int | None]:
    """Return the index of each id in ``tree.arms``, None where the tree does not have it.

    Ids that are ints match a tree whose ids are text (or the other way round) if all of them do.
    """
    places = [tree.index.get(arm) for arm in ids]
    if None in places:
        respelled = [tree.index.get(_other_spelling(arm)) for arm in ids]
        if None not in respelled:
            return respelled
    return places


def different_kinds(ids: Sequence[object], tree: Tree, what: str) -> str:
    """Write a hint if ids are text in one place and numbers in the other; "" otherwise."""
    given, known = ({isinstance(arm, str) for arm in arms} for arms in (ids, tree.arms))
    if len(given) > 1 or given == known or len(known) > 1:
        return ""
    text, numbers = (what, "tree") if given == {True} else ("tree", what)
    return f" (ids are text in the {text} and numbers in the {numbers}, and not all of them match)"


def multiples(squares: Floats, reward: Floats, inverse: Floats, both: Floats) -> Floats:
    """Return sums of products of r, 1/p and r/p that are multiples of one number with these squares: (n, 3, 3)."""
    each = np.stack([reward, inverse, both], axis=1)  # (n, 3)
    return np.asarray(squares[:, None, None] * each[:, :, None] * each[:, None, :])


def _object_array(values: Sequence[object]) -> NDArray[np.object_]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _other_spelling(arm: Any) -> Any:
    """Convert an id from int to text or from text to int; None if that is not possible."""
    if isinstance(arm, int):
        return str(arm)
    try:
        number = int(arm)
    except (TypeError, ValueError):
        return None
    return number if str(number) == arm else None
