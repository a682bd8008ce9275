"""Join two results of `simulate`: more policies on the same seeds, or the same policies on more seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.simulation.run_outcome import one_engine

if TYPE_CHECKING:
    from banditree.simulation.runs import Runs

BY_POLICY = ("regret", "engine", "evaluations", "seconds", "clusters", "plays", "built", "replicates")  # {policy: ...}
BY_SEED = ("regret", "evaluations", "plays", "replicates")  # ... arrays with one row per seed


def joined(one: Runs, two: Runs) -> Runs:
    """Join two results that share their problem and times, and either their seeds or their policies."""
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
        return replace(_joined(one, two, _more_seeds(one, two)), seeds=one.seeds + two.seeds)
    if one.seeds != two.seeds:
        raise InvalidValue("these runs share neither their seeds nor their policies, so they cannot be joined")
    both = [name for name in one.policies if name in two.policies]
    if both:
        raise InvalidValue(f"policy {both[0]!r} is in both; select or rename the policies of one of them")
    return _joined(one, two, {field: {**getattr(one, field), **getattr(two, field)} for field in BY_POLICY})


def _more_seeds(one: Runs, two: Runs) -> dict[str, Any]:
    def together(field: str, ours: Any, theirs: Any) -> Any:
        if field in BY_SEED:
            return np.concatenate([ours, theirs])
        if field == "clusters":
            return [*ours, *theirs]
        return ours + theirs if field == "seconds" else one_engine((ours, theirs))

    found: dict[str, Any] = {"built": {name: how for name, how in one.built.items() if two.built.get(name) == how}}
    for field in (each for each in BY_POLICY if each != "built"):
        ours, theirs = getattr(one, field), getattr(two, field)
        if field == "replicates" and {n: ours[n].shape[1] for n in ours} != {n: theirs[n].shape[1] for n in theirs}:
            raise InvalidValue("these runs have different numbers of replicates")
        found[field] = {policy: together(field, ours[policy], theirs[policy]) for policy in ours if policy in theirs}
    return found


def _joined(one: Runs, two: Runs, fields: dict[str, Any]) -> Runs:
    """Replace these fields; plays per arm are kept where both results have the same arms."""
    same = one.arms == two.arms
    if not same:
        fields["plays"] = {}
    instance = one.instance if two.instance is not None and same else None
    return replace(one, **fields, arms=one.arms if same else (), instance=instance)
