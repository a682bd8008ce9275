"""Check what a user's problem and policies do in a simulation; errors name the problem, the seed and the step."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from banditree.errors import BanditreeError, InvalidType, ProblemFailed
from banditree.problems.protocols import AnyInstance
from banditree.tree import Tree

NEEDED = ("tree", "context", "reward", "expected", "best")  # of an instance; `trees` only where `bt.on` is used
ROUNDING = 1e-5  # an arm may exceed the best one by this share: problems may compute with 32 bits


def with_source(source: str, error: Exception) -> BanditreeError:
    """Return an error that names its source, to be raised in place of the given one."""
    if isinstance(error, BanditreeError):
        return type(error)(f"{source}: {error}")
    return ProblemFailed(f"{source} raised {type(error).__name__}: {error}")


def draw_instance(problem: Any, rng: Any, seed: int) -> Any:
    """Draw an instance and check that it has everything that a simulation needs."""
    try:
        instance = problem.instance(rng)
        missing = [name for name in NEEDED if not hasattr(instance, name)]
        if missing:
            raise InvalidType(f"{instance!r:.60} is not an instance: it has no {' and no '.join(missing)}")
        if not isinstance(instance.tree, Tree):
            raise InvalidType(f"the tree of {instance!r:.60} is {instance.tree!r:.60}; it must be a bt.Tree")
        return instance
    except Exception as error:
        raise with_source(f"problem {problem!r:.60}, seed {seed}: instance(rng)", error) from error


def copy_instance(instance: Any, problem: Any, seed: int) -> Any:
    """Copy an instance whose problem returns the same object every time. Trees never change, so they are shared."""
    memo = {id(tree): tree for tree in (instance.tree, *getattr(instance, "trees", {}).values())}
    try:
        return copy.deepcopy(instance, memo)
    except Exception as error:
        raise ProblemFailed(
            f"problem {problem!r:.60}, seed {seed}: instance(rng) returned the same object again, which cannot be "
            f"copied ({type(error).__name__}: {error}); return a new one, so that every policy gets it unchanged"
        ) from error


class CheckedInstance:
    """Wraps an instance for one run: checks what it returns, and gives the policy contexts that it cannot change."""

    def __init__(self, instance: AnyInstance, problem: Any, seed: int) -> None:
        self.instance, self.problem, self.seed, self.t = instance, problem, seed, 0

    def context(self, rng: Any) -> dict[str, Any]:
        """Start the next step; return the context as a keyword, or nothing where there is none."""
        self.t += 1
        try:
            x = self.instance.context(rng)
        except Exception as error:
            raise with_source(self._here("context(rng)"), error) from error
        if isinstance(x, np.ndarray):
            x = x.copy()
            x.flags.writeable = False
        return {} if x is None else {"context": x}

    def reward(self, arm: Any, rng: Any, context: dict[str, Any]) -> Any:
        """Draw the reward of an arm."""
        try:
            reward = self.instance.reward(arm, rng, **context)
        except Exception as error:
            raise with_source(self._here(f"reward({arm!r}, rng)"), error) from error
        return self._finite(reward, "reward", arm)

    def gap(self, arm: Any, context: dict[str, Any]) -> float:
        """Return how much lower the expected reward of this arm is than the best one's."""
        try:
            best, expected = self.instance.best(**context), self.instance.expected(arm, **context)
        except Exception as error:
            raise with_source(self._here(f"best() or expected({arm!r})"), error) from error
        best, expected = self._finite(best, "best"), self._finite(expected, "expected", arm)
        gap = float(best) - float(expected)
        if gap < 0 and gap < -ROUNDING * max(abs(best), abs(expected)):
            raise ProblemFailed(self._here(f"best() is {best}, and expected({arm!r}) is {expected}, which is more"))
        return gap

    def _finite(self, value: Any, method: str, *arm: Any) -> Any:
        if type(value) is float and math.isfinite(value):  # the usual case
            return value
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        with suppress(OverflowError):
            if isinstance(value, int | float | np.number | np.bool_) and math.isfinite(value):
                return value
        call = f"{method}({', '.join(map(repr, arm))})"
        raise ProblemFailed(self._here(f"{call} is {value!r:.60}; it must be a finite number"))

    def _here(self, what: str) -> str:
        return f"problem {self.problem!r:.60}, seed {self.seed}, step {self.t}: {what}"


class PlayedPolicies:
    """Remembers which policies have played, since each may play once. Keeps none alive; a pickled copy is empty."""

    def __init__(self) -> None:
        self._played: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._lock = Lock()

    def first_time(self, policy: Any) -> bool:
        """Say whether it has not played yet: always True for an object that allows no weak reference."""
        with self._lock, suppress(TypeError):
            if self._played.get(id(policy)) is policy:
                return False
            self._played[id(policy)] = policy
        return True

    def __reduce__(self) -> Any:
        return PlayedPolicies, ()
