"""Run policies on instances of a problem, seed by seed: `simulate`, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

import banditree
from banditree.errors import BanditreeError, Interrupted, InvalidType, InvalidValue, PolicyFailed
from banditree.errors.checks import choice, whole
from banditree.policy.algorithms import ALGORITHMS
from banditree.policy.factories import Factory, On, asks_for_dim, on, policy_class
from banditree.problems.instance import AnyProblem
from banditree.simulation.one_seed import SeedPlan
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Built, Run, Runs
from banditree.simulation.stepper import Schedule
from banditree.simulation.workers import run_seeds
from banditree.stream import Seed, Streams, seed_sequence

__all__ = ["MAX_STEPS", "On", "Streams", "on", "simulate"]

MAX_STEPS = 10**12  # of a run: a day or more, and far below what 64 bits can count
MAX_SEEDS = MAX_CHECKPOINTS = 10**7  # more would not fit into memory
LOG_CHECKPOINTS = 100  # evenly spaced on a log axis, before the first ones that coincide are dropped

Outcomes = dict[str, Run | PolicyFailed]  # by policy


def simulate(
    policies: Mapping[str, Factory] | Iterable[Factory],
    problem: AnyProblem,
    *,
    horizon: int,
    seeds: int | Iterable[int],
    rng: Seed = 0,
    checkpoints: int | str | Iterable[int] = 100,
    replicates: int | Iterable[int] = 1,
    delay: int = 0,
    batch: int = 1,
    common_rewards: bool = False,
    traces: bool = False,
    jobs: int | None = None,
    progress: Progress = None,
) -> Runs:
    """Run every policy for ``horizon`` steps on one instance of ``problem`` per seed.

    The result depends on ``rng``, the seeds, the policies' names and the engine alone: not on jobs, backends,
    checkpoints, or which other policies run. Built-in policies on built-in problems run in the native engine without
    the GIL; others are stepped from Python.

    Parameters
    ----------
    policies
        ``{name: factory}``, or a list of classes, which are called by their names. A factory is a policy class, a
        partial or any callable; it is called as ``factory(tree, rng=rng)`` once per seed.
    problem
        A problem of `banditree.problems`, or any object with ``instance(rng)``.
    horizon
        Steps in a run, the paper's T.
    seeds
        How many seeds to run, or a list of seed indices.
    rng
        An int, a SeedSequence or a Generator, from which every stream of random numbers is derived.
    checkpoints
        How many evenly spaced times to record regret at; "log" for times evenly spaced on a log axis; or a list of
        times. The last time is always the horizon.
    replicates
        How many times to run every policy on the instance of each seed. ``runs.regret`` is then the mean, and
        ``runs.replicates`` has each run, which separates the luck of a run from differences between instances. A list
        of numbers runs those replicates, so that more can be added later; replicate 0 is the run without replicates.
    delay
        Steps until a reward arrives: that of step t is learned at the first batch that starts after step t + ``delay``.
        Rewards that have not arrived at the end are not learned.
    batch
        How many decisions are made at a time from the same beliefs.
    common_rewards
        Draw the rewards of all policies from the same stream (common random numbers): two that choose the same arm at
        the same step of a seed get the same reward, which makes differences between similar policies more precise.
    traces
        Record the plays of every arm and top cluster until each recorded time, and the simple regret: how much lower
        than the best arm's the mean of the arm is that was played most often so far. They are in ``runs.traces``,
        ``runs.cluster_traces`` and, on problems without contexts, ``runs.simple_regret``.
    jobs
        Workers, as in joblib: None is one, -1 all cores.
    progress
        True or False to show a progress bar or not; None shows one on terminals. A function is called with the share
        of the steps done, from 0 to 1.

    Raises
    ------
    errors.Interrupted
        On Ctrl-C; the finished seeds are in its ``.runs``.
    errors.PolicyFailed
        When a policy of your own raises; the runs of the others are in its ``.runs``.
    errors.ProblemFailed
        When a problem of your own raises; the finished seeds are in its ``.runs``.

    Examples
    --------
    >>> import banditree as bt
    >>> problem = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
    >>> runs = bt.simulate([bt.TS, bt.TSC], problem, horizon=200, seeds=3)
    >>> runs.regret["TSC"].shape
    (3, 100)
    """
    factories = name_factories(policies)
    if not callable(getattr(problem, "instance", None)):
        raise InvalidType(f"problem={problem!r} must have instance(rng), as bt.problems.open_bandit() has")
    if progress not in (None, True, False) and not callable(progress):
        raise InvalidType(
            f"progress={progress!r} must be True, False, None for a bar on terminals, or a function of the share done"
        )
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="the number of steps in a run")
    indices = _indices("seed", seeds)
    times = _times(checkpoints, horizon)
    replicate_indices = tuple(_indices("replicate", replicates))
    schedule = Schedule(
        horizon,
        whole("delay", delay, 0, MAX_STEPS, why="the number of steps until a reward arrives"),
        whole("batch", batch, 1, MAX_STEPS, why="the number of decisions made at a time"),
    )
    if traces and len(replicate_indices) > 1:
        raise InvalidValue("traces=True records single runs; use it without replicates, on more seeds")
    need_dim = frozenset(name for name, factory in factories.items() if asks_for_dim(factory))
    plan = SeedPlan(
        factories,
        problem,
        Streams(seed_sequence(rng)),
        schedule,
        times,
        replicate_indices,
        need_dim,
        traces,
        common_rewards,
    )
    outcomes: dict[int, Outcomes] = {}  # by seed
    steps = horizon * len(indices) * len(factories) * len(replicate_indices)
    is_slow = bool(getattr(problem, "slow", False))
    work = run_seeds(indices, plan.draw, plan.run, jobs=jobs, is_slow=is_slow, steps=steps, progress=progress)
    try:
        with closing(work):
            for seed, of_seed in work:
                outcomes[seed] = of_seed
    except KeyboardInterrupt:
        stopped = Interrupted(f"Stopped with {len(outcomes)} of {len(indices)} seeds finished")
        _attach_runs(stopped, plan, indices, outcomes)
        raise stopped from None
    except Exception as error:  # raised by one seed; the finished ones are kept
        _attach_runs(error, plan, indices, outcomes)
        raise
    runs = _gather(plan, plan.factories, indices, outcomes)
    failures = [run for seed in indices for run in outcomes[seed].values() if isinstance(run, PolicyFailed)]
    if failures:
        first, *others = failures
        first.runs, first.finished = runs, _gather_finished(plan, indices, outcomes)
        for other in others[:10]:
            first.add_note(f"Also: {other}")
        raise first
    assert runs is not None
    return runs


def _attach_runs(error: Any, plan: SeedPlan, seeds: list[int], outcomes: Mapping[int, Outcomes]) -> None:
    """Attach the finished seeds to an exception, whatever its class."""
    error.runs = _gather(plan, plan.factories, [seed for seed in seeds if seed in outcomes], outcomes)
    if error.runs is not None:
        error.add_note("The finished seeds are in .runs of this exception.")


def _gather(plan: SeedPlan, names: Iterable[str], seeds: list[int], outcomes: Mapping[int, Outcomes]) -> Runs | None:
    """Collect the policies that finished on all these seeds; None if there are none."""
    finished: dict[str, list[Run]] = {}
    for name in names:
        runs = [run for seed in seeds if isinstance(run := outcomes[seed][name], Run)]
        if runs and len(runs) == len(seeds):
            finished[name] = runs
    if not finished:
        return None
    instance = None
    if getattr(plan.problem, "fixed", False):
        with suppress(BanditreeError):  # a problem that fails only now must not cost the runs
            instance = plan.draw(seeds[0])
    built = {name: how for name in finished if (how := _describe_built_in(plan.factories[name])) is not None}
    made = {
        "rng": _describe_rng(plan.streams.root),
        "delay": plan.schedule.delay,
        "batch": plan.schedule.batch,
        "common_rewards": plan.common_rewards,
        "version": banditree.__version__,
    }
    return Runs.gather(
        finished, seeds=seeds, times=plan.times, problem=plan.problem, instance=instance, built=built, made=made
    )


def _gather_finished(plan: SeedPlan, seeds: list[int], outcomes: Mapping[int, Outcomes]) -> dict[str, Runs]:
    """Return the runs of each policy on the seeds that it finished."""
    runs_by_policy = {}
    for name in plan.factories:
        finished = [seed for seed in seeds if isinstance(outcomes[seed][name], Run)]
        runs = _gather(plan, [name], finished, outcomes)
        if runs is not None:
            runs_by_policy[name] = runs
    return runs_by_policy


def name_factories(policies: Mapping[str, Factory] | Iterable[Factory]) -> dict[str, Factory]:
    """Return ``{name: factory}`` of the policies, after checking both."""
    if isinstance(policies, Mapping):
        factories = dict(policies)
    elif _is_several(policies):
        listed = list(policies)
        factories = {_name_of(factory): factory for factory in listed}
        if len(factories) < len(listed):
            raise InvalidValue(f"two policies have the same name among {[_name_of(f) for f in listed]}; use a mapping")
    else:
        raise InvalidType(f"policies={policies!r} must be a mapping from names to policies, or a list of classes")
    if not factories:
        raise InvalidValue("policies is empty; give at least one")
    for name, factory in factories.items():
        if not isinstance(name, str) or not name or not callable(factory):
            raise InvalidType(
                f"policy {name!r}: {factory!r} must be callable as factory(tree, rng=rng), with a string as name"
            )
    return factories


def _name_of(factory: Factory) -> str:
    if isinstance(factory, On):
        return f"{_name_of(factory.factory)} on {factory.tree}"
    if isinstance(factory, partial):
        return _name_of(factory.func)
    name = getattr(factory, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidType(f"{factory!r} has no name; use a mapping from names to policies")
    return str(name)


def _describe_rng(root: np.random.SeedSequence) -> int | str:
    """Return the seed of a simulation as the user may give it again, or as a text where it is not one number."""
    if isinstance(root.entropy, int) and not root.spawn_key:
        return root.entropy
    return f"SeedSequence({root.entropy}, spawn_key={root.spawn_key})"


def _describe_built_in(factory: Factory) -> Built | None:
    """Return the class of a built-in policy and those of its parameters that are numbers or texts; None for others."""
    kind, options = policy_class(factory)
    if kind is None or kind not in ALGORITHMS.values():
        return None
    return kind.__name__, {name: value for name, value in options.items() if isinstance(value, int | float | str)}


def _indices(what: str, given: int | Iterable[int]) -> list[int]:
    """Return the indices of seeds or replicates, given as a number of them or as a list."""
    if _is_several(given):
        indices = [whole(what, number, 0) for number in given]
        if not indices or len(set(indices)) < len(indices):
            raise InvalidValue(f"{what}s={indices} must name at least one {what}, and none twice")
        return indices
    return list(range(whole(f"{what}s", given, 1, MAX_SEEDS, why="how many to run")))


def _times(checkpoints: int | str | Iterable[int], horizon: int) -> NDArray[np.int64]:
    """Return the times at which regret is recorded; the last is always the horizon."""
    if isinstance(checkpoints, str):
        choice("checkpoints", checkpoints, ("log",))
        return np.unique(np.rint(np.geomspace(1, horizon, LOG_CHECKPOINTS)).astype(np.int64))
    if _is_several(checkpoints):
        times = [whole("checkpoint", time, 1, horizon) for time in checkpoints]
        return np.unique(np.array([*times, horizon], np.int64))
    n = min(whole("checkpoints", checkpoints, 1), horizon)
    whole("checkpoints", n, 1, MAX_CHECKPOINTS, why="how often regret is recorded")
    return np.unique(np.ceil(horizon * np.arange(1, n + 1) / n).astype(np.int64))


def _is_several(given: object) -> TypeGuard[Iterable[Any]]:
    """Say whether this is an iterable of values, not a single one or a text."""
    is_single = isinstance(given, str | bytes) or (isinstance(given, np.ndarray) and given.ndim == 0)
    return isinstance(given, Iterable) and not is_single
