"""Many runs: policies meet instances of a problem, seed by seed, natively where they can."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree._check import whole
from banditree._seeds import Monitor, over_seeds
from banditree.algorithms import ALGORITHMS
from banditree.errors import BanditreeError, Interrupted, InvalidType, InvalidValue, PolicyFailed, UnknownArm
from banditree.policy import Policy
from banditree.problems.instance import Instance
from banditree.problems.rewards import Bernoulli, Bounded, Gaussian, Uniform
from banditree.runs import Run, Runs
from banditree.stream import generator, native, native_stream, seed_sequence
from banditree.tree import Tree

Factory = Callable[..., Any]

LONGEST = 10**12  # steps of a run: a day or more, and well inside what 64 bits count
INSTANCE, CONTEXTS, REWARDS, POLICY = range(4)  # what a random stream is for


@dataclass(frozen=True)
class On:
    """A factory that builds on another of the instance's trees."""

    tree: str
    factory: Factory

    def __call__(self, tree: Any, *, rng: Any) -> Any:
        return self.factory(tree, rng=rng)


def on(tree: str, factory: Factory) -> On:
    """A policy for `simulate`, built on the instance's tree of this name.

    >>> import banditree as bt
    >>> policies = {"TSC": bt.TSC, "HTS": bt.on("ward", bt.HTS)}
    """
    return On(tree, factory)


@dataclass(frozen=True)
class Streams:
    """Where all randomness of a simulation comes from: one seed, and a key for each use. Nothing depends on order."""

    root: np.random.SeedSequence

    def seed(self, *key: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.root.entropy, spawn_key=(*self.root.spawn_key, *key))

    def instance(self, seed: int) -> np.random.SeedSequence:
        return self.seed(seed, INSTANCE)

    def contexts(self, seed: int, *, own: bool = False) -> Any:
        """``own`` is for an instance of the user's own, which expects a NumPy Generator."""
        return _stream(self.seed(seed, CONTEXTS), own)

    def rewards(self, seed: int, name: str, *, own: bool = False) -> Any:
        return _stream(self.seed(seed, REWARDS, zlib.crc32(name.encode())), own)

    def policy(self, seed: int, name: str) -> np.random.SeedSequence:
        return self.seed(seed, POLICY, zlib.crc32(name.encode()))


def _stream(seed: np.random.SeedSequence, own: bool) -> Any:
    return generator(seed) if own or native is None else native_stream(seed)


