"""Read what to serve: the items, the settings and the past of one experiment, from options or from a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from banditree.catalogue.read import read_catalogue
from banditree.errors import BanditreeError, InvalidType, InvalidValue
from banditree.ope import read_log
from banditree.report.files import reason
from banditree.service.engine import Plan
from banditree.service.schema import MAX_ARM_NAME, storable
from banditree.service.settings import Settings, features_of, parse_context, parse_features
from banditree.tables import read_tree
from banditree.tree import Tree

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SECONDS = ("reward_window", "sticky")  # settings that are times, such as 30m
NAMES = ("path", "log_context")  # options that are lists of columns


@dataclass(frozen=True)
class Source:
    """Where an experiment's items and its past come from."""

    items: Path
    arm: str
    path: Sequence[str] = ()
    plays: str | None = None  # columns of the items: past plays and successes
    successes: str | None = None
    weight: float = 1.0  # what a past play counts, compared with a new one
    log: Path | None = None  # a past log, one row per decision
    log_arm: str | None = None
    log_reward: str | None = None
    log_context: Sequence[str] = ()

    def plan(self, name: str, settings: Settings, catalogue: str) -> Plan:
        """Read the files, and return what to start from."""
        arm = self.arm.split(",") if "," in self.arm else [self.arm]
        tree = read_tree(self.items, arm=arm, path=list(self.path))
        arms = {str(route[-1]): [str(part) for part in route[:-1]] for route in tree.paths()}
        if len(arms) < tree.n_arms:
            raise InvalidValue("two items have the same name once numbers are written as text; rename one of them")
        for text in (*arms, *(part for path in arms.values() for part in path)):
            _check_name(text)
        return Plan(arms, settings, name, self.items.name, catalogue, self._evidence(arm, tree, settings))

    def _evidence(self, arm: list[str], tree: Tree, settings: Settings) -> dict[str, Any] | None:
        if (self.plays is None) != (self.successes is None):
            raise InvalidValue("--plays and --successes go together: columns of past plays and of successes")
        if self.plays is not None and self.log is not None:
            raise InvalidValue("start from --plays and --successes, or from --log, not from both")
        if not 0 < self.weight <= 1:
            raise InvalidValue(f"--weight {self.weight:g} must be above 0 and at most 1")
        if self.plays is not None:
            given: Any = {"plays": self.plays, "successes": self.successes}
            known = read_catalogue(self.items, arm=arm, path=list(self.path), **given)
            assert known.plays is not None
            assert known.totals is not None
            return _counts([str(arm) for arm in known.tree.arms], known.plays, known.totals, self.weight)
        if self.log is None:
            return None
        if self.log_arm is None or self.log_reward is None:
            raise InvalidValue("--log needs --log-arm and --log-reward, the columns of what was shown and its reward")
        return self._past(tree, settings)

    def _past(self, tree: Tree, settings: Settings) -> dict[str, Any]:
        """Read a past log: its sums by arm, or its rows where the policy learns from contexts."""
        named = [] if settings.features is None else list(parse_features(settings.features).spec)
        context = list(self.log_context) or named
        log = read_log(self.log, arm=str(self.log_arm), reward=str(self.log_reward), context=context)
        ids = [str(arm) for arm in tree.ids(log.places(tree)).tolist()]
        policy = settings.build(tree)
        if policy.dim is not None:
            if self.weight != 1:
                raise InvalidValue("--weight does not go with contexts; leave it out")
            if log.contexts is None:
                raise InvalidValue("the policy learns from contexts; name their columns with --log-context")
            contexts = log.contexts if policy.features is None else log.encode(policy.features)
            return {"arms": ids, "rewards": log.rewards.tolist(), "contexts": contexts.tolist()}
        names = list(dict.fromkeys(ids))
        place = {name: number for number, name in enumerate(names)}
        codes = np.array([place[name] for name in ids], np.intp)
        return _counts(names, np.bincount(codes), np.bincount(codes, log.rewards), self.weight)


OPTIONS = {part.name for kind in (Settings, Source) for part in fields(kind)} - {"features"} | {"context"}


