"""Run policies on instances of a problem, seed by seed: `simulate`, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BanditreeError, Interrupted, InvalidType, InvalidValue, PolicyFailed
from banditree.errors.checks import choice, whole
from banditree.policy.algorithms import ALGORITHMS
from banditree.simulation.one_seed import Factory, On, Plan, Streams, asks_for_dim, key_of, on, policy_class
from banditree.simulation.runs import Built, Run, Runs
from banditree.simulation.stepper import Schedule
from banditree.simulation.workers import Progress, over_seeds
from banditree.stream import seed_sequence

__all__ = ["LONGEST", "On", "Streams", "on", "simulate"]

LONGEST = 10**12  # steps of a run: a day or more, and far below what 64 bits can count
LOG = 100  # checkpoints evenly spaced on a log axis, before the first ones that coincide are dropped
MOST = 10**7  # seeds, and checkpoints: more would not fit into memory

Found = dict[str, Run | PolicyFailed]  # by policy


def simulate(
    policies: Mapping[str, Factory] | Iterable[Factory],
    problem: Any,
    *,
    horizon: int,
    seeds: int | Iterable[int],
    rng: Any = 0,
    checkpoints: int | str | Iterable[int] = 100,
    replicates: int | Iterable[int] = 1,
    delay: int = 0,
    batch: int = 1,
    jobs: int | None = None,
    progress: Progress = None,
) -> Runs:
    """Run every policy for ``horizon`` steps on one instance of ``problem`` per seed.

    ``policies`` maps names to classes, partials or any callable, called as ``factory(tree, rng=rng)`` once per seed; a
    list of classes uses their names. ``seeds`` is a number or a list of seed indices. The result depends on ``rng``,
    the seeds, the names and the engine alone: not on jobs, backends, checkpoints, or which other policies run. Built-in
    policies on built-in problems run in the native engine without the GIL; others are stepped from Python.

    Regret is recorded at 100 evenly spaced times; ``checkpoints`` is another number of them, "log" for times evenly
    spaced on a log axis, or the times themselves.

    With ``replicates`` every policy runs that many times on the instance of each seed: ``runs.regret`` is the mean, and
    ``runs.replicates`` has each run, which separates the luck of a run from differences between instances. A list of
    numbers runs those replicates, so that more can be added later; replicate 0 is the run without replicates.

    Decisions are made ``batch`` at a time from the same beliefs, and the reward of step t is learned at the first batch
    that starts after step t + ``delay``; rewards that have not arrived at the end are not learned.

    ``jobs`` is as in joblib (None: one; -1: all cores). A progress bar is shown on terminals unless ``progress`` is
    False; a function is called with the share of the steps done, from 0 to 1. On Ctrl-C, ``errors.Interrupted`` has the
    finished seeds in ``.runs``; when a policy of your own raises, ``errors.PolicyFailed`` has the runs of the others;
    when a problem of your own does, ``errors.ProblemFailed`` has the finished seeds.

    >>> import banditree as bt
    >>> problem = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
    >>> runs = bt.simulate([bt.TS, bt.TSC], problem, horizon=200, seeds=3)
    >>> runs.regret["TSC"].shape
    (3, 100)
    """
    factories = _named(policies)
    if not callable(getattr(problem, "instance", None)):
        raise InvalidType(f"problem={problem!r} must have instance(rng), as bt.problems.open_bandit() has")
    if progress not in (None, True, False) and not callable(progress):
        raise InvalidType(
            f"progress={progress!r} must be True, False, None for a bar on terminals, or a function of the share done"
        )
    horizon = whole("horizon", horizon, 1, LONGEST, why="the number of steps in a run")
    indices = _numbers("seed", seeds)
    times = _times(checkpoints, horizon)
    repeated = tuple(_numbers("replicate", replicates))
    schedule = Schedule(
        horizon,
        whole("delay", delay, 0, LONGEST, why="the number of steps until a reward arrives"),
        whole("batch", batch, 1, LONGEST, why="the number of decisions made at a time"),
    )
    asking = frozenset(name for name, factory in factories.items() if asks_for_dim(factory))
    plan = Plan(factories, problem, Streams(seed_sequence(rng)), schedule, times, repeated, asking)
    results: dict[int, Found] = {}
    steps = horizon * len(indices) * len(factories) * len(repeated)
    slow = bool(getattr(problem, "slow", False))
    work = over_seeds(indices, plan.draw, plan.run, jobs=jobs, slow=slow, steps=steps, progress=progress)
    try:
        with closing(work):
            for seed, found in work:
                results[seed] = found
    except KeyboardInterrupt:
        stopped = Interrupted(f"stopped with {len(results)} of {len(indices)} seeds finished")
        _add_runs(stopped, plan, indices, results)
        raise stopped from None
    except Exception as error:  # raised by one seed; the finished ones are kept
        _add_runs(error, plan, indices, results)
        raise
    runs = _gathered(plan, plan.factories, indices, results)
    failures = [run for seed in indices for run in results[seed].values() if isinstance(run, PolicyFailed)]
    if failures:
        first, *others = failures
        first.runs, first.finished = runs, _finished(plan, indices, results)
        for other in others[:10]:
            first.add_note(f"Also: {other}")
        raise first
    assert runs is not None
    return runs


def _add_runs(error: Any, plan: Plan, seeds: list[int], results: Mapping[int, Found]) -> None:
    """Attach the finished seeds to an exception."""
    error.runs = _gathered(plan, plan.factories, [seed for seed in seeds if seed in results], results)
    if error.runs is not None:
        error.add_note("The finished seeds are in .runs of this exception.")


def _gathered(plan: Plan, names: Iterable[str], seeds: list[int], results: Mapping[int, Found]) -> Runs | None:
    """Collect the policies that finished on all these seeds; None if there are none."""
    found: dict[str, list[Run]] = {}
    for name in names:
        runs = [run for seed in seeds if isinstance(run := results[seed][name], Run)]
        if runs and len(runs) == len(seeds):
            found[name] = runs
    if not found:
        return None
    instance = None
    if getattr(plan.problem, "fixed", False):
        with suppress(BanditreeError):  # a problem that fails only now must not cost the runs
            instance = plan.draw(seeds[0])
    known = {name: _built(plan.factories[name]) for name in found}
    built = {name: how for name, how in known.items() if how is not None}
    return Runs.gather(found, seeds=seeds, times=plan.times, problem=plan.problem, instance=instance, built=built)


def _finished(plan: Plan, seeds: list[int], results: Mapping[int, Found]) -> dict[str, Runs]:
    """Return the runs of each policy on the seeds that it finished."""
    found = {}
    for name in plan.factories:
        finished = [seed for seed in seeds if isinstance(results[seed][name], Run)]
        runs = _gathered(plan, [name], finished, results)
        if runs is not None:
            found[name] = runs
    return found


def _named(policies: Mapping[str, Factory] | Iterable[Factory]) -> dict[str, Factory]:
    if isinstance(policies, Mapping):
        found = dict(policies)
    elif _several(policies):
        listed = list(policies)
        found = {_name_of(factory): factory for factory in listed}
        if len(found) < len(listed):
            raise InvalidValue(f"two policies have the same name among {[_name_of(f) for f in listed]}; use a mapping")
    else:
        raise InvalidType(f"policies={policies!r} must be a mapping from names to policies, or a list of classes")
    if not found:
        raise InvalidValue("policies is empty; give at least one")
    for name, factory in found.items():
        if not isinstance(name, str) or not name or not callable(factory):
            raise InvalidType(
                f"policy {name!r}: {factory!r} must be callable as factory(tree, rng=rng), with a string as name"
            )
    names: dict[int, str] = {}
    for name in found:
        try:
            other = names.setdefault(key_of(name), name)
        except UnicodeEncodeError:
            raise InvalidValue(f"policy {name!r} has a name that is not valid text; give it another") from None
        if other != name:  # one in four billion pairs
            raise InvalidValue(f"policies {other!r} and {name!r} would draw the same numbers; rename one of them")
    return found


def _name_of(factory: Factory) -> str:
    if isinstance(factory, On):
        return f"{_name_of(factory.factory)} on {factory.tree}"
    if isinstance(factory, partial):
        return _name_of(factory.func)
    name = getattr(factory, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidType(f"{factory!r} has no name; use a mapping from names to policies")
    return str(name)


def _built(factory: Factory) -> Built | None:
    """Return the class of a built-in policy and those of its parameters that are numbers or texts; None for others."""
    kind, options = policy_class(factory)
    if kind is None or kind not in ALGORITHMS.values():
        return None
    return kind.__name__, {name: value for name, value in options.items() if isinstance(value, int | float | str)}


def _numbers(what: str, given: int | Iterable[int]) -> list[int]:
    """Return the indices of seeds or replicates, given as a number of them or as a list."""
    if _several(given):
        numbers = [whole(what, number, 0) for number in given]
        if not numbers or len(set(numbers)) < len(numbers):
            raise InvalidValue(f"{what}s={numbers} must name at least one {what}, and none twice")
        return numbers
    return list(range(whole(f"{what}s", given, 1, MOST, why="how many to run")))


def _times(checkpoints: int | str | Iterable[int], horizon: int) -> NDArray[np.int64]:
    """Return the times at which regret is recorded; the last is always the horizon."""
    if isinstance(checkpoints, str):
        choice("checkpoints", checkpoints, ("log",))
        return np.unique(np.rint(np.geomspace(1, horizon, LOG)).astype(np.int64))
    if _several(checkpoints):
        given = [whole("checkpoint", at, 1, horizon) for at in checkpoints]
        return np.unique(np.array([*given, horizon], np.int64))
    n = min(whole("checkpoints", checkpoints, 1), horizon)
    whole("checkpoints", n, 1, MOST, why="how often regret is recorded")
    return np.unique(np.ceil(horizon * np.arange(1, n + 1) / n).astype(np.int64))


def _several(given: Any) -> TypeGuard[Iterable[Any]]:
    """Say whether this is an iterable of values, not a single one or a text."""
    single = isinstance(given, str | bytes) or (isinstance(given, np.ndarray) and given.ndim == 0)
    return isinstance(given, Iterable) and not single
