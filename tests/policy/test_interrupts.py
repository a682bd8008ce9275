"""An exception at any line of a change leaves a policy exactly as before or exactly as after, and in working order.

Ctrl-C and signal handlers raise anywhere. A tracer raises at each line of policies, beliefs and rules in turn, but for
``with`` and ``try``: Python takes no signals at a ``try``, nor between the body of a ``with`` and what leaves it.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy.state import hold
from tests.support.helpers import DIM, make, same, state

HOME = Path(bt.__file__).parent
OURS = tuple(str(HOME / part) for part in ("policy", "beliefs", "rules"))  # a tree never changes: it cannot be torn
TREE = bt.Tree({"x": ["a", "b"], "y": ["c"]})
RETREED = bt.Tree({"y": ["a"], "z": ["b", "c", "new"]})


class Interrupt(Exception):
    """What a signal handler raises."""


@cache
def is_ours(file: str) -> bool:
    return file.startswith(OURS)


Place = tuple[int, CodeType, int]  # the number of an entry into our code, the code, and the number of a line in it


def trace(call: Callable[[], Any], visit: Callable[[Place], None], only: int | None = None) -> None:
    """Visit every line of our code in a call, or those after one of the entries into it."""
    entries = count()

    def enter(frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if not is_ours(code.co_filename):
            return None
        entry = next(entries)
        if only is not None and entry != only:
            return None
        numbers = count()

        def step(frame: FrameType, event: str, _: Any) -> Any:
            line = linecache.getline(code.co_filename, frame.f_lineno).lstrip()
            if event == "line" and not line.startswith(("with ", "try:")):
                visit((entry, code, next(numbers)))
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)


def places(call: Callable[[], Any]) -> list[Place]:
    """Every line of our code that a call executes."""
    found: list[Place] = []
    trace(call, found.append)
    return found


def interrupted(call: Callable[[], Any], at: Place) -> Interrupt | None:
    """Raise at a line inside a call; None where the call does not come by."""
    entry, code, number = at

    def visit(place: Place) -> None:
        if place[1] is code and place[2] == number:
            raise Interrupt

    try:
        trace(call, visit, only=entry)
    except Interrupt as interrupt:
        return interrupt  # kept by whoever called, as a terminal keeps the last exception
    return None


def context(policy: bt.Policy) -> Any:
    return None if policy.dim is None else np.array([1.0, -1.0, 0.5])


def contexts(policy: bt.Policy, n: int) -> Any:
    return None if policy.dim is None else np.linspace(-1, 1, n * DIM).reshape(n, DIM)


def update(policy: bt.Policy) -> None:
    policy.update("b", 1.0, context(policy))


def update_many(policy: bt.Policy) -> None:
    policy.update_many(["a", "c", "a"], [1.0, 0.0, 0.0], contexts=contexts(policy, 3))


def update_slowly(policy: bt.Policy) -> None:
    """A reward that has to be converted."""
    policy.update("b", np.array(1.0), context(policy))


def update_many_slowly(policy: bt.Policy) -> None:
    """Rows that have to be converted."""
    policy.update_many(("a", "c", "a"), [1.0, 0.0, 0.0], plays=[1, 1, 2], contexts=contexts(policy, 3))


CHANGES: dict[str, Callable[[bt.Policy], None]] = {
    "update": update,
    "update_many": update_many,
    "update_slowly": update_slowly,
    "update_many_slowly": update_many_slowly,
    "forget": lambda policy: policy.forget(0.5),
    "add_arms": lambda policy: policy.add_arms({"new": ("y",)}),
    "move_arms": lambda policy: policy.move_arms({"a": ("y",)}),
    "remove_arms": lambda policy: policy.remove_arms(["a"]),
    "retree": lambda policy: policy.retree(RETREED),
}


CASES = [(name, change) for name in ("TSC", "TSMax", "LinTSC") for change in CHANGES]


def built(name: str) -> bt.Policy:
    policy = make(name, TREE, 1)
    policy.update_many(["a", "b", "c", "b"], [1.0, 0.0, 1.0, 1.0], contexts=contexts(policy, 4))
    policy.choose(context(policy))
    return policy


def all_of(policy: bt.Policy) -> dict[str, Any]:
    """Everything a policy knows. Looking at it is the first call after the exception."""
    with hold(policy):
        pass
    paths = np.array([repr(path) for path in policy.tree.paths()])
    return state(policy) | {"paths": paths}


@pytest.mark.parametrize(("name", "change"), CASES)
def test_a_change_is_whole_or_not_at_all(name: str, change: str, engine: str) -> None:
    act = CHANGES[change]
    policy = built(name)
    before = all_of(policy)
    act(policy)
    after = all_of(policy)
    assert not same(before, after)
    policy, ends = built(name), {"before": 0, "after": 0}
    for at in places(partial(act, built(name))):
        interrupt = interrupted(partial(act, policy), at)
        if interrupt is None:  # what it has computed before leads it another way
            policy = built(name)
            interrupt = interrupted(partial(act, policy), at)
        assert interrupt is not None
        assert not policy._lock._is_owned()  # type: ignore[attr-defined]
        assert policy.choose(context(policy)) in policy.tree  # the first call, and it need not look at anything
        now = all_of(policy)
        end = "before" if same(now, before) else "after"
        assert same(now, before if end == "before" else after), f"torn at {at}"
        ends[end] += 1
        if end == "after":
            assert policy.decide(context(policy), exclude=["c"]).arm != "c"
            update(policy)
            policy.update_many(["b"], [0.0], contexts=contexts(policy, 1))
            policy.add_arms({"one more": ("x",)})
            policy = built(name)
    assert ends["before"] >= 2  # lines: a native update has no more
    act(policy)
    assert same(all_of(policy), after)
