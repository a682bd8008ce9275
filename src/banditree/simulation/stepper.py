"""Step one run from Python: choose an arm, draw its reward, learn when the reward arrives.

Twin of ``native/simulation/stepper.hpp``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import PolicyFailed, UnknownArm
from banditree.policy import Policy
from banditree.simulation.runs import Run
from banditree.simulation.user_checks import CheckedInstance
from banditree.simulation.workers import Monitor


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
    def at_once(self) -> bool:
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
    contexts: Any,
    rewards: Any,
    schedule: Schedule,
    times: NDArray[np.int64],
    monitor: Monitor,
) -> None:
    """Fill in a run. Raises PolicyFailed if the policy fails, and KeyboardInterrupt if the monitor says stop."""
    tree, seed = instance.instance.tree, instance.seed
    without_contexts = isinstance(policy, Policy) and policy.dim is None  # also where the problem has them
    late: deque[tuple[int, Any, Any, dict[str, Any]]] = deque()  # step, arm, reward, context given to the policy
    regret, at = 0.0, 0
    for t in range(1, schedule.horizon + 1):
        raise_if_stopped(monitor)
        context = instance.context(contexts)
        given = {} if without_contexts else context
        try:
            if not schedule.at_once and schedule.starts_batch(t):
                while late and late[0][0] + schedule.delay < t:
                    _, arm, reward, then = late.popleft()
                    policy.update(arm, reward, **then)
            arm = policy.choose(**given)
        except Exception as error:
            raise failed(name, seed, f"raised at step {t}", error) from error
        try:
            position = tree.position(arm)
        except UnknownArm as error:
            raise failed(name, seed, f"chose an unknown arm at step {t}", error) from error
        reward = instance.reward(arm, rewards, context)
        if schedule.at_once:
            try:
                policy.update(arm, reward, **given)
            except Exception as error:
                raise failed(name, seed, f"raised at step {t}", error) from error
        elif schedule.arrives(t):
            late.append((t, arm, reward, given))
        regret += instance.gap(arm, context)
        run.plays[position] += 1
        if t == times[at]:
            run.regret[at], at = regret, at + 1
        if t % 64 == 0 or t == schedule.horizon:
            monitor.add(t % 64 or 64)


def failed(name: str, seed: int, what: str, error: BaseException | None) -> PolicyFailed:
    """Return an error that names the policy, the seed and what went wrong."""
    cause = "" if error is None else f": {type(error).__name__}: {error}"
    failure = PolicyFailed(f"policy {name!r}, seed {seed}: {what}{cause}")
    failure.__cause__ = error
    return failure


def raise_if_stopped(monitor: Monitor) -> None:
    if monitor.stop:
        raise KeyboardInterrupt