def simulate(
    policies: Mapping[str, Factory] | Iterable[Factory],
    problem: Any,
    *,
    horizon: int,
    seeds: int | Iterable[int],
    rng: Any = 0,
    checkpoints: int | Iterable[int] = 100,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Runs:
    """Run every policy for ``horizon`` steps on an instance of ``problem`` a seed.

    ``policies`` maps names to classes, partials or any callable, called as ``factory(tree, rng=rng)`` once a seed; a
    list of classes takes their names. ``seeds`` is a number or a list of seed indices. The result depends on ``rng``
    and on the names alone: not on jobs, backends, checkpoints, or what else runs. Built-in policies on built-in
    problems run in the native engine without the GIL; others are stepped from Python.

    ``jobs`` is as in joblib (None: one; -1: all cores). A bar shows on terminals unless ``progress`` is False. On
    Ctrl-C, ``errors.Interrupted`` has the finished seeds in ``.runs``; when a policy of your own raises,
    ``errors.PolicyFailed`` has the runs of the others.

    >>> import banditree as bt
    >>> problem = bt.problems.strong_dominance(n_arms=20, n_clusters=4, n_best=4)
    >>> runs = bt.simulate([bt.TS, bt.TSC], problem, horizon=200, seeds=3)
    >>> runs.regret["TSC"].shape
    (3, 100)
    """
    factories = _named(policies)
    if not callable(getattr(problem, "instance", None)):
        raise InvalidType(f"problem={problem!r} must have instance(rng), as bt.problems.open_bandit() has")
    horizon = whole("horizon", horizon, 1, LONGEST, why="how many steps a run has")
    indices = _seed_indices(seeds)
    times = _times(checkpoints, horizon)
    plan = Plan(factories, problem, Streams(seed_sequence(rng)), horizon, times)
    results: dict[int, dict[str, Run | PolicyFailed]] = {}
    steps = horizon * len(indices) * len(factories)
    slow = bool(getattr(problem, "slow", False))
    work = over_seeds(indices, plan.draw, plan.run, jobs=jobs, slow=slow, steps=steps, progress=progress)
    try:
        with closing(work):
            for seed, found in work:
                results[seed] = found
    except KeyboardInterrupt:
        stopped = Interrupted(f"stopped with {len(results)} of {len(indices)} seeds finished")
        stopped.runs = _gathered(plan, [seed for seed in indices if seed in results], results)
        stopped.add_note("The finished seeds are in .runs of this exception.")
        raise stopped from None
    runs = _gathered(plan, indices, results)
    failures = [run for seed in indices for run in results[seed].values() if isinstance(run, PolicyFailed)]
    if failures:
        failures[0].runs = runs
        raise failures[0]
    assert runs is not None
    return runs


def _gathered(plan: Plan, seeds: list[int], results: dict[int, dict[str, Run | PolicyFailed]]) -> Runs | None:
    """The policies that finished on all these seeds, None where there is nothing."""
    found: dict[str, list[Run]] = {}
    for name in plan.factories:
        runs = [run for seed in seeds if isinstance(run := results[seed][name], Run)]
        if runs and len(runs) == len(seeds):
            found[name] = runs
    return Runs.gather(found, seeds=seeds, times=plan.times, problem=plan.problem) if found else None


@dataclass(frozen=True)
class Plan:
    """All that a worker needs for one seed, on whatever machine."""

    factories: dict[str, Factory]
    problem: Any
    streams: Streams
    horizon: int
    times: NDArray[np.int64]

    def draw(self, seed: int) -> Any:
        return self.problem.instance(self.streams.instance(seed))

    def run(self, seed: int, instance: Any, monitor: Monitor) -> tuple[int, dict[str, Run | PolicyFailed]]:
        """Every policy on this instance: those that can in the native engine together, the others one by one."""
        found: dict[str, Run | PolicyFailed] = {}
        natively: dict[str, Policy] = {}
        for name, factory in self.factories.items():
            policy = self._built(name, factory, seed, instance)
            if isinstance(policy, PolicyFailed):
                found[name] = policy
            elif _runs_natively(policy, instance):
                natively[name] = policy
            else:
                found[name] = self._step(name, policy, seed, instance, monitor)
        if natively:
            found.update(self._run_natively(natively, seed, instance, monitor))
        return seed, found

    def _built(self, name: str, factory: Factory, seed: int, instance: Any) -> Any:
        tree = instance.tree
        if isinstance(factory, On):
            if factory.tree not in instance.trees:
                known = ", ".join(instance.trees)
                raise InvalidValue(f"policy {name!r} (seed {seed}): no tree {factory.tree!r}; there are {known}")
            tree = instance.trees[factory.tree]
        try:
            policy = factory(tree, rng=self.streams.policy(seed, name))
        except BanditreeError as error:
            raise type(error)(f"policy {name!r} (seed {seed}): {error}") from error
        except Exception as error:
            return _failed(name, seed, "could not be built", error)
        _check_fit(name, seed, policy, instance)
        return policy

    def _run_natively(
        self, policies: dict[str, Policy], seed: int, instance: Instance, monitor: Monitor
    ) -> dict[str, Run | PolicyFailed]:
        assert native is not None
        truth = instance.means if instance.theta is None else instance.theta
        assert truth is not None
        parameter = getattr(instance.rewards, "concentration", getattr(instance.rewards, "sd", 0.0))
        players, runs = [], []
        for name, policy in policies.items():
            run = Run.empty("native", len(self.times), len(instance.arms))
            same = policy.tree is instance.tree or policy.tree.arms == instance.tree.arms
            places = None if same else instance.tree.positions(policy.tree.arms).astype(np.int32)
            players.append((policy.walk, places, self.streams.rewards(seed, name), run.regret, run.plays))
            runs.append(run)
        before = [policy.walk.evaluations for policy in policies.values()]
        with ExitStack() as held:  # the engine steps these policies without the GIL: other threads wait
            for policy in policies.values():
                held.enter_context(policy.held())
            seconds = native.run(
                truth=np.ascontiguousarray(truth),
                dim=instance.dim or 0,
                rewards=type(instance.rewards).__name__,
                parameter=parameter,
                contexts=instance.contexts or "",
                context_stream=self.streams.contexts(seed),
                horizon=self.horizon,
                times=self.times,
                players=players,
                monitor=monitor,
            )
        _raise_if_stopped(monitor)
        found: dict[str, Run | PolicyFailed] = {}
        for name, run, taken, evaluations in zip(policies, runs, seconds, before, strict=True):
            if taken < 0:
                what = "met scores that are not numbers; scale the contexts and the coefficients"
                found[name] = _failed(name, seed, what, None)
                continue
            run.seconds = taken
            run.evaluations = (policies[name].walk.evaluations - evaluations) / self.horizon
            self._close(run, instance.tree)
            found[name] = run
        return found

    def _step(self, name: str, policy: Any, seed: int, instance: Any, monitor: Monitor) -> Run | PolicyFailed:
        """A run from Python. Twin of ``native/simulate.hpp``."""
        run = Run.empty("readable", len(self.times), instance.tree.n_arms)
        own = not _is_built_in(instance)
        contexts, rewards = self.streams.contexts(seed, own=own), self.streams.rewards(seed, name, own=own)
        walk = policy.walk if isinstance(policy, Policy) else None
        before = walk.evaluations if walk is not None else 0
        started, regret, at = time.perf_counter(), 0.0, 0
        for t in range(1, self.horizon + 1):
            _raise_if_stopped(monitor)
            x = instance.context(contexts)
            known = {} if x is None else {"context": x}
            try:
                arm = policy.choose(**known)
            except Exception as error:
                return _failed(name, seed, f"raised at step {t}", error)
            try:
                place = instance.tree.position(arm)
            except UnknownArm as error:
                return _failed(name, seed, f"chose an arm that is not there at step {t}", error)
            reward = instance.reward(arm, rewards, **known)
            try:
                policy.update(arm, reward, **known)
            except Exception as error:
                return _failed(name, seed, f"raised at step {t}", error)
            regret += instance.best(**known) - instance.expected(arm, **known)
            run.plays[place] += 1
            if t == self.times[at]:
                run.regret[at], at = regret, at + 1
            if t % 64 == 0 or t == self.horizon:
                monitor.add(t % 64 or 64)
        run.seconds = time.perf_counter() - started
        run.evaluations = (walk.evaluations - before) / self.horizon if walk is not None else np.nan
        self._close(run, instance.tree)
        return run

    def _close(self, run: Run, tree: Tree) -> None:
        """Keep what `Runs` has a place for: plays an arm only where all seeds have the same arms."""
        run.by_cluster(tree)
        if not getattr(self.problem, "fixed", False):
            run.plays = run.plays[:0].copy()


def _runs_natively(policy: Any, instance: Any) -> bool:
    """Whether nothing of the user's own is in the loop."""
    built_in = type(policy) is Policy or type(policy) in ALGORITHMS.values()
    return built_in and _is_built_in(instance) and policy.engine == "native"


def _is_built_in(instance: Any) -> bool:
    """Whether rewards and contexts are drawn by code of ours."""
    return type(instance) is Instance and type(instance.rewards) in (Bernoulli, Bounded, Gaussian, Uniform)


def _check_fit(name: str, seed: int, policy: Any, instance: Any) -> None:
    """Find out before the run whether a policy of ours can play this instance."""
    if not isinstance(policy, Policy) or not isinstance(instance, Instance):
        return
    who = f"policy {name!r} (seed {seed})"
    if policy.dim != instance.dim:
        have, need = (_dimension(dim) for dim in (instance.dim, policy.dim))
        raise InvalidValue(f"{who} needs {need}, the problem has {have}")
    strangers = [arm for arm in policy.tree.arms if arm not in instance.tree]
    if strangers:
        raise UnknownArm(f"{who} has arm {strangers[0]!r}, which the instance does not")
    low, high = policy.support
    if instance.rewards.support[0] < low or instance.rewards.support[1] > high:
        raise InvalidValue(
            f"{who} believes in rewards in [{low:g}, {high:g}], {instance.rewards} leaves that; {policy.support_hint}"
        )


def _dimension(dim: int | None) -> str:
    return "no contexts" if dim is None else f"contexts of {dim} numbers"


def _failed(name: str, seed: int, what: str, error: BaseException | None) -> PolicyFailed:
    cause = "" if error is None else f": {type(error).__name__}: {error}"
    failure = PolicyFailed(f"policy {name!r}, seed {seed}: {what}{cause}")
    failure.__cause__ = error
    return failure


def _raise_if_stopped(monitor: Monitor) -> None:
    if monitor.stop:
        raise KeyboardInterrupt


def _named(policies: Mapping[str, Factory] | Iterable[Factory]) -> dict[str, Factory]:
    if isinstance(policies, Mapping):
        found = dict(policies)
    elif isinstance(policies, Iterable):
        listed = list(policies)
        found = {_name_of(factory): factory for factory in listed}
        if len(found) < len(listed):
            raise InvalidValue(f"two policies have the same name among {[_name_of(f) for f in listed]}; use a mapping")
    else:
        raise InvalidType(f"policies={policies!r} must be a mapping from names to policies, or a list of classes")
    if not found:
        raise InvalidValue("policies is empty; give at least one")
    for name, factory in found.items():
        if not isinstance(name, str) or not callable(factory):
            raise InvalidType(
                f"policy {name!r}: {factory!r} must be callable as factory(tree, rng=rng), with a string as name"
            )
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


def _seed_indices(seeds: int | Iterable[int]) -> list[int]:
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        indices = [whole("seed", seed, 0) for seed in seeds]
        if not indices or len(set(indices)) < len(indices):
            raise InvalidValue(f"seeds={indices} must be at least one seed, and no seed twice")
        return indices
    return list(range(whole("seeds", seeds, 1, why="how many")))


def _times(checkpoints: int | Iterable[int], horizon: int) -> NDArray[np.int64]:
    """When regret is written down: evenly spaced or as given, the last being the horizon."""
    if isinstance(checkpoints, Iterable):
        given = [whole("checkpoint", at, 1, horizon) for at in checkpoints]
        return np.unique(np.array([*given, horizon], np.int64))
    n = whole("checkpoints", checkpoints, 1)
    return np.unique(np.ceil(horizon * np.arange(1, n + 1) / n).astype(np.int64))
