"""Read a log of decisions from a table, and report all problems at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue import cells, columns
from banditree.catalogue.columns import check_once, listed
from banditree.catalogue.defects import CatalogueError, Defect
from banditree.errors import InvalidType
from banditree.ope.by_row import Floats, Places
from banditree.ope.fit_propensities import fit_propensities
from banditree.ope.log import Log
from banditree.ope.log_errors import LogError, Problem, ProblemCollector
from banditree.ope.times import as_times
from banditree.report.words import count

ESTIMATED = "estimated"  # in place of a column of propensities
TRUTH = {"true": 1.0, "false": 0.0}
CATEGORIES = 1000  # per column, at most; a column with more is an id rather than a category


def read_log(
    source: Any,
    *,
    arm: str,
    reward: str,
    propensity: str | None = None,
    context: Sequence[str] = (),
    time: str | None = None,
) -> Log:
    """Read a log of decisions from a CSV or Parquet file, any data frame, or a mapping of columns.

    There is one row per decision, and the rows keep their order. ``arm`` and ``reward`` name the columns of what was
    shown and what it earned; rows without a reward yet are counted and left out. ``propensity`` names the column of the
    probability with which the logging policy chose that arm (`Policy.decide` gives it); "estimated" fits it to the
    log itself, which is right only if nothing but the context columns decided what was shown. ``context`` names
    columns of numbers or of categories; categories become one column of zeros and ones per value, in sorted
    order (see ``log.context_names``). ``time`` is used to split the log and to replay it. All problems are reported at
    once in a `LogError`.

    >>> table = {"item": ["hat", "cap", "hat"], "click": [1, 0, None], "p": [0.5, 0.25, 0.5]}
    >>> table |= {"device": ["tv", "pc", "tv"]}
    >>> log = read_log(table, arm="item", reward="click", propensity="p", context=["device"])
    >>> log
    Log(2 rows, 2 arms, mean reward 0.5, propensities, contexts of 2, 1 more row without a reward)
    >>> log.context_names, log.contexts.tolist()
    (('device=pc', 'device=tv'), [[0.0, 1.0], [1.0, 0.0]])
    """
    features = listed("context", context)
    fit = propensity == ESTIMATED
    numbers = [reward, *([propensity] if propensity is not None and not fit else [])]
    wanted = [arm, *numbers, *features, *([] if time is None else [time])]
    given: list[Any] = wanted
    odd = [name for name in given if not isinstance(name, str)]
    if odd:
        raise InvalidType(f"column {odd[0]!r} must be the name of a column")
    check_once(wanted)
    try:
        table = columns.load(source, wanted)
    except CatalogueError as error:  # such as a missing column
        raise LogError(str(error).splitlines()[0].split(" in ", 1)[-1], _grouped(error.problems)) from None
    read = _Reader(table, reward)
    ids, codes = read.arms(arm)
    propensities = read.propensities(propensity) if propensity is not None and not fit else None
    names, parts = read.contexts(features)
    times = None if time is None else read.times(time)
    if not len(read.kept) and not read.found.problems:
        waiting = f" with a reward ({count(read.waiting, 'row')} without)" if read.waiting else ""
        read.found.problems.append(Problem(None, (), f"no rows{waiting}; a log needs at least one"))
    if read.found.problems:
        raise LogError(table.source, read.found.problems)

    contexts = np.column_stack(parts) if parts else None
    notes = [f"{count(read.waiting, 'row')} without a reward yet: left out"] if read.waiting else []
    if fit:
        propensities, how = fit_propensities(codes, len(ids), contexts)
        notes.append(f"propensities are estimated from the log ({how}): other influences on what was shown are ignored")
    return Log(
        ids,
        codes,
        read.rewards[read.kept],
        propensities,
        contexts,
        times,
        context_names=names,
        without_reward=read.waiting,
        estimated=fit,
        notes=notes,
    )


class _Reader:
    """Reads the columns of a log. Only rows with a reward are kept; the others are counted."""

    def __init__(self, table: columns.Columns, reward: str) -> None:
        self.table = table
        self.found = ProblemCollector(table.rows)
        self.found.problems += _grouped(table.defects)
        self.rewards = self.numbers(reward, None)
        bad = np.array(sorted(self.bad), np.intp)
        missing = np.isnan(self.rewards)
        missing[bad] = False
        self.waiting = int(missing.sum())
        self.kept = np.flatnonzero(~missing)

    def numbers(self, column: str, kept: Places | None) -> Floats:
        """Read a column of numbers, NaN for empty cells: (rows,), or (kept,) if those are given."""
        values = self.values(column, kept)
        truth = _truth(values)
        if truth is not None:
            self.bad: dict[int, str] = {}
            return truth
        found, self.bad = cells.numbers(values)
        if self.bad:
            first = next(iter(self.bad.values()))
            places = np.array(sorted(self.bad), np.intp)
            self.found.add(column, places if kept is None else kept[places], f"{first}; give numbers")
            found[places] = np.nan
        return found

    def values(self, column: str, kept: Places | None) -> Sequence[Any]:
        values = self.table.values[column]
        return values if kept is None or len(kept) == len(values) else [values[at] for at in kept.tolist()]

    def arms(self, column: str) -> tuple[list[Any], Places]:
        """Return the distinct arms, and the index of each kept row's arm among them."""
        values = self.values(column, self.kept)
        try:
            spelled = {value: cells.name(value) for value in dict.fromkeys(values)}
        except TypeError:
            odd = [at for at, value in enumerate(values) if not hasattr(value, "__hash__") or value.__hash__ is None]
            self.found.add(
                column, self.kept[odd], f"{values[odd[0]]!r:.40} is not an arm id; give text or a whole number"
            )
            return [], np.zeros(len(values), np.intp)
        place = {name: at for at, name in enumerate(dict.fromkeys(n for n in spelled.values() if n is not None))}
        code = {value: -1 if name is None else place[name] for value, name in spelled.items()}
        codes = np.fromiter((code[value] for value in values), np.intp, len(values))
        self.found.add(column, self.kept[codes < 0], "empty; every row needs an arm")
        return list(place), codes

    def propensities(self, column: str) -> Floats:
        found = self.numbers(column, self.kept)
        missing = np.isnan(found)
        missing[list(self.bad)] = False
        what = "a propensity is the probability with which the logging policy chose this arm"
        self.found.add(column, self.kept[missing], f"empty; {what}, and every row needs one")
        self.found.add(column, self.kept[found == 0], f"0; {what}, so it must be above 0")
        self.found.add(column, self.kept[found < 0], f"negative; {what}, so it must be above 0")
        self.found.add(column, self.kept[found > 1], f"above 1; {what}, so it must be at most 1")
        return found

    def contexts(self, features: Sequence[str]) -> tuple[list[str], list[Floats]]:
        """Read the contexts: names of their columns, and the columns: (dim,) of (kept,)."""
        names: list[str] = []
        parts: list[Floats] = []
        for column in features:
            values = self.values(column, self.kept)
            if any(isinstance(value, str) for value in values) and _truth(values) is None and not _any_number(values):
                categories, codes = self.categories(column, values)
                names += [f"{column}={category}" for category in categories]
                parts += [(codes == at).astype(np.float64) for at in range(len(categories))]
                continue
            found = self.numbers(column, self.kept)
            missing = np.isnan(found)
            missing[list(self.bad)] = False
            self.found.add(column, self.kept[missing], "empty; fill it in, or leave the column out")
            names.append(column)
            parts.append(found)
        return names, parts

    def categories(self, column: str, values: Sequence[Any]) -> tuple[list[str], Places]:
        """Return the sorted categories, and the index of each row's category among them."""
        spelled = {value: cells.name(value) for value in dict.fromkeys(values)}
        found = sorted({str(name) for name in spelled.values() if name is not None})
        empty = np.array([spelled[value] is None for value in values], bool)
        self.found.add(column, self.kept[empty], "empty; fill it in, or leave the column out")
        if len(found) > CATEGORIES:
            what = f"{len(found):,} different texts; at most {CATEGORIES:,} are allowed: group them, or give numbers"
            self.found.problems.append(Problem(column, (), what))
            found = []
        place = {name: at for at, name in enumerate(found)}
        codes = np.fromiter((place.get(str(spelled[value]), -1) for value in values), np.intp, len(values))
        return found, codes

    def times(self, column: str) -> NDArray[Any]:
        times, bad, message = as_times(self.values(column, self.kept))
        self.found.add(column, self.kept[bad], message)
        return times


def _truth(values: Sequence[Any]) -> Floats | None:
    """Convert true and false, also as text, to 1 and 0, empty cells to NaN; None if there is anything else: (n,)."""
    first = next((value for value in values if not cells.looks_empty(str(value).strip())), None)
    if not isinstance(first, str | bool | np.bool_) or str(first).strip().lower() not in TRUTH:
        return None
    words = {value: str(value).strip().lower() for value in dict.fromkeys(values)}
    if not all(word in TRUTH or cells.looks_empty(word) for word in words.values()):
        return None
    return np.array([TRUTH.get(words[value], np.nan) for value in values], np.float64)


def _any_number(values: Sequence[Any]) -> bool:
    """Whether a column with text also contains a number."""
    different = list(dict.fromkeys(values))
    found, _ = cells.numbers(different)
    return bool((~np.isnan(found)).any())


def _grouped(defects: Iterable[Defect]) -> list[Problem]:
    """Group the defects of a table that have the same message."""
    rows: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for defect in defects:
        rows[defect.column, defect.message] += [] if defect.row is None else [defect.row]
    return [Problem(column, tuple(where), message) for (column, message), where in rows.items()]
