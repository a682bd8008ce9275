"""Choose the engine that walks: native if it was built and the belief and rule are built in, otherwise readable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from banditree.beliefs import Rows
from banditree.errors import InvalidValue
from banditree.policy import descent
from banditree.policy.descent import Fading
from banditree.rules import Rule
from banditree.stream import Rng, Stream, native
from banditree.tree import Tree


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


# Methods of the native engine. The first three are one step each, with arms as the user has them: they need no lock,
# and refuse arguments that need a conversion, and all calls while the policy is held.
STEPS = ("choose", "update", "learn_lists")
LOCKED = ("limits", "choose_within", "choose_many", "slate", "wins", "learn_one", "learn", "forget")


class NativeWalk(descent.Walk):
    """Walks with the native engine, on the same arrays; what that does not compute itself, the readable walk does."""

    engine = "native"

    def __init__(
        self, tree: Tree, rows: Rows, rule: Rule, rng: Rng, explore: float, fading: Fading, takes_shortcuts: bool
    ) -> None:
        assert native is not None
        super().__init__(tree, rows, rule, rng, explore, fading)
        self.native = native.Walk(self)  # which reads what it needs by name
        if not takes_shortcuts:
            self.native.min_wide = 2**31 - 1  # children, from which on there is a shortcut
        for method in (*STEPS, *LOCKED):
            setattr(self, method, getattr(self.native, method))
        self.rows.walked_natively = True
        self.rows.bind_walk(self.native)

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


def walk(
    engine: Engine, tree: Tree, rows: Rows, rule: Rule, rng: Rng, explore: float, half_life: float | None
) -> descent.Walk:
    """Return a policy's walk: on the native engine where ``rng`` is its stream, which `runs_natively` decides."""
    fading = Fading.of(half_life)
    if isinstance(rng, Stream) and engine.name == "native" and runs_natively(rows, rule):
        return NativeWalk(tree, rows, rule, rng, explore, fading, engine.takes_shortcuts)
    return descent.Walk(tree, rows, rule, rng, explore, fading)
