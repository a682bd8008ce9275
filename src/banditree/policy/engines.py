"""Which engine walks: the readable one, or the native one where it was built and all three parts are built in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import BetaRows, CountsRows, GaussianRows, LinearRows, Rows
from banditree.beliefs.base import Floats
from banditree.errors import InvalidValue
from banditree.errors.checks import LARGEST
from banditree.policy import descent
from banditree.rules import UCB, BestArm, Rule, Thompson
from banditree.stream import generator, native, native_stream
from banditree.tree.shape import Shape

NATIVE_ROWS: dict[type[Rows], str] = {
    BetaRows: "Beta",
    GaussianRows: "Gaussian",
    LinearRows: "Linear",
    CountsRows: "Counts",
}
NATIVE_RULES: tuple[type[Rule], ...] = (Thompson, UCB, BestArm)


@dataclass(frozen=True, eq=False)
class _Forced:
    engine: str
    shortcuts: bool


_forced: list[_Forced] = []  # by `using`, the latest last


class Walk(Protocol):
    """What a policy needs of an engine. ``descent.Walk`` is the readable one."""

    evaluations: int
    narrowest: int  # nodes with at least this many children are walked by an exact shortcut, where there is one

    def close(self, closed: bool = True) -> None: ...
    def reset(self) -> None: ...
    def choose(self, context: Any) -> int: ...
    def choose_many(self, m: int, contexts: Floats | None) -> NDArray[np.int32] | None: ...
    def update(self, arm: int, reward: Any, context: Any) -> bool: ...
    def update_few(self, arms: NDArray[np.int64], rewards: Floats, contexts: Floats | None) -> bool: ...


def engine() -> str:
    """The engine that built-in policies run on: "native" or "readable".

    ``BANDITREE_ENGINE=readable`` in the environment chooses the readable one; "native" fails where it was not built.

    >>> engine() in ("native", "readable")
    True
    """
    wanted = _forced[-1].engine if _forced else os.environ.get("BANDITREE_ENGINE", "")
    if wanted not in ("", "native", "readable"):
        raise InvalidValue(f"BANDITREE_ENGINE={wanted!r} must be 'native' or 'readable'")
    if wanted == "native" and native is None:
        raise InvalidValue("BANDITREE_ENGINE='native' on an install without it; reinstall with a C++ compiler")
    return wanted or ("readable" if native is None else "native")


@contextmanager
def using(name: str, *, shortcuts: bool = True) -> Iterator[None]:
    """Build policies on one engine for a while, in all threads, whatever the environment says.

    Without ``shortcuts`` the native engine draws from every child of wide nodes too, in the order of the readable one.
    """
    ours = _Forced(name, shortcuts)
    _forced.append(ours)
    try:
        yield
    finally:  # another thread may have come after us, and stay
        _forced.remove(ours)


def runs_natively(rows: Rows, rule: Rule, on: str) -> bool:
    """Whether a policy of these parts is walked by the native engine: it is wanted, and the parts are built in."""
    return on == "native" and type(rows) in NATIVE_ROWS and type(rule) in NATIVE_RULES


def stream_for(rows: Rows, rule: Rule, rng: Any, on: str) -> Any:
    """The random stream a policy of these parts draws from."""
    return native_stream(rng) if runs_natively(rows, rule, on) else generator(rng)


def build(shape: Shape, rows: Rows, rule: Rule, summary: NDArray[np.int32] | None, stream: Any, on: str) -> Walk:
    """A walk on the engine that `runs_natively` names; the native one works on the very arrays of ``rows``."""
    if not runs_natively(rows, rule, on):
        return descent.Walk(shape, rows, rule, summary, stream)
    assert native is not None
    c, flag = np.nan, False
    if isinstance(rule, UCB):
        c, flag = np.nan if rule.c is None else rule.c, rule.clock == "global"
    elif isinstance(rule, BestArm):
        flag = rule.best == "posterior"
    walk: Walk = native.Walk(
        shape.start,
        shape.parent,
        shape.content,
        shape.node_of,
        belief=NATIVE_ROWS[type(rows)],
        arrays=rows.native_arrays(),
        dim=rows.dim or 0,
        v=getattr(rows, "v", 1.0),
        rule=type(rule).__name__,
        c=c,
        flag=flag,
        summary=summary,
        stream=stream,
    )
    if _forced and not _forced[-1].shortcuts:
        walk.narrowest = 2**31 - 1
    return walk


def group(positions: NDArray[np.int64], rewards: Floats, support: tuple[float, float], n_arms: int, on: str) -> Any:
    """How many rewards each arm got, and their sum, (arms,) each; or the place of the first reward not allowed."""
    low, high = max(support[0], -LARGEST), min(support[1], LARGEST)
    if on == "native" and native is not None:
        both = np.zeros((n_arms, 2))  # side by side: one look at the memory for both
        bad = native.group(positions, rewards, low, high, both)
        return both.T if bad < 0 else bad
    outside = ~((rewards >= low) & (rewards <= high))  # NaN too
    return int(outside.argmax()) if outside.any() else descent.group(positions, rewards, n_arms)
