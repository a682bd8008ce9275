"""Read what to serve: the items, the settings and the past of one experiment, from options or from a TOML file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from banditree.base.files import reason
from banditree.catalogue.read import read_catalogue
from banditree.data.features import Features
from banditree.data.items import read_tree
from banditree.errors import BanditreeError, InvalidValue
from banditree.errors.checks import split_names
from banditree.ope import read_log
from banditree.service.schema import MAX_ARM_NAME, SettingsRequest, describe_errors, storable
from banditree.service.settings import Plan, Settings, Source, read_settings
from banditree.tree import Tree

OF_SOURCE = {part.name for part in fields(Source)}
OPTIONS = OF_SOURCE | set(SettingsRequest.model_fields)


def read_config(file: Path, catalogue: str, *, updates_settings: bool = False) -> list[Plan]:
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
            plans.append(make_plan(str(name), table, file.parent, catalogue, updates_settings=updates_settings))
        except (BanditreeError, TypeError) as error:
            raise InvalidValue(f"{file}, [experiments.{name}]: {error}") from None
    return plans


def make_plan(
    name: str, given: Mapping[str, Any], folder: Path, catalogue: str, *, updates_settings: bool = False
) -> Plan:
    """Read an experiment's settings and its files, named relative to a folder; options are as on the command line."""
    check_experiment_name(name)
    options = {key.replace("-", "_"): value for key, value in given.items()}
    for key in options:
        if key not in OPTIONS:
            raise InvalidValue(f"there is no option {key!r}; there are {', '.join(sorted(OPTIONS))}")
    for key in ("items", "arm"):
        if not options.get(key):
            raise InvalidValue(f"{key} is missing")
    for key in ("items", "log"):
        if key in options:
            options[key] = folder / str(options[key])
    for key in ("arm", "path", "log_context"):
        options[key] = split_names(f"--{key.replace('_', '-')}", options.get(key))
    source = Source(**{key: options.pop(key) for key in OF_SOURCE & options.keys()})
    if isinstance(options.get("context"), str) and "=" not in options["context"]:
        options["context"] = read_context(options["context"], folder)
    try:
        settings = read_settings(SettingsRequest.model_validate(options).model_dump())
    except ValidationError as error:
        raise InvalidValue(describe_errors(error.errors())) from None
    return replace(plan_of(name, source, settings, catalogue), updates_settings=updates_settings)


def check_experiment_name(name: str) -> str:
    """Check the name of a new experiment, which is a part of addresses."""
    if not re.fullmatch("[A-Za-z0-9._-]{1,100}", name) or name in (".", ".."):
        raise InvalidValue(
            "the name of an experiment has 1 to 100 letters, digits, dots, dashes and underscores, and is not . or .."
        )
    return name


def read_context(file: str, folder: Path) -> Mapping[str, Any]:
    """Read features by name from a JSON file."""
    try:
        content = json.loads((folder / file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = f"neither features such as age=18..90 nor a JSON file: {reason(error)}"
        raise InvalidValue(f"--context {file}: {why}") from None
    if not isinstance(content, Mapping):
        raise InvalidValue(f'--context {file} must hold an object such as {{"age": [18, 90]}}')
    return content


def plan_of(name: str, source: Source, settings: Settings, catalogue: str) -> Plan:
    """Read the files of an experiment, and return what to start it from."""
    tree = read_tree(source.items, arm=list(source.arm), path=list(source.path))
    arms = {str(route[-1]): [str(part) for part in route[:-1]] for route in tree.paths()}
    if len(arms) < tree.n_arms:
        raise InvalidValue("two items have the same name once numbers are written as text; rename one of them")
    for text in (*arms, *(part for path in arms.values() for part in path)):
        _check_name(text)
    return Plan(arms, settings, name, source.items.name, catalogue, _evidence(source, tree, settings))


def _check_name(text: str) -> None:
    if not 0 < len(text) <= MAX_ARM_NAME:
        raise InvalidValue(f"the name {text!r:.60} must have 1 to {MAX_ARM_NAME:,} characters")
    try:
        storable(text)
    except ValueError as error:
        raise InvalidValue(f"the name {text!r:.60} cannot be served: {error}") from None


def _evidence(source: Source, tree: Tree, settings: Settings) -> dict[str, Any] | None:
    """Read what was known before: counts in columns of the items, or a past log."""
    if (source.plays is None) != (source.successes is None):
        raise InvalidValue("--plays and --successes go together: columns of past plays and of successes")
    if source.plays is not None and source.log is not None:
        raise InvalidValue("start from --plays and --successes, or from --log, not from both")
    if not 0 < source.weight <= 1:
        raise InvalidValue(f"--weight {source.weight:g} must be above 0 and at most 1")
    if source.plays is not None and source.successes is not None:
        known = read_catalogue(
            source.items,
            arm=list(source.arm),
            path=list(source.path),
            plays=source.plays,
            successes=source.successes,
        )
        assert known.plays is not None
        assert known.totals is not None
        return _counts([str(arm) for arm in known.tree.arms], known.plays, known.totals, source.weight)
    if source.log is None:
        if source.weight != 1:
            raise InvalidValue("--weight needs what it weighs: --plays and --successes, or --log")
        return None
    if source.log_arm is None or source.log_reward is None:
        raise InvalidValue("--log needs --log-arm and --log-reward, the columns of what was shown and its reward")
    context = list(source.log_context)
    if not context and settings.features is not None:
        context = list(Features.from_dict(settings.features).spec)
    log = read_log(source.log, arm=source.log_arm, reward=source.log_reward, context=context)
    ids = [str(arm) for arm in tree.ids(log.places(tree)).tolist()]
    policy = settings.build(tree)
    if policy.dim is not None:
        if source.weight != 1:
            raise InvalidValue("--weight does not go with contexts; leave it out")
        if log.contexts is None:
            raise InvalidValue("the policy learns from contexts; name their columns with --log-context")
        contexts = log.contexts if policy.features is None else log.encode(policy.features)
        return {"arms": ids, "rewards": log.rewards.tolist(), "contexts": contexts.tolist()}
    places = {arm: place for place, arm in enumerate(dict.fromkeys(ids))}
    codes = np.array([places[arm] for arm in ids], np.intp)
    return _counts(list(places), np.bincount(codes), np.bincount(codes, log.rewards), source.weight)


def _counts(arms: Sequence[str], plays: Any, rewards: Any, weight: float) -> dict[str, Any]:
    tried = np.flatnonzero(np.asarray(plays) > 0).tolist()
    return {
        "arms": [arms[place] for place in tried],
        "rewards": [float(rewards[place]) * weight for place in tried],
        "plays": [float(plays[place]) * weight for place in tried],
    }
