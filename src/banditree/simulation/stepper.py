"""Step one run from Python: choose an arm, draw its reward, learn when the reward arrives.

Twin of ``native/simulation/stepper.hpp``; and the checks of a user's own problem.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BanditreeError, InvalidType, PolicyFailed, ProblemFailed, UnknownArm
from banditree.policy import Policy
from banditree.problems.instance import AnyInstance, AnyProblem
from banditree.simulation.runs import Run
from banditree.simulation.workers import Monitor
from banditree.stream import Rng, Seed
from banditree.tree import Tree
from banditree.tree.build import Name

Context = dict[str, Any]  # {"context": x}, or {} where there is none: keywords of choose, update and reward

INSTANCE_MEMBERS = ("tree", "context", "reward", "expected", "best")  # and `trees` where `bt.on` is used
RELATIVE_ROUNDING = 1e-5  # an arm may exceed the best one by this share: problems may compute with 32 bits
MONITOR_STEPS = 64  # steps between two reports of progress


@dataclass(frozen=True)
class Schedule:
    """When decisions are made and rewards are learned.

    Decisions are made ``batch`` at a time from the same beliefs. The reward of step t, counted from 1, is learned at
    the first batch that starts after step t + ``delay``; rewards that would arrive after the end are not learned. With
    no delay and batches of one, every reward is learned at once, including the last.
    """

    horizon: int
    delay: int = 0
    batch: int = 1

    @property
    def is_immediate(self) -> bool:
        return self.delay == 0 and self.batch == 1

    def starts_batch(self, t: int) -> bool:
        return (t - 1) % self.batch == 0

    def arrives(self, t: int) -> bool:
        """Say whether the reward of step t is learned before the run ends."""
        last_start = (self.horizon - 1) // self.batch * self.batch + 1
        return t + self.delay < last_start


def step_through(
    run: Run,
    name: str,
    policy: Any,
    instance: CheckedInstance,
    context_rng: Rng,
    reward_rng: Rng,
    schedule: Schedule,
    times: NDArray[np.int64],
    monitor: Monitor,
) -> None:
    """Fill in a run. Raises PolicyFailed if the policy fails, and KeyboardInterrupt if the monitor says stop."""
    tree, seed = instance.instance.tree, instance.seed
    ignores_contexts = isinstance(policy, Policy) and policy.dim is None  # also where the problem has them
    pending: deque[tuple[int, Name, float, Context]] = deque()  # step, arm, reward, context given to the policy
    regret, n_recorded = 0.0, 0
    for t in range(1, schedule.horizon + 1):
        raise_if_stopped(monitor)
        context = instance.context(context_rng)
        given: Context = {} if ignores_contexts else context
        try:
            if not schedule.is_immediate and schedule.starts_batch(t):
                while pending and pending[0][0] + schedule.delay < t:
                    _, arm, reward, past_context = pending.popleft()
                    policy.update(arm, reward, **past_context)
            arm = policy.choose(**given)
        except Exception as error:
            raise policy_failure(name, seed, f"raised at step {t}", error) from error
        try:
            position = tree.position(arm)
        except UnknownArm as error:
            raise policy_failure(name, seed, f"chose an unknown arm at step {t}", error) from error
        reward = instance.reward(arm, reward_rng, context)
        if schedule.is_immediate:
            try:
                policy.update(arm, reward, **given)
            except Exception as error:
                raise policy_failure(name, seed, f"raised at step {t}", error) from error
        elif schedule.arrives(t):
            pending.append((t, arm, reward, given))
        regret += instance.gap(arm, context)
        run.plays[position] += 1
        if t == times[n_recorded]:
            if run.trace is not None:
                run.trace[n_recorded] = run.plays
            run.regret[n_recorded], n_recorded = regret, n_recorded + 1
        if t % MONITOR_STEPS == 0 or t == schedule.horizon:
            monitor.add(t % MONITOR_STEPS or MONITOR_STEPS)


def policy_failure(name: str, seed: int, what: str, error: BaseException | None) -> PolicyFailed:
    """Return an error that names the policy, the seed and what went wrong."""
    cause = "" if error is None else f": {type(error).__name__}: {error}"
    failure = PolicyFailed(f"policy {name!r}, seed {seed}: {what}{cause}")
    failure.__cause__ = error
    return failure


def raise_if_stopped(monitor: Monitor) -> None:
    if monitor.stop:
        raise KeyboardInterrupt


# ---------------------------------------------------------------- a user's own problem


class CheckedInstance:
    """Wraps an instance for one run: checks what it returns, and gives the policy contexts that it cannot change."""

    def __init__(self, instance: AnyInstance, problem: AnyProblem, seed: int) -> None:
        self.instance, self.problem, self.seed, self.t = instance, problem, seed, 0

    def context(self, rng: Rng) -> Context:
        """Start the next step; return the context as a keyword, or nothing where there is none."""
        self.t += 1
        try:
            x = self.instance.context(rng)
        except Exception as error:
            raise _with_source(self._place("context(rng)"), error) from error
        if isinstance(x, np.ndarray):
            x = x.copy()
            x.flags.writeable = False
        return {} if x is None else {"context": x}

    def reward(self, arm: Name, rng: Rng, context: Context) -> float:
        try:
            reward = self.instance.reward(arm, rng, **context)
        except Exception as error:
            raise _with_source(self._place(f"reward({arm!r}, rng)"), error) from error
        checked: float = self._finite(reward, "reward", arm)
        return checked

    def gap(self, arm: Name, context: Context) -> float:
        """Return how much lower the expected reward of this arm is than the best one's."""
        try:
            best, expected = self.instance.best(**context), self.instance.expected(arm, **context)
        except Exception as error:
            raise _with_source(self._place(f"best() or expected({arm!r})"), error) from error
        best, expected = self._finite(best, "best"), self._finite(expected, "expected", arm)
        gap = float(best) - float(expected)
        if gap < 0 and gap < -RELATIVE_ROUNDING * max(abs(best), abs(expected)):
            raise ProblemFailed(self._place(f"best() is {best}, and expected({arm!r}) is {expected}, which is more"))
        return gap

    def _finite(self, value: object, method: str, *arm: Name) -> Any:
        """Return a number of any type as it is, and an array without dimensions as a number."""
        if type(value) is float and math.isfinite(value):  # the usual case
            return value
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        with suppress(OverflowError):
            if isinstance(value, int | float | np.number | np.bool_) and math.isfinite(value):
                return value
        call = f"{method}({', '.join(map(repr, arm))})"
        raise ProblemFailed(self._place(f"{call} is {value!r:.60}; it must be a finite number"))

    def _place(self, call: str) -> str:
        return f"problem {self.problem!r:.60}, seed {self.seed}, step {self.t}: {call}"


