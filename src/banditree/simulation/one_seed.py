"""What is done for one seed, on whatever machine: draw the instance, build every policy, run them all."""

from __future__ import annotations

import inspect
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BanditreeError, InvalidType, InvalidValue, PolicyFailed, UnknownArm
from banditree.policy import Policy
from banditree.policy.algorithms import ALGORITHMS
from banditree.problems.drifting import DriftingInstance
from banditree.problems.instance import Instance
from banditree.problems.problem import Problem
from banditree.problems.rewards import Bernoulli, Bounded, Gaussian, Uniform
from banditree.simulation.checked import Met, World, copied, draw
from banditree.simulation.run import Run
from banditree.simulation.stepper import Schedule, failed, raise_if_stopped, step_through
from banditree.simulation.workers import Monitor
from banditree.stream import generator, native, native_stream
from banditree.tree import Tree

Factory = Callable[..., Any]
Player = tuple[str, int]  # a policy's name, and which of its runs on the same instance

INSTANCE, CONTEXTS, REWARDS, POLICY = range(4)  # what a random stream is for


@dataclass(frozen=True)
class On:
    """A factory that is to build on another of the instance's trees."""

    tree: str
    factory: Factory

    def __call__(self, tree: Any, *, rng: Any) -> Any:
        raise InvalidType(f"bt.on({self.tree!r}, ...) goes around everything else: bt.on({self.tree!r}, partial(...))")


def on(tree: str, factory: Factory) -> On:
    """A policy for `simulate`, built on the instance's tree of this name.

    >>> import banditree as bt
    >>> policies = {"TSC": bt.TSC, "HTS": bt.on("ward", bt.HTS)}
    """
    if isinstance(factory, On) or not callable(factory):
        raise InvalidType(f"bt.on({tree!r}, {factory!r:.60}): give a policy class, or what builds a policy")
    return On(tree, factory)


def asks_for_dim(factory: Factory) -> bool:
    """Whether a factory has a parameter ``dim`` that was not given: the length of the contexts, as LinTS has.

    >>> import banditree as bt
    >>> from functools import partial
    >>> asks_for_dim(bt.LinTS), asks_for_dim(bt.TS), asks_for_dim(partial(bt.LinTS, dim=5))
    (True, False, False)
    """
    if isinstance(factory, On):
        return asks_for_dim(factory.factory)
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # as of some functions that are not written in Python
        return False
    known = getattr(factory, "keywords", {})  # of a partial
    if "prior" in known and "prior" in parameters:  # which has a dim of its own
        return False
    return "dim" in parameters and parameters["dim"].default in (None, inspect.Parameter.empty)


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

    def rewards(self, seed: int, name: str, replicate: int = 0, *, own: bool = False) -> Any:
        return _stream(self.seed(seed, REWARDS, *_key(name, replicate)), own)

    def policy(self, seed: int, name: str, replicate: int = 0) -> np.random.SeedSequence:
        return self.seed(seed, POLICY, *_key(name, replicate))


def key_of(name: str) -> int:
    """A policy's name as a part of the keys of its streams."""
    return zlib.crc32(name.encode())


def _key(name: str, replicate: int) -> tuple[int, ...]:
    """The first run of a policy draws what it would draw without replicates."""
    return (key_of(name), replicate) if replicate else (key_of(name),)


def _stream(seed: np.random.SeedSequence, own: bool) -> Any:
    return generator(seed) if own or native is None else native_stream(seed)


