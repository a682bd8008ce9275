"""Choose the engine that walks: native if it was built and the belief and rule are built in, otherwise readable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import Rows
from banditree.beliefs.base import Floats
from banditree.errors import InvalidValue
from banditree.policy import descent
from banditree.policy.limits import AnyLimits
from banditree.rules import Rule
from banditree.stream import native
from banditree.tree.build import Name

_forced: list[tuple[str, bool]] = []  # set by `using`, the latest last: an engine, and whether it takes shortcuts


class Walk(Protocol):
    """What a policy needs from an engine. ``descent.Walk`` is the readable one.

    ``choose``, ``update`` and ``learn_lists`` take and return arms as the user has them. They need no lock of the
    policy, and refuse, with None or False, while the walk is closed or if something is not ready to use. The others
    take and return positions of arms.
    """

    evaluations: int
    since_faded: int  # rewards since evidence was last multiplied, with a half-life
    min_wide: int  # nodes with at least this many children are walked by an exact shortcut, if there is one

    @property
    def closed(self) -> bool: ...
    def close(self, closed: bool = True) -> None: ...
    def reset(self) -> None: ...
    def forget(self, factor: float) -> None: ...
    def limits(self, arms: NDArray[np.int64], only: bool) -> AnyLimits: ...
    def choose(self, context: object) -> Name | None: ...
    def choose_within(self, limits: Any, context: object) -> int: ...
    def choose_many(self, m: int, contexts: Floats | None) -> NDArray[np.int32] | None: ...
    def slate(self, k: int, limits: Any, context: object) -> NDArray[np.int32] | None: ...
    def wins(self, limits: Any, context: object, arm: int = -1) -> Floats | None: ...
    def update(self, arm: object, reward: object, context: object) -> bool: ...
    def learn_lists(self, arms: object, rewards: object, contexts: object) -> bool: ...
    def learn_one(self, position: int, reward: object, context: object) -> bool: ...
    def learn(self, arms: NDArray[np.int64], rewards: Floats, plays: Floats | None, contexts: Floats | None) -> int: ...


def engine() -> str:
    """Return the engine that built-in policies run on: "native" or "readable".

    ``BANDITREE_ENGINE=readable`` in the environment chooses the readable one; "native" fails if it was not built.

    >>> engine() in ("native", "readable")
    True
    """
    wanted = _forced[-1][0] if _forced else os.environ.get("BANDITREE_ENGINE", "")
    if wanted not in ("", "native", "readable"):
        raise InvalidValue(f"BANDITREE_ENGINE={wanted!r} must be 'native' or 'readable'")
    if wanted == "native" and native is None:
        raise InvalidValue(
            "BANDITREE_ENGINE='native', but this install does not have it; reinstall with a C++ compiler"
        )
    return wanted or ("readable" if native is None else "native")


@contextmanager
def using(name: str, *, shortcuts: bool = True) -> Iterator[None]:
    """Build policies on one engine inside a ``with`` block, in all threads, whatever the environment says.

    Without ``shortcuts`` the native engine draws from every child even at wide nodes, in the order of the readable one.
    """
    _forced.append((name, shortcuts))
    try:
        yield
    finally:  # another thread may have appended since
        _forced.remove((name, shortcuts))


def runs_natively(rows: Rows, rule: Rule) -> bool:
    """Whether the native engine can walk a policy with these parts: they are built in."""
    built_in = all("native" in vars(type(part)) for part in (rows, rule))
    return built_in and (not rows.joint or rule.native == "Thompson")


def native_walk(readable: descent.Walk) -> Walk:
    """Return the native twin of a readable walk, which shares its arrays."""
    assert native is not None
    shape, rows, rule = readable.shape, readable.rows, readable.rule
    rows.walked_natively = True
    walk: Walk = native.Walk(
        shape.start,
        shape.parent,
        shape.content,
        shape.node_of,
        arms=readable.arms,
        position_of=readable.position_of,
        belief=rows.native,
        arrays=rows.native_arrays(),
        dim=rows.dim or 0,
        v=getattr(rows, "v", 1.0),
        rule=rule.native,
        c=rule.native_c,
        flag=rule.native_flag,
        summary=readable.summary,
        stream=readable.rng,
        explore=readable.explore,
        fade_every=readable.fading.every,
        fade_factor=readable.fading.factor,
        law=rows.law,
    )
    rows.joins(walk)
    if _forced and not _forced[-1][1]:
        walk.min_wide = 2**31 - 1
    return walk