def draw_instance(problem: AnyProblem, rng: Seed, seed: int) -> AnyInstance:
    """Draw an instance and check that it has everything that a simulation needs."""
    try:
        instance = problem.instance(rng)
        missing = [name for name in INSTANCE_MEMBERS if not hasattr(instance, name)]
        if missing:
            raise InvalidType(f"{instance!r:.60} is not an instance: it has no {' and no '.join(missing)}")
        tree: object = instance.tree
        if not isinstance(tree, Tree):
            raise InvalidType(f"the tree of {instance!r:.60} is {tree!r:.60}; it must be a bt.Tree")
        return instance
    except Exception as error:
        raise _with_source(f"problem {problem!r:.60}, seed {seed}: instance(rng)", error) from error


def copy_instance(instance: AnyInstance, problem: AnyProblem, seed: int) -> AnyInstance:
    """Copy an instance whose problem returns the same object every time. Trees never change, so they are shared."""
    memo: dict[int, object] = {id(tree): tree for tree in (instance.tree, *getattr(instance, "trees", {}).values())}
    try:
        return copy.deepcopy(instance, memo)
    except Exception as error:
        raise ProblemFailed(
            f"problem {problem!r:.60}, seed {seed}: instance(rng) returned the same object again, which cannot be "
            f"copied ({type(error).__name__}: {error}); return a new one, so that every policy gets it unchanged"
        ) from error


def _with_source(source: str, error: Exception) -> BanditreeError:
    """Return an error that names its source, to be raised in place of the given one."""
    if isinstance(error, BanditreeError):
        return type(error)(f"{source}: {error}")
    return ProblemFailed(f"{source} raised {type(error).__name__}: {error}")