@dataclass(frozen=True)
class Plan:
    """All that a worker needs for one seed, on whatever machine."""

    factories: dict[str, Factory]
    problem: Any
    streams: Streams
    schedule: Schedule
    times: NDArray[np.int64]
    replicates: tuple[int, ...] = (0,)  # runs of each policy on the same instance, by number
    asking: frozenset[str] = frozenset()  # the policies whose factories are told the length of the contexts
    met: Met = field(default_factory=Met, repr=False)

    def draw(self, seed: int) -> Any:
        if type(self.problem) is Problem and self.problem.fixed:  # whatever the seed
            return self.problem.instance(0)
        return draw(self.problem, self.streams.instance(seed), seed)

    def run(self, seed: int, instance: Any, monitor: Monitor) -> tuple[int, dict[str, Run | PolicyFailed]]:
        """Every policy on this instance: those that can in the native engine together, the others one by one."""
        found: dict[Player, Run | PolicyFailed] = {}
        natively: dict[Player, Policy] = {}
        players = [(name, replicate) for name in self.factories for replicate in self.replicates]
        own = not _is_built_in(instance)
        for player in players:
            here = self._fresh(seed, instance) if own else instance
            policy = self._built(player, seed, here)
            if isinstance(policy, PolicyFailed):
                found[player] = policy
            elif _runs_natively(policy, instance):
                natively[player] = policy
            else:
                here = here if own else self._fresh(seed, instance)
                found[player] = self._step(player, policy, seed, here, monitor)
        if natively:
            found.update(self._run_natively(natively, seed, instance, monitor))
        return seed, {name: self._together(name, found) for name in self.factories}

    def _fresh(self, seed: int, instance: Any) -> Any:
        """An instance that no policy has met: one of the user's own, or one that drifts, may change as it is played."""
        if type(instance) is Instance and _is_built_in(instance):  # never changes
            return instance
        again = self.draw(seed)
        return again if again is not instance else copied(instance, self.problem, seed)

    def _together(self, name: str, found: Mapping[Player, Run | PolicyFailed]) -> Run | PolicyFailed:
        """All runs of a policy as one, or the first failure among them."""
        runs: list[Run] = []
        for replicate in self.replicates:
            run = found[name, replicate]
            if isinstance(run, PolicyFailed):
                return run
            runs.append(run)
        return runs[0] if len(runs) == 1 else Run.mean(runs)

    def _built(self, player: Player, seed: int, instance: Any) -> Any:
        name, replicate = player
        factory = self.factories[name]
        tree, who = instance.tree, f"policy {name!r} (seed {seed})"
        if isinstance(factory, On):
            trees = getattr(instance, "trees", {})
            if factory.tree not in trees:
                raise InvalidValue(f"{who}: no tree {factory.tree!r}; there are {', '.join(trees) or 'none by name'}")
            tree, factory = trees[factory.tree], factory.factory
        try:
            policy = factory(tree, rng=self.streams.policy(seed, name, replicate), **self._dim(name, instance))
        except BanditreeError as error:
            raise type(error)(f"{who}: {error}") from error
        except Exception as error:
            return failed(name, seed, "could not be built", error)
        if not self.met.first_time(policy):
            raise InvalidValue(
                f"{who} is an object that has played already; build a new one in each call, as bt.load does"
            )
        _check_fit(who, policy, instance)
        return policy

    def _dim(self, name: str, instance: Any) -> dict[str, int]:
        """The length of the contexts as a keyword, for a factory that asks for it."""
        dim = getattr(instance, "dim", None)
        return {"dim": dim} if dim is not None and name in self.asking else {}

    def _run_natively(
        self, policies: dict[Player, Policy], seed: int, instance: Instance | DriftingInstance, monitor: Monitor
    ) -> dict[Player, Run | PolicyFailed]:
        assert native is not None
        truth = instance.means if instance.theta is None else instance.theta
        assert truth is not None
        parameter = getattr(instance.rewards, "concentration", getattr(instance.rewards, "sd", 0.0))
        changes: dict[str, Any] = {}
        if isinstance(instance, DriftingInstance):
            changes = {"every": instance.every, "next_truth": instance.truth}
        players, runs = [], []
        for player, policy in policies.items():
            run = Run.empty("native", len(self.times), len(instance.arms))
            same = _same_arms(policy.tree, instance.tree)
            places = None if same else instance.tree.positions(policy.tree.arms).astype(np.int32)
            players.append((policy.walk, places, self.streams.rewards(seed, *player), run.regret, run.plays))
            runs.append(run)
        before = [policy.walk.evaluations for policy in policies.values()]
        with ExitStack() as held:  # the engine steps these policies without the GIL: other threads wait
            for policy in policies.values():
                held.enter_context(policy.held())
            seconds = native.run(
                truth=np.require(truth, requirements=["C", "A"]),
                dim=instance.dim or 0,
                rewards=type(instance.rewards).__name__,
                parameter=parameter,
                contexts=instance.contexts or "",
                context_stream=None if instance.dim is None else self.streams.contexts(seed),
                horizon=self.schedule.horizon,
                times=self.times,
                players=players,
                monitor=monitor,
                delay=self.schedule.delay,
                batch=self.schedule.batch,
                **changes,
            )
        raise_if_stopped(monitor)
        found: dict[Player, Run | PolicyFailed] = {}
        for player, run, taken, evaluations in zip(policies, runs, seconds, before, strict=True):
            if taken < 0:
                large = "rewards" if instance.dim is None else "contexts and the coefficients"
                what = f"met scores that are not numbers; scale the {large}"
                found[player] = failed(player[0], seed, what, None)
                continue
            run.seconds = taken
            run.evaluations = (policies[player].walk.evaluations - evaluations) / self.schedule.horizon
            self._close(run, instance.tree)
            found[player] = run
        return found

    def _step(self, player: Player, policy: Any, seed: int, instance: Any, monitor: Monitor) -> Run | PolicyFailed:
        """A run from Python."""
        run = Run.empty("readable", len(self.times), instance.tree.n_arms)
        own = not _is_built_in(instance)
        name, replicate = player
        contexts, rewards = self.streams.contexts(seed, own=own), self.streams.rewards(seed, name, replicate, own=own)
        walk = policy.walk if isinstance(policy, Policy) else None
        before = walk.evaluations if walk is not None else 0
        world = World(instance, self.problem, seed)
        started = time.perf_counter()
        try:
            step_through(run, name, policy, world, contexts, rewards, self.schedule, self.times, monitor)
        except PolicyFailed as failure:
            return failure
        run.seconds = time.perf_counter() - started
        run.evaluations = (walk.evaluations - before) / self.schedule.horizon if walk is not None else np.nan
        self._close(run, instance.tree)
        return run

    def _close(self, run: Run, tree: Tree) -> None:
        """Keep what `Runs` has a place for: plays an arm only where all seeds have the same arms, and one run each."""
        run.by_cluster(tree)
        if not getattr(self.problem, "fixed", False) or len(self.replicates) > 1:
            run.plays = run.plays[:0].copy()


