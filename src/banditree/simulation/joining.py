"""Two results of `simulate` as one: more policies on the same seeds, or the same policies on more seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from banditree.simulation.runs import Runs

BY_POLICY = ("regret", "engine", "evaluations", "seconds", "clusters", "plays", "built", "replicates")
ALONG_SEEDS = ("regret", "evaluations", "plays", "replicates")  # arrays with one row per seed


def joined(one: Runs, two: Runs) -> Runs:
    """One result of two that share their problem and times, and either their seeds or their policies."""
    if type(two) is not type(one):
        raise InvalidType(f"{two!r:.60} must be runs, as bt.simulate returns them")
    if one.problem != two.problem:
        raise InvalidValue(f"these are runs of different problems: {one.problem:.60} and {two.problem:.60}")
    if one.times.tolist() != two.times.tolist():
        raise InvalidValue("these runs have different times; give both simulations the same horizon and checkpoints")
    if set(one.policies) == set(two.policies):
        twice = sorted({*one.seeds} & {*two.seeds})
        if twice:
            raise InvalidValue(f"seed {twice[0]} is in both; give the second simulation other seeds, or other policies")
        return _more_seeds(one, two)
    if one.seeds != two.seeds:
        raise InvalidValue("these runs share neither their seeds nor their policies, so they do not fit together")
    both = [name for name in one.policies if name in two.policies]
    if both:
        raise InvalidValue(f"policy {both[0]!r} is in both; select or rename the policies of one of them")
    return _replaced(one, two, {name: {**getattr(one, name), **getattr(two, name)} for name in _fields(one)})


def _more_seeds(one: Runs, two: Runs) -> Runs:
    def together(name: str, ours: Any, theirs: Any) -> Any:
        if name in ALONG_SEEDS:
            return np.concatenate([ours, theirs])
        if name == "clusters":
            return [*ours, *theirs]
        if name == "seconds":
            return ours + theirs
        return ours if ours == theirs else "readable"  # the engine; a policy is built as it is

    found = {}
    for name in _fields(one):
        ours, theirs = getattr(one, name), getattr(two, name)
        if name == "replicates" and {n: ours[n].shape[1] for n in ours} != {n: theirs[n].shape[1] for n in theirs}:
            raise InvalidValue("these runs have different numbers of replicates")
        found[name] = {key: together(name, ours[key], theirs[key]) for key in ours if key in theirs}
    return replace(_replaced(one, two, found), seeds=one.seeds + two.seeds)


def _fields(runs: Runs) -> list[str]:
    return [name for name in BY_POLICY if hasattr(runs, name)]


def _replaced(one: Runs, two: Runs, fields: dict[str, Any]) -> Runs:
    """Plays per arm are kept where both have them for the same arms."""
    same = one.arms == two.arms
    if not same:
        fields["plays"] = {}
    instance = one.instance if two.instance is not None and same else None
    return replace(one, **fields, arms=one.arms if same else (), instance=instance)
