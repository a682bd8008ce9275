"""What a law is checked on, and the words laws are written in: policies that learned something, and what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np

from banditree.errors import BanditreeError
from banditree.policy import Policy
from banditree.testing.samples import alike
from banditree.tree import Tree

DRAWS = 150  # choices compared in distribution where one policy can make them all
COPIES = 80  # and where each choice needs a policy of its own


class LawBroken(BanditreeError, AssertionError):
    """A policy broke a law; the message names it."""


class Event(NamedTuple):
    arm: Any
    reward: float
    context: Any


@dataclass(frozen=True)
class Case:
    """What a law is checked on."""

    law: str
    factory: Callable[..., Any]
    tree: Tree
    dim: int | None
    rng: Any
    load: Callable[..., Any] | None
    required: bool = False  # what is missing is an error

    def policy(self, seed: int = 0, tree: Tree | None = None, events: Iterable[Event] = ()) -> Any:
        """A policy that has learned from some events."""
        policy = self.factory(self.tree if tree is None else tree, rng=seed)
        for event in events:
            update(policy, event)
        return policy

    def context(self) -> Any:
        """About one in every direction, so that a reward tells nearly the same in all contexts."""
        return None if self.dim is None else 1 + 0.2 * self.rng.standard_normal(self.dim)

    def history(self) -> list[Event]:
        """Rewards after which one arm, the last, is clearly the best."""
        *others, best = self.tree.arms
        some = self.rng.permutation(len(others))[:11]
        events = [Event(others[i], 0, self.context()) for i in some for _ in range(3)]
        events += [Event(best, 1, self.context()) for _ in range(12)]
        return [events[i] for i in self.rng.permutation(len(events))]

    def has(self, policy: Any, *methods: str) -> bool:
        """Whether a policy has these methods, so that the law can be checked."""
        missing = next((name for name in methods if not hasattr(policy, name)), None)
        return missing is None or self.passed_over(f"{type(policy).__name__} has no method `{missing}`")

    def takes(self, policy: Any, method: str, *parameters: str) -> bool:
        """Whether a method is there and takes these parameters."""
        if not self.has(policy, method):
            return False
        known = signature(getattr(policy, method)).parameters
        if any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
            return True
        missing = next((name for name in parameters if name not in known), None)
        return missing is None or self.passed_over(f"`{type(policy).__name__}.{method}` takes no `{missing}`")

    def passed_over(self, why: str) -> bool:
        """False: the law, or a part of it, cannot be checked. An error where it was asked for."""
        if self.required:
            raise LawBroken(f"law not checked: {self.law}. {why}")
        return False

    def refused(self, act: Callable[[], Any], what: str) -> None:
        """Demand that something raises."""
        try:
            found = act()
        except Exception:
            return
        self.demand(False, f"{what} gave {found!r:.100}, and should be an error")

    def demand(self, kept: bool, what: str) -> None:
        if not kept:
            raise LawBroken(f"law broken: {self.law}. {what} (on {self.tree!r})")


def choose(policy: Any, context: Any = None, **limits: Any) -> Any:
    return policy.choose(**within(context), **limits)


def within(context: Any) -> dict[str, Any]:
    """The context as an argument, where there is one."""
    return {} if context is None else {"context": context}


def update(policy: Any, event: Event) -> None:
    if event.context is None:
        policy.update(event.arm, event.reward)
    else:
        policy.update(event.arm, event.reward, context=event.context)


def choose_many(policy: Any, n: int, context: Any, **limits: Any) -> list[Any]:
    more = {} if context is None else {"contexts": np.tile(context, (n, 1))}
    return list(policy.choose_many(n, **more, **limits))


def update_many(policy: Any, events: Sequence[Event]) -> None:
    arms, rewards, contexts = zip(*events, strict=True)
    more = {} if contexts[0] is None else {"contexts": np.array(contexts)}
    policy.update_many(list(arms), list(rewards), **more)


def beliefs(policy: Any) -> dict[str, Any] | None:
    """Copies of all the arrays of a policy of this package; None for others, which are known by what they do.

    Where evidence fades it is given as it counts, without what an engine computes of it only when needed.
    """
    if not isinstance(policy, Policy):
        return None
    state = policy._state
    rows = state.rows
    kept = {} if state.summary is None else {"summary": state.summary.copy()}
    names = (*rows.EVIDENCE, *rows.PRIOR) if rows.fades else tuple(rows.arrays())
    scale = {name: float(rows.scale[0]) for name in rows.EVIDENCE}
    return {name: getattr(rows, name) * scale.get(name, 1.0) for name in names} | kept


def shown(policy: Any, context: Any) -> str | None:
    """All that ``policy.table()`` says, where it has one; huge ones are left out to save time."""
    if not hasattr(policy, "table") or len(getattr(policy, "tree", ())) > 200:
        return None
    return repr(list(policy.table() if context is None else policy.table(context=context)))


def same_beliefs(case: Case, one: Callable[[int], Any], two: Callable[[int], Any], what: str) -> None:
    """Demand that policies made in two ways (from a seed) believe the same, but for rounding."""
    arrays, others = beliefs(one(0)), beliefs(two(0))
    if arrays is not None and others is not None:
        for name, array in arrays.items():
            fits = array.shape == others[name].shape and np.allclose(array, others[name], rtol=1e-8, atol=1e-10)
            case.demand(fits, f"{what}: their {name} differ")
        return
    context = case.context()
    these, those = (Counter(choose(make(seed), context) for seed in range(COPIES)) for make in (one, two))
    case.demand(alike(these, those, case.tree), f"{what}: they choose differently, {these} and {those}")


@contextmanager
def unchanged(case: Case, policy: Any, context: Any, what: str) -> Iterator[None]:
    """Demand that a policy of this package, or one with a table, shows exactly the same afterwards."""
    arrays, table = beliefs(policy), shown(policy, context)
    yield
    for name, array in (beliefs(policy) or {}).items():
        case.demand(arrays is not None and np.array_equal(array, arrays[name]), f"{what}: {name} changed")
    case.demand(table == shown(policy, context), f"{what}: the table changed")