def _runs_natively(policy: Any, instance: Any) -> bool:
    """Whether nothing of the user's own is in the loop."""
    built_in = type(policy) is Policy or type(policy) in ALGORITHMS.values()
    if not built_in or {"choose", "update"} & vars(policy).keys():  # as patched objects have
        return False
    return _is_built_in(instance) and bool(policy.engine == "native")


def _is_built_in(instance: Any) -> bool:
    """Whether rewards and contexts are drawn by code of ours."""
    instance = instance.first if type(instance) is DriftingInstance else instance
    return type(instance) is Instance and type(instance.rewards) in (Bernoulli, Bounded, Gaussian, Uniform)


def _check_fit(who: str, policy: Any, instance: Any) -> None:
    """Find out before the run whether a policy of ours can play this instance."""
    if not isinstance(policy, Policy) or not isinstance(instance, Instance | DriftingInstance):
        return
    if policy.dim is not None and policy.dim != instance.dim:
        have, need = (_dimension(dim) for dim in (instance.dim, policy.dim))
        raise InvalidValue(f"{who} needs {need}, the problem has {have}")
    if not _same_arms(policy.tree, instance.tree):
        strangers = [arm for arm in policy.tree.arms if arm not in instance.tree]
        if strangers:
            raise UnknownArm(f"{who} has arm {strangers[0]!r}, which the instance does not")
    low, high = policy.support
    if instance.rewards.support[0] < low or instance.rewards.support[1] > high:
        raise InvalidValue(
            f"{who} believes in rewards in [{low:g}, {high:g}], {instance.rewards} leaves that; {policy.support_hint}"
        )


def _same_arms(one: Tree, two: Tree) -> bool:
    return one is two or one.arms == two.arms


def _dimension(dim: int | None) -> str:
    return "no contexts" if dim is None else f"contexts of {dim} numbers"
