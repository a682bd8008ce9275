"""Read and write Vowpal Wabbit's decision logs: dsjson, one JSON object per decision and line.

A line has the shared context and the actions in ``c``, and in ``_label_cost``, ``_label_probability`` and
``_labelIndex`` what the chosen action cost (a reward with the opposite sign), how likely it was, and which it was.
https://vowpalwabbit.org/docs/vowpal_wabbit/python/latest/tutorials/ describes the format.

What VW has no place for (ids that are ints, paths, times that are numbers) is written under keys that start with an
underscore, which VW ignores, so that reading what was written gives the same log.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from banditree.base.files import FilePath, Json, write_whole
from banditree.base.words import count
from banditree.data.defects import Defect
from banditree.data.sources import Columns, existing_file, read_bytes
from banditree.errors import InvalidValue
from banditree.errors.checks import MAX_REWARD

if TYPE_CHECKING:
    from banditree.data.log import Log

OURS = "_banditree"  # on every line that we wrote: which columns are contexts, whether propensities are estimated
COLUMNS = ("_id", "_label_cost", "_label_probability", "Timestamp", "_path")  # arm, reward, propensity, time, path
SHARED, ACTION, CATEGORY = "s", "a", "c"  # names of the namespaces that we write


# ---------------------------------------------------------------- reading


def is_dsjson(source: object) -> TypeGuard[FilePath]:
    """Whether this is a path to a decision log, by its name or its first line."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    if ".dsjson" in "".join(path.suffixes).lower():
        return True
    if not path.is_file() or ".json" not in "".join(path.suffixes).lower():
        return False
    first = read_bytes(path)[:100_000].split(b"\n", 1)[0]
    return b'"_label' in first or b'"_multi"' in first


def load_dsjson(
    source: str | os.PathLike[str], arm: str | None, context: Sequence[str], max_bytes: int
) -> tuple[Columns, list[str], bool]:
    """Load a decision log as ``COLUMNS`` (with rewards in place of costs) and those of the context.

    ``arm`` is the feature of an action that is its id, such as "TAction.topic"; without it, ids are those that we
    wrote, or the numbers of the actions, from 1 as VW counts. ``context`` names features of the shared context. Also
    return the names of the context's columns, and whether propensities were estimated.
    """
    path = existing_file(source)
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    table = Columns(path.name, columns, [])
    rows: list[int] = []
    names, is_estimated, skipped, others = list(context), False, 0, 0
    for row, line in _lines(path, max_bytes, table):
        if "c" not in line:
            others += 1  # such as a reward that came without its decision
            continue
        if line.get("_skipLearn") is True:
            skipped += 1
            continue
        ours = line.get(OURS)
        if isinstance(ours, Mapping):
            names = names or [str(name) for name in ours.get("context", [])]
            is_estimated = is_estimated or ours.get("estimated") is True
        problem = _add(columns, line, arm, names)
        if problem:
            table.problems.append(Defect(row, None, problem))
            continue
        rows.append(row)
    table.rows = rows
    if others:
        table.notes.append(f"{count(others, 'line')} without a decision: left out")
    if skipped:
        table.notes.append(f"{count(skipped, 'decision')} that did not take place (_skipLearn): left out")
    return table, names, is_estimated


def _lines(path: Path, max_bytes: int, table: Columns) -> Iterator[tuple[int, Json]]:
    for row, text in enumerate(read_bytes(path, max_bytes).splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict):
            yield row, line
        else:
            table.problems.append(Defect(row, None, "not a JSON object; every line of a decision log is one"))


