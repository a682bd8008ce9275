"""Helpers that the laws share: make policies that have learned something, compare their beliefs, report a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np

from banditree.base.arrays import Array, Floats
from banditree.errors import BanditreeError
from banditree.policy import Policy
from banditree.policy.state import state_of
from banditree.tree import Tree
from banditree.tree.build import Name

DEVIATIONS = 5.5  # standard deviations beyond which a difference is not chance


def alike(one: Counter[Name], two: Counter[Name], tree: Tree | None = None) -> bool:
    """Say whether two samples of equal size may come from the same distribution.

    They are compared arm by arm, by top clusters of ``tree``, and in total over all arms, because many small
    differences add up, and an arm chosen 30 times or less cannot differ significantly by itself.

    >>> alike(Counter({"a": 30, "b": 5}), Counter({"a": 25, "b": 10}))
    True
    >>> alike(Counter({arm: 30 for arm in range(20)}), Counter({arm: 30 for arm in range(20, 40)}))
    False
    """
    arms = sorted({*one, *two}, key=repr)
    counts = np.array([[one[arm], two[arm]] for arm in arms], float).reshape(-1, 2)
    clusters = tree.clusters.values() if tree is not None else ()
    by_cluster = [[sum(sample[arm] for arm in cluster) for sample in (one, two)] for cluster in clusters]
    return _close(counts) and _close(np.array(by_cluster, float).reshape(-1, 2))


def fits(seen: Counter[Name], chance: Mapping[Name, float], tree: Tree) -> bool:
    """Say whether a sample of independent choices may come from these probabilities, by arm and by top cluster.

    Among n choices the number of those with probability p differs from n p by more than d with probability at most
    2 exp(-d^2 / (2 n p (1 - p) + 2 d / 3)) (Bernstein); d is such that the exponent is -t^2 / 2, with t as above.

    >>> tree = Tree(["a", "b"])
    >>> fits(Counter(a=40, b=60), {"a": 0.5, "b": 0.5}, tree), fits(Counter(a=10, b=90), {"a": 0.5, "b": 0.5}, tree)
    (True, False)
    """
    n, square = seen.total(), DEVIATIONS**2
    for arms in (*((arm,) for arm in {*seen, *chance}), *tree.clusters.values()):
        p = min(sum(chance.get(arm, 0.0) for arm in arms), 1.0)
        off = abs(sum(seen[arm] for arm in arms) - n * p)
        if off > (0 if p == 0 else square / 6 + np.sqrt((square / 6) ** 2 + square * n * p * (1 - p))):
            return False
    return True


def _close(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    """Say whether pairs of counts, (k, 2), may differ by chance alone, each of them and all together.

    Given the sum of a pair, the expected square of its difference is that sum. So the total is about chi-square with k
    degrees of freedom, whose far quantile is approximated by Wilson and Hilferty.
    """
    counts = counts[counts.sum(axis=1) > 0]
    squares = (counts[:, 0] - counts[:, 1]) ** 2 / counts.sum(axis=1)
    k = len(counts)
    if k == 0:
        return True
    most = k * (1 - 2 / (9 * k) + DEVIATIONS * np.sqrt(2 / (9 * k))) ** 3
    return bool(squares.max() <= DEVIATIONS**2 and squares.sum() <= most)


DRAWS = 150  # choices in a sample that one policy makes
COPIES = 80  # choices in a sample where each needs a policy of its own


class LawBroken(BanditreeError, AssertionError):
    """Raised when a policy breaks a law; the message names the law."""


class Play(NamedTuple):
    arm: Name
    reward: float
    context: object


@dataclass(frozen=True)
class Case:
    """One law to check, with a factory of policies, a tree and randomness."""

    law: str
    factory: Callable[..., Any]
    tree: Tree
    dim: int | None
    rng: np.random.Generator
    load: Callable[..., object] | None
    required: bool = False  # a missing method is an error

    def policy(self, seed: int = 0, tree: Tree | None = None, events: Iterable[Play] = ()) -> Any:
        """Build a policy that has learned from some events."""
        policy = self.factory(self.tree if tree is None else tree, rng=seed)
        for event in events:
            update(policy, event)
        return policy

    def maker(
        self, events: Iterable[Play] = (), then: Callable[[object], object] | None = None, tree: Tree | None = None
    ) -> Callable[[int], Any]:
        """Return a function of a seed that makes a policy with some events learned, and calls ``then`` on it."""

        def make(seed: int) -> Any:
            policy = self.policy(seed, tree, events)
            if then is not None:
                then(policy)
            return policy

        return make

    def context(self) -> Floats | None:
        """Draw a context near (1, ..., 1), so that a reward means about the same in all contexts; None without them."""
        return None if self.dim is None else 1 + 0.2 * self.rng.standard_normal(self.dim)

    def history(self) -> list[Play]:
        """Make rewards after which the last arm is clearly the best."""
        *others, best = self.tree.arms
        some = self.rng.permutation(len(others))[:11]
        events = [Play(others[i], 0, self.context()) for i in some for _ in range(3)]
        events += [Play(best, 1, self.context()) for _ in range(12)]
        return [events[i] for i in self.rng.permutation(len(events))]

    def has(self, policy: object, *methods: str) -> bool:
        """Say whether a policy has these methods, so that the law can be checked."""
        missing = next((name for name in methods if not hasattr(policy, name)), None)
        return missing is None or self.cannot_check(f"{type(policy).__name__} has no method `{missing}`")

    def takes(self, policy: object, method: str, *parameters: str) -> bool:
        """Say whether a policy has this method, with these parameters."""
        if not self.has(policy, method):
            return False
        known = signature(getattr(policy, method)).parameters
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values()):
            return True
        missing = next((name for name in parameters if name not in known), None)
        return missing is None or self.cannot_check(f"`{type(policy).__name__}.{method}` takes no `{missing}`")

    def cannot_check(self, why: str) -> bool:
        """Return False, as the law or a part of it cannot be checked; raise if the law is required."""
        if self.required:
            raise LawBroken(f"law not checked: {self.law}. {why}")
        return False

    def must_raise(self, act: Callable[[], object], what: str) -> None:
        """Check that a call raises an exception."""
        try:
            result = act()
        except Exception:
            return
        self.demand(False, f"{what} returned {result!r:.100}, and should raise an error")

    def demand(self, kept: bool, what: str) -> None:
        """Raise LawBroken unless the law is kept."""
        if not kept:
            raise LawBroken(f"law broken: {self.law}. {what} (on {self.tree!r})")


def choose(policy: Any, context: object = None, **limits: object) -> Name:
    arm: Name = policy.choose(**keyword(context), **limits)
    return arm


def keyword(context: object) -> dict[str, object]:
    """Return the context as a keyword argument, if there is one."""
    return {} if context is None else {"context": context}


def update(policy: Any, event: Play) -> None:
    policy.update(event.arm, event.reward, **keyword(event.context))


def choose_many(policy: Any, n: int, context: Floats | None, **limits: object) -> list[Name]:
    more = {} if context is None else {"contexts": np.tile(context, (n, 1))}
    return list(policy.choose_many(n, **more, **limits))


def update_many(policy: Any, events: Sequence[Play]) -> None:
    arms, rewards, contexts = zip(*events, strict=True)
    more = {} if contexts[0] is None else {"contexts": np.array(contexts)}
    policy.update_many(list(arms), list(rewards), **more)


def beliefs(policy: object) -> dict[str, Array] | None:
    """Copy all arrays of a policy of this package; None for other policies, whose choices are compared instead."""
    if not isinstance(policy, Policy):
        return None
    state = state_of(policy)
    rows = state.rows
    kept = {} if state.walk.summary is None else {"summary": state.walk.summary.copy()}
    return {name: array.copy() for name, array in rows.arrays().items()} | kept


def table_text(policy: object, context: object) -> str | None:
    """Return the content of ``policy.table()`` if there is one; None for huge ones, to save time."""
    if not hasattr(policy, "table") or len(getattr(policy, "tree", ())) > 200:
        return None
    return repr(list(policy.table(**keyword(context))))


def same_beliefs(case: Case, one: Callable[[int], object], two: Callable[[int], object], what: str) -> None:
    """Check that policies made in two ways from the same seed have the same beliefs, up to rounding."""
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
def unchanged(case: Case, policy: object, context: object, what: str) -> Iterator[None]:
    """Check that this block leaves the beliefs and the table of a policy exactly as they are."""
    arrays, table = beliefs(policy), table_text(policy, context)
    yield
    for name, array in (beliefs(policy) or {}).items():
        case.demand(arrays is not None and np.array_equal(array, arrays[name]), f"{what}: {name} changed")
    case.demand(table == table_text(policy, context), f"{what}: the table changed")
