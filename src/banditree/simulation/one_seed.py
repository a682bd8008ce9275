"""Run all policies for one seed: draw the instance, build each policy on its tree, and run it, natively if it can."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeGuard
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BanditreeError, InvalidValue, PolicyFailed, UnknownArm
from banditree.policy import Policy
from banditree.policy.factories import Factory, On, runs_natively
from banditree.policy.state import hold, state_of
from banditree.problems.drifting import Drifting, DriftingInstance
from banditree.problems.instance import AnyInstance, AnyProblem, Instance, Problem
from banditree.problems.rewards import Bernoulli, Bounded, Clicks, Gaussian, Uniform
from banditree.simulation.runs import Run
from banditree.simulation.stepper import (
    CheckedInstance,
    Schedule,
    copy_instance,
    draw_instance,
    policy_failure,
    raise_if_stopped,
    step_through,
)
from banditree.simulation.workers import Monitor
from banditree.stream import Rng, Streams, generator, native

Player = tuple[str, int]  # a policy's name, and the number of the replicate
Played = Run | PolicyFailed


class PlayedPolicies:
    """Remembers which policies have played, since each may play once. Keeps none alive; a pickled copy is empty."""

    def __init__(self) -> None:
        self._played: WeakValueDictionary[int, object] = WeakValueDictionary()
        self._lock = Lock()

    def first_time(self, policy: object) -> bool:
        """Say whether it has not played yet: always True for an object that allows no weak reference."""
        with self._lock, suppress(TypeError):
            if self._played.get(id(policy)) is policy:
                return False
            self._played[id(policy)] = policy
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return PlayedPolicies, ()


@dataclass(frozen=True)
class SeedPlan:
    """Everything that a worker needs to run one seed, on whatever machine."""

    factories: dict[str, Factory]
    problem: AnyProblem
    streams: Streams
    schedule: Schedule
    times: NDArray[np.int64]
    replicates: tuple[int, ...] = (0,)  # the numbers of each policy's runs on the same instance
    need_dim: frozenset[str] = frozenset()  # the policies whose factories are given the length of the contexts
    traces: bool = False  # whether to keep the plays until each time
    common_rewards: bool = False  # whether all policies draw rewards from the same stream
    played: PlayedPolicies = field(default_factory=PlayedPolicies, repr=False)

    def draw(self, seed: int) -> AnyInstance:
        if type(self.problem) is Problem and self.problem.fixed:  # the same for every seed
            return self.problem.instance(0)
        rng = self.streams.instance(seed)
        return draw_instance(self.problem, rng if isinstance(self.problem, Drifting) else generator(rng), seed)

    def run(self, seed: int, instance: AnyInstance, monitor: Monitor) -> tuple[int, dict[str, Played]]:
        """Run every policy on this instance: those that can run natively together, the others one by one."""
        outcomes: dict[Player, Played] = {}
        native_policies: dict[Player, Policy] = {}
        is_built_in = _is_built_in(instance)
        for player in ((name, replicate) for name in self.factories for replicate in self.replicates):
            own_instance = instance if is_built_in else self._unplayed_instance(seed, instance)
            policy = self._build(player, seed, own_instance)
            if isinstance(policy, PolicyFailed):
                outcomes[player] = policy
            elif is_built_in and runs_natively(policy):
                native_policies[player] = policy
            else:
                own_instance = self._unplayed_instance(seed, instance) if is_built_in else own_instance
                outcomes[player] = self._step(player, policy, seed, own_instance, monitor)
        if native_policies and _is_built_in(instance):
            outcomes.update(self._run_natively(native_policies, seed, instance, monitor))
        return seed, {name: self._average_replicates(name, outcomes) for name in self.factories}

    def _unplayed_instance(self, seed: int, instance: AnyInstance) -> AnyInstance:
        """Return an instance that no policy has played: drifting and user-written ones may change while played."""
        if type(instance) is Instance and _is_built_in(instance):  # never changes
            return instance
        again = self.draw(seed)
        return again if again is not instance else copy_instance(instance, self.problem, seed)

    def _average_replicates(self, name: str, outcomes: Mapping[Player, Played]) -> Played:
        """Average the replicates of a policy, or return the first failure among them."""
        runs: list[Run] = []
        for replicate in self.replicates:
            run = outcomes[name, replicate]
            if isinstance(run, PolicyFailed):
                return run
            runs.append(run)
        return runs[0] if len(runs) == 1 else Run.mean(runs)

    def _build(self, player: Player, seed: int, instance: AnyInstance) -> Any:
        """Build a policy and check that it fits the instance; return the failure where the factory raises."""
        name, replicate = player
        factory = self.factories[name]
        tree, who = instance.tree, f"policy {name!r} (seed {seed})"
        if isinstance(factory, On):
            trees = getattr(instance, "trees", {})
            if factory.tree not in trees:
                raise InvalidValue(f"{who}: no tree {factory.tree!r}; there are {', '.join(trees) or 'none by name'}")
            tree, factory = trees[factory.tree], factory.factory
        dim = getattr(instance, "dim", None)
        options = {"dim": dim} if dim is not None and name in self.need_dim else {}
        try:
            policy = factory(tree, rng=self.streams.policy(seed, name, replicate), **options)
        except BanditreeError as error:
            raise type(error)(f"{who}: {error}") from error
        except Exception as error:
            return policy_failure(name, seed, "could not be built", error)
        if not self.played.first_time(policy):
            raise InvalidValue(
                f"{who} is an object that has played already; build a new one in each call, as bt.load does"
            )
        _check_fit(who, policy, instance)
        return policy

    def _run_natively(
        self, policies: dict[Player, Policy], seed: int, instance: Instance | DriftingInstance, monitor: Monitor
    ) -> dict[Player, Played]:
        assert native is not None
        truth = instance.means if instance.theta is None else instance.theta
        assert truth is not None
        parameter = getattr(instance.rewards, "concentration", getattr(instance.rewards, "sd", 0.0))
        changes: dict[str, object] = {}
        if isinstance(instance, DriftingInstance):
            changes = {"every": instance.every, "next_truth": instance.truth}
        players, runs = [], []
        for player, policy in policies.items():
            run = Run.empty("native", len(self.times), len(instance.arms), traced=self.traces)
            has_same_arms = policy.tree.arms == instance.tree.arms
            positions = None if has_same_arms else instance.tree.positions(policy.tree.arms).astype(np.int32)
            rewards = self._rewards(seed, player)
            players.append((state_of(policy).walk.native, positions, rewards, run.regret, run.plays, run.trace))
            runs.append(run)
        before = [policy.evaluations for policy in policies.values()]
        with ExitStack() as holds:  # the engine steps these policies without the GIL: other threads wait
            for policy in policies.values():
                holds.enter_context(hold(policy))
            seconds = native.run(
                truth=np.require(truth, requirements=["C", "A"]),
                dim=0 if instance.theta is None else instance.theta.shape[1],
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
        outcomes: dict[Player, Played] = {}
        for player, run, taken, evaluations in zip(policies, runs, seconds, before, strict=True):
            if taken < 0:
                large = "rewards" if instance.dim is None else "contexts and the coefficients"
                outcomes[player] = policy_failure(
                    player[0], seed, f"computed scores that are not numbers; scale the {large}", None
                )
            else:
                outcomes[player] = self._finish(run, instance, taken, policies[player].evaluations - evaluations)
        return outcomes

    def _step(self, player: Player, policy: Any, seed: int, instance: AnyInstance, monitor: Monitor) -> Played:
        """Run a policy from Python."""
        run = Run.empty("readable", len(self.times), instance.tree.n_arms, traced=self.traces)
        is_custom = not _is_built_in(instance)
        contexts = self.streams.contexts(seed, custom=is_custom)
        rewards = self._rewards(seed, player, custom=is_custom)
        before = policy.evaluations if isinstance(policy, Policy) else np.nan
        checked = CheckedInstance(instance, self.problem, seed)
        started = time.perf_counter()
        try:
            step_through(run, player[0], policy, checked, contexts, rewards, self.schedule, self.times, monitor)
        except PolicyFailed as failure:
            return failure
        seconds = time.perf_counter() - started
        evaluations = policy.evaluations - before if isinstance(policy, Policy) else np.nan
        return self._finish(run, instance, seconds, evaluations)

    def _rewards(self, seed: int, player: Player, *, custom: bool = False) -> Rng:
        name, replicate = player
        return self.streams.rewards(seed, "" if self.common_rewards else name, replicate, custom=custom)

    def _finish(self, run: Run, instance: AnyInstance, seconds: float, evaluations: float) -> Run:
        """Complete a run; its plays per arm are kept only if all seeds have the same arms, and one run each."""
        run.seconds, run.evaluations = seconds, evaluations / self.schedule.horizon
        nodes = instance.tree.nodes
        run.clusters = nodes.sums_of_top(run.plays)
        if run.trace is not None:
            sums = [nodes.sums_of_top(plays) for plays in run.trace]
            run.cluster_trace = {name: np.array([each[name] for each in sums], np.int64) for name in run.clusters}
            if type(instance) is Instance and instance.means is not None:
                run.simple_regret = instance.best() - np.asarray(instance.means)[run.trace.argmax(axis=1)]
        if not getattr(self.problem, "fixed", False) or len(self.replicates) > 1:
            run.plays = run.plays[:0].copy()
        return run


def _is_built_in(instance: object) -> TypeGuard[Instance | DriftingInstance]:
    """Say whether rewards and contexts are drawn by code of this package."""
    instance = instance.first if type(instance) is DriftingInstance else instance
    return type(instance) is Instance and type(instance.rewards) in (Bernoulli, Bounded, Clicks, Gaussian, Uniform)


def _check_fit(who: str, policy: object, instance: object) -> None:
    """Check before the run that a policy of this package can play this instance."""
    if not isinstance(policy, Policy) or not isinstance(instance, Instance | DriftingInstance):
        return
    if policy.dim is not None and policy.dim != instance.dim:
        have, need = _name_dim(instance.dim), _name_dim(policy.dim)
        raise InvalidValue(f"{who} needs {need}, the problem has {have}")
    unknown = [arm for arm in policy.tree.arms if arm not in instance.tree]
    if unknown:
        raise UnknownArm(f"{who} has arm {unknown[0]!r}, which the instance does not")
    beliefs = state_of(policy).rows
    low, high = beliefs.support
    if instance.rewards.support[0] < low or instance.rewards.support[1] > high:
        raise InvalidValue(
            f"{who} expects rewards in [{low:g}, {high:g}], but {instance.rewards} goes beyond; {beliefs.hint}"
        )


def _name_dim(dim: int | None) -> str:
    return "no contexts" if dim is None else f"contexts of {dim} numbers"
