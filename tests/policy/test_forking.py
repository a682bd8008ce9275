"""Processes that are forked with policies in them: nobody waits for a thread that is not there, and streams part."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import banditree as bt

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
WAIT = 60  # seconds; only where a child hangs


def in_a_child(act: Callable[[], object]) -> str:
    """What ``repr(act())`` is in a forked process; "hangs" where it does not come back."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about forks beside threads
        child = os.fork()
    if child == 0:  # nothing of the tests' own runs on here
        try:
            os.write(write, repr(act()).encode())
        except BaseException as error:
            os.write(write, f"failed: {error!r}".encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], WAIT)
        return os.read(read, 10_000).decode() if ready else "hangs"
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def beside(act: Callable[[], object]) -> Iterator[None]:
    """Another thread that does something all the time."""
    stop, before = threading.Event(), sys.getswitchinterval()

    def again_and_again() -> None:
        sys.settrace(None)  # coverage's own lock must not be held at the moment of the fork
        while not stop.is_set():
            act()

    thread = threading.Thread(target=again_and_again)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def works(policy: bt.Policy) -> bool:
    """A few calls of all kinds."""
    policy.choose()
    policy.choose_many(3)
    policy.update("a", 1)
    policy.update_many(["a", "b"], [1, 0], plays=[2, 1])
    policy.add_arms({"in the child": ("x",)})
    policy.forget(0.5)
    return policy.slate(2, exclude=["a"])[0] in policy.tree


def test_a_fork_while_another_thread_learns(engine: str) -> None:
    policy = bt.TSC(bt.Tree({"x": ["a", "b"], "y": ["c"]}), rng=1)

    def learn() -> None:
        policy.update_many(["a", "c"], [1, 0], plays=[1, 1])
        policy.table()
        policy.forget(0.9)

    with beside(learn):
        found = {in_a_child(lambda: works(policy)) for _ in range(8)}
    assert found == {"True"}
    assert works(policy)


def test_a_fork_while_another_thread_draws(engine: str) -> None:
    """NumPy's generators hold a lock of their own while they draw."""
    policy = bt.TS(bt.Tree(["a", "b", "c"]), rng=1)
    with beside(lambda: policy.choose_many(20_000)):
        found = {in_a_child(lambda: policy.choose_many(5).shape) for _ in range(12)}
    assert found == {"(5,)"}


def test_a_fork_while_another_thread_computes_probabilities() -> None:
    """The native engine does so without the GIL."""
    policy = bt.ATS(bt.Tree({f"cluster {c}": [f"arm {c} {i}" for i in range(30)] for c in range(20)}), rng=1)
    arms = policy.tree.arms

    def decide() -> float:
        policy.update(arms[np.random.default_rng().integers(len(arms))], 1)
        return policy.decide(exclude=arms[:3]).propensity

    with beside(decide):
        found = {in_a_child(lambda: decide() > 0) for _ in range(12)}
    assert found == {"True"}
    assert decide() > 0


def test_streams_part(engine: str, tmp_path: Path) -> None:
    """As those of copies: a forked process draws from a fresh stream, whatever the seed was."""
    tree = bt.Tree(1000)
    bt.TS(tree).save(tmp_path / "policy")
    policies = {
        "built": bt.TS(tree),
        "with a seed": bt.TS(tree, rng=3),
        "loaded": bt.load(tmp_path / "policy", rng=3),
        "with a generator": bt.TS(tree, rng=np.random.default_rng(3)),
    }
    for what, policy in policies.items():
        runs = [in_a_child(lambda p=policy: p.choose_many(5).tolist()) for _ in range(2)]  # type: ignore[misc]
        runs.append(repr(policy.choose_many(5).tolist()))
        assert len(set(runs)) == 3, what


def test_beliefs_are_those_of_the_parent(engine: str) -> None:
    policy = bt.TSC(bt.Tree({"x": ["a", "b"], "y": ["c"]}), half_life=2.5)
    policy.update_many(["a", "b"], [1, 0])
    rows = policy.table()

    def later() -> list[float]:
        policy.update_many(["a", "b", "c"], [1, 0, 1])
        return [row.plays for row in policy.table()]

    assert in_a_child(lambda: [row.plays for row in policy.table()]) == repr([row.plays for row in rows])
    assert in_a_child(later) == repr(later())