def _counts(arms: Sequence[str], plays: Any, rewards: Any, weight: float) -> dict[str, Any]:
    tried = np.flatnonzero(np.asarray(plays) > 0).tolist()
    return {
        "arms": [arms[place] for place in tried],
        "rewards": [float(rewards[place]) * weight for place in tried],
        "plays": [float(plays[place]) * weight for place in tried],
    }


def _check_name(text: str) -> None:
    if not 0 < len(text) <= MAX_ARM_NAME:
        raise InvalidValue(f"the name {text!r:.60} must have 1 to {MAX_ARM_NAME:,} characters")
    try:
        storable(text)
    except ValueError as error:
        raise InvalidValue(f"the name {text!r:.60} cannot be served: {error}") from None


def read_config(file: Path, catalogue: str) -> list[Plan]:
    """Read a TOML file with a table [experiments.NAME] for each experiment; options as on the command line."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValue(f"cannot read {file}: {reason(error)}") from None
    tables = content.pop("experiments", None)
    if content or not isinstance(tables, Mapping) or not tables:
        raise InvalidValue(f"{file} must have a table [experiments.NAME] for each experiment, and nothing else")
    plans = []
    for name, table in tables.items():
        try:
            plans.append(make_plan(str(name), table, file.parent, catalogue))
        except (BanditreeError, TypeError) as error:
            raise InvalidValue(f"{file}, [experiments.{name}]: {error}") from None
    return plans


def make_plan(name: str, given: Mapping[str, Any], folder: Path, catalogue: str) -> Plan:
    """Read an experiment's settings and its files, named relative to a folder; options are as on the command line."""
    check_experiment_name(name)
    options = {key.replace("-", "_"): value for key, value in given.items()}
    for key in options:
        if key not in OPTIONS:
            raise InvalidValue(f"there is no option {key!r}; there are {', '.join(sorted(OPTIONS))}")
    for key in ("items", "arm"):
        if key not in options:
            raise InvalidValue(f"{key} is missing")
    context = options.pop("context", None)
    features = read_context(context, folder) if isinstance(context, str) else features_of(context)
    of_source: dict[str, Any] = {part.name: options.pop(part.name) for part in fields(Source) if part.name in options}
    for key in ("items", "log"):
        if key in of_source:
            of_source[key] = folder / str(of_source[key])
    for key in NAMES:
        if isinstance(of_source.get(key), str):
            of_source[key] = [part.strip() for part in of_source[key].split(",")]
    for key in SECONDS:
        if isinstance(options.get(key), str):
            options[key] = seconds(options[key], f"--{key.replace('_', '-')}")
    _check_types(options)
    return Source(**of_source).plan(name, Settings(**options, features=features), catalogue)


def _check_types(table: Mapping[str, Any]) -> None:
    """Refuse a setting of another type than its default; Settings itself checks the values."""
    for part in fields(Settings):
        value = table.get(part.name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        wanted = "bool" if "bool" in str(part.type) else "str" if str(part.type) == "str" else "number"
        if not {"bool": isinstance(value, bool), "str": isinstance(value, str), "number": is_number}[wanted]:
            kind = {"bool": "true or false", "str": "text", "number": "a number"}[wanted]
            raise InvalidType(f"{part.name} = {value!r} must be {kind}")


def check_experiment_name(name: str) -> str:
    """Check the name of a new experiment, which is a part of addresses."""
    if not (
        0 < len(name) <= 100 and all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in name)
    ):
        raise InvalidValue("the name of an experiment has 1 to 100 letters, digits, dots, dashes and underscores")
    return name


def read_context(text: str, folder: Path = Path()) -> Mapping[str, Any] | None:
    """Read features by name: device=phone|tablet,age=18..90,returning=bool, or a JSON file of them."""
    if "=" in text:
        return parse_context(text)
    try:
        content = json.loads((folder / text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = f"neither features such as age=18..90 nor a JSON file: {reason(error)}"
        raise InvalidValue(f"--context {text}: {why}") from None
    if not isinstance(content, Mapping):
        raise InvalidValue(f'--context {text} must hold an object such as {{"age": [18, 90]}}')
    return features_of(content)


def seconds(text: str, option: str) -> float:
    """Convert a time such as 90, 30m or 2h to seconds."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise InvalidValue(f"{option} {text!r} is not a time; write 90 (seconds), 30m, 2h or 1d") from None
