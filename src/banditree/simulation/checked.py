"""Code of the user's own in a simulation: its mistakes are told as its own."""

from __future__ import annotations

import copy
import math
import weakref
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from banditree.errors import BanditreeError, InvalidType, ProblemFailed
from banditree.problems.protocols import AnyInstance
from banditree.tree import Tree

NEEDED = ("tree", "context", "reward", "expected", "best")  # of an instance; `trees` where `bt.on` asks for one
ROUNDING = 1e-5  # by which an arm may seem better than the best one, as numbers of 32 bits do


def blamed(what: str, error: Exception) -> BanditreeError:
    """The error to raise instead, which names what raised it."""
    if isinstance(error, BanditreeError):
        return type(error)(f"{what}: {error}")
    return ProblemFailed(f"{what} raised {type(error).__name__}: {error}")


def draw(problem: Any, rng: Any, seed: int) -> Any:
    """An instance that has all that a simulation asks of it."""
    try:
        instance = problem.instance(rng)
        missing = [name for name in NEEDED if not hasattr(instance, name)]
        if missing:
            raise InvalidType(f"{instance!r:.60} is no instance: it has no {' and no '.join(missing)}")
        if not isinstance(instance.tree, Tree):
            raise InvalidType(f"the tree of {instance!r:.60} is {instance.tree!r:.60}; it must be a bt.Tree")
        return instance
    except Exception as error:
        raise blamed(f"problem {problem!r:.60}, seed {seed}: instance(rng)", error) from error


def copied(instance: Any, problem: Any, seed: int) -> Any:
    """A copy to play on, of an instance that its problem hands out again and again. Trees are shared: none changes."""
    memo = {id(tree): tree for tree in (instance.tree, *getattr(instance, "trees", {}).values())}
    try:
        return copy.deepcopy(instance, memo)
    except Exception as error:
        raise ProblemFailed(
            f"problem {problem!r:.60}, seed {seed}: instance(rng) returned the same object again, which cannot be "
            f"copied ({type(error).__name__}: {error}); return a new one, so that every policy meets it as it was"
        ) from error


class World:
    """An instance as a run meets it. What it gives is checked, and no policy can change the context it is told."""

    def __init__(self, instance: AnyInstance, problem: Any, seed: int) -> None:
        self.instance, self.problem, self.seed, self.t = instance, problem, seed, 0

    def context(self, rng: Any) -> dict[str, Any]:
        """The next step: what the policy is told before it chooses, as keywords."""
        self.t += 1
        try:
            x = self.instance.context(rng)
        except Exception as error:
            raise blamed(self._told("context(rng)"), error) from error
        if isinstance(x, np.ndarray):
            x = x.copy()
            x.flags.writeable = False
        return {} if x is None else {"context": x}

    def reward(self, arm: Any, rng: Any, known: dict[str, Any]) -> Any:
        try:
            reward = self.instance.reward(arm, rng, **known)
        except Exception as error:
            raise blamed(self._told(f"reward({arm!r}, rng)"), error) from error
        return self._finite(reward, "reward", arm)

    def gap(self, arm: Any, known: dict[str, Any]) -> float:
        """By how much this arm is worse than the best one, in expectation."""
        try:
            best, expected = self.instance.best(**known), self.instance.expected(arm, **known)
        except Exception as error:
            raise blamed(self._told(f"best() or expected({arm!r})"), error) from error
        best, expected = self._finite(best, "best"), self._finite(expected, "expected", arm)
        gap = float(best) - float(expected)
        if gap < 0 and gap < -ROUNDING * max(abs(best), abs(expected)):
            raise ProblemFailed(self._told(f"best() is {best}, and expected({arm!r}) is {expected}, which is more"))
        return gap

    def _finite(self, value: Any, what: str, *arm: Any) -> Any:
        if type(value) is float and math.isfinite(value):  # as most are
            return value
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        try:
            if isinstance(value, int | float | np.number | np.bool_) and math.isfinite(value):
                return value
        except OverflowError:
            pass
        call = f"{what}({', '.join(map(repr, arm))})"
        raise ProblemFailed(self._told(f"{call} is {value!r:.60}; it must be a finite number"))

    def _told(self, what: str) -> str:
        return f"problem {self.problem!r:.60}, seed {self.seed}, step {self.t}: {what}"


class Met:
    """The policies that have played: each may play once. They are not kept alive, nor sent to other machines."""

    def __init__(self) -> None:
        self._met: dict[int, weakref.ref[Any]] = {}
        self._lock = Lock()

    def first_time(self, policy: Any) -> bool:
        """Whether it has not played yet; of an object without room for a weak reference, nothing is known."""
        with self._lock, suppress(TypeError):
            known = self._met.get(id(policy))
            if known is not None and known() is policy:
                return False
            self._met[id(policy)] = weakref.ref(policy)
        return True

    def __reduce__(self) -> Any:
        return Met, ()
