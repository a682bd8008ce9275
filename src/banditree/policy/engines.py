"""Choose the engine that walks: native if it was built and the belief and rule are built in, otherwise readable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.beliefs import Rows
from banditree.errors import InvalidValue
from banditree.policy import descent
from banditree.policy.limits import AnyLimits
from banditree.rules import Rule
from banditree.stream import Rng, Stream, native
from banditree.tree import Tree
from banditree.tree.build import Name


class Engine(NamedTuple):
    """The engine that a policy was built on, which a change of its tree keeps to."""

    name: str  # "native" or "readable"
    takes_shortcuts: bool = True  # whether the native one draws from a few children where that gives the same choices


_forced: list[Engine] = []  # set by `using`, the latest last


def engine() -> str:
    """Return the engine that built-in policies run on: "native" or "readable".

    ``BANDITREE_ENGINE=readable`` in the environment chooses the readable one; "native" fails if it was not built.

    >>> engine() in ("native", "readable")
    True
    """
    return current().name


def current() -> Engine:
    """Return the engine that a policy built now walks with, if its parts are built in."""
    wanted = _forced[-1].name if _forced else os.environ.get("BANDITREE_ENGINE", "")
    if wanted not in ("", "native", "readable"):
        raise InvalidValue(f"BANDITREE_ENGINE={wanted!r} must be 'native' or 'readable'")
    if wanted == "native" and native is None:
        raise InvalidValue(
            "BANDITREE_ENGINE='native', but this install does not have it; reinstall with a C++ compiler"
        )
    name = wanted or ("readable" if native is None else "native")
    return Engine(name, _forced[-1].takes_shortcuts if _forced else True)


@contextmanager
def using(name: str, *, shortcuts: bool = True) -> Iterator[None]:
    """Build policies on one engine inside a ``with`` block, in all threads, whatever the environment says.

    Without ``shortcuts`` the native engine draws from every child even at wide nodes, in the order of the readable one.
    """
    forced = Engine(name, shortcuts)
    _forced.append(forced)
    try:
        yield
    finally:  # another thread may have appended since
        _forced.remove(forced)


def runs_natively(rows: Rows, rule: Rule) -> bool:
    """Whether the native engine can walk a policy with these parts: they are built in."""
    built_in = all("native" in vars(type(part)) for part in (rows, rule))
    return built_in and (not rows.joint or rule.native == "Thompson")


class NativeWalk(descent.Walk):
    """Walks with the native engine, on the same arrays; what it does not compute itself, the readable walk does.

    ``choose``, ``update`` and ``learn_lists`` are one step of the native engine each, with arms as the user has them.
    They need no lock, and refuse what is not ready to use, or anything while the policy is held.
    """

    engine = "native"
    choose: Callable[[object], Name | None]
    update: Callable[[object, object, object], bool]
    learn_lists: Callable[[object, object, object], bool]

    def __init__(
        self,
        tree: Tree,
        rows: Rows,
        rule: Rule,
        rng: Rng,
        explore: float,
        fading: descent.Fading,
        takes_shortcuts: bool,
    ) -> None:
        assert native is not None
        super().__init__(tree, rows, rule, rng, explore, fading)
        self.native = native.Walk(self)  # which reads what it needs by name
        if not takes_shortcuts:
            self.native.min_wide = 2**31 - 1  # children, from which on there is a shortcut
        self.choose, self.update, self.learn_lists = self.native.choose, self.native.update, self.native.learn_lists
        rows.walked_natively = True
        rows.bind_walk(self.native)

    @property
    def is_held(self) -> bool:
        return bool(self.native.is_held)

    @is_held.setter
    def is_held(self, is_held: bool) -> None:
        self.native.is_held = is_held

    @property
    def since_faded(self) -> int:
        return int(self.native.since_faded)

    @since_faded.setter
    def since_faded(self, rewards: int) -> None:
        self.native.since_faded = rewards

    @property
    def evaluations(self) -> int:
        return int(self.native.evaluations)

    def refresh(self) -> None:
        super().refresh()
        self.native.reset()

    def limits(self, arms: NDArray[np.int64], only: bool) -> AnyLimits:
        limits: AnyLimits = self.native.limits(arms, only)
        return limits

    def choose_within(self, limits: AnyLimits | None, context: Floats | None) -> int:
        return int(self.native.choose_within(limits, context))

    def choose_many(self, m: int, contexts: Floats | None) -> NDArray[np.int32] | None:
        positions: NDArray[np.int32] | None = self.native.choose_many(m, contexts)
        return positions

    def slate(self, k: int, limits: AnyLimits | None, context: Floats | None) -> NDArray[np.int32] | None:
        positions: NDArray[np.int32] | None = self.native.slate(k, limits, context)
        return positions

    def wins(self, limits: AnyLimits | None, context: Floats | None, arm: int = -1) -> Floats | None:
        chances: Floats | None = self.native.wins(limits, context, arm)
        return chances

    def learn_one(self, position: int, reward: float, context: Floats | None) -> None:
        self.native.learn_one(position, reward, context)

    def learn(self, arms: NDArray[np.int64], rewards: Floats, plays: Floats | None, contexts: Floats | None) -> int:
        return int(self.native.learn(arms, rewards, plays, contexts))

    def forget(self, factor: float) -> None:
        self.native.forget(factor)


def walk(
    engine: Engine, tree: Tree, rows: Rows, rule: Rule, rng: Rng, explore: float, half_life: float | None
) -> descent.Walk:
    """Return a policy's walk: on the native engine where ``rng`` is its stream, which `runs_natively` decides."""
    fading = descent.Fading.of(half_life)
    if isinstance(rng, Stream) and engine.name == "native" and runs_natively(rows, rule):
        return NativeWalk(tree, rows, rule, rng, explore, fading, engine.takes_shortcuts)
    return descent.Walk(tree, rows, rule, rng, explore, fading)