def _add(columns: dict[str, list[object]], line: Json, arm: str | None, names: Sequence[str]) -> str:
    """Add a decision to the columns, or say what is wrong with it."""
    shared = line["c"]
    actions = shared.get("_multi") if isinstance(shared, Mapping) else None
    if not isinstance(actions, list) or not all(isinstance(action, Mapping) for action in actions):
        kind = "slots (CCB)" if isinstance(shared, Mapping) and "_slots" in shared else "no list of actions, c._multi"
        return f"has {kind}; a log has one choice among actions per line"
    index = line.get("_labelIndex")
    if not isinstance(index, int):
        ranked = line.get("a")
        index = ranked[0] - 1 if isinstance(ranked, list) and ranked and isinstance(ranked[0], int) else None
    if index is None or not 0 <= index < len(actions):
        return f"_labelIndex {index!r} is not one of its {len(actions)} actions"
    action, cost, probability = actions[index], line.get("_label_cost"), line.get("_label_probability")
    if arm is not None:
        name = _feature(action, arm)
        if name is None:
            return f"the chosen action has no feature {arm!r}; name it as in 'TAction.topic'"
    else:
        name = action.get("_id", index + 1)
    if cost is not None and not isinstance(cost, int | float):
        return f"_label_cost {cost!r:.40} is not a number"
    if cost is not None and abs(cost) > MAX_REWARD:
        return f"_label_cost {cost!r:.40} is too large to compute with; use a smaller unit"
    columns["_id"].append(name)
    columns["_label_cost"].append(None if cost is None else -float(cost) + 0.0)
    columns["_label_probability"].append(probability)
    columns["Timestamp"].append(line.get("_time", line.get("Timestamp")))
    columns["_path"].append(action.get("_path"))
    for name in names:
        columns.setdefault(name, []).append(_feature(shared, name))
    return ""


def _feature(features: Mapping[str, object], name: str) -> object:
    """Find a feature by its name, "TAction.topic" or "topic" in any namespace; None if there is none."""
    value: object = features
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        inner = [part for key, part in features.items() if isinstance(part, Mapping) and key != "_multi"]
        value = next((part[name] for part in inner if name in part), None)
    return value


# ---------------------------------------------------------------- writing


def write_dsjson(log: Log, path: str | os.PathLike[str]) -> None:
    """Write a log as lines of dsjson, gzipped if the name ends in .gz.

    A log knows the probability of the arm that was shown; the rest is divided evenly over the others.
    """
    if log.propensities is None:
        raise InvalidValue(
            "this log has no propensities, and a decision log needs the probability of every decision; name their "
            'column in read_log(..., propensity=...), or use propensity="estimated"'
        )
    actions = ", ".join(_action(arm, None if log.paths is None else log.paths.get(arm)) for arm in log.ids)
    n_arms, names = len(log.ids), list(log.columns)
    ours: dict[str, object] = {"context": names} | ({"estimated": True} if log.estimated else {})
    dates = log.times is not None and log.times.dtype.kind == "M"
    lines = []
    for row in range(len(log)):
        index, propensity = int(log.codes[row]), float(log.propensities[row])
        shared = json.dumps({SHARED: {name: log.columns[name][row] for name in names}}) if names else "{}"
        ranked = [index + 1, *(other for other in range(1, n_arms + 1) if other != index + 1)]
        rest = (1 - propensity) / (n_arms - 1) if n_arms > 1 else 0.0
        line: dict[str, object] = {
            "_label_cost": -float(log.rewards[row]) + 0.0,
            "_label_probability": propensity,
            "_label_Action": index + 1,
            "_labelIndex": index,
        }
        if log.times is not None:
            moment = log.times[row]
            line["Timestamp" if dates else "_time"] = f"{np.datetime_as_string(moment)}Z" if dates else float(moment)
        line |= {"EventId": str(row), OURS: ours, "a": ranked, "p": [propensity, *[rest] * (n_arms - 1)]}
        comma = ", " if names else ""
        text = f'{shared[:-1]}{comma}"_multi": [{actions}]}}'
        lines.append(f'{json.dumps(line)[:-1]}, "c": {text}}}\n')
    content = "".join(lines).encode()
    write_whole(path, [gzip.compress(content) if str(path).endswith(".gz") else content])


def _action(arm: object, path: tuple[object, ...] | None) -> str:
    """Write an action: its id and its categories as features, and as they are under keys that VW ignores."""
    action: dict[str, object] = {"_id": arm, ACTION: {"id": str(arm)}}
    if path is not None:
        action["_path"] = list(path)
        if len(path) > 1:
            action[CATEGORY] = {f"level{depth}": str(name) for depth, name in enumerate(path[:-1], start=1)}
    return json.dumps(action)
