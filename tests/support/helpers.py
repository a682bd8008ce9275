"""Small things the core's tests share: policies by name, trees of every shape, states to compare."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree import stream, testing

ENGINES = ["readable"] if stream.native is None else ["readable", "native"]
needs_native = pytest.mark.skipif(stream.native is None, reason="this install has no native engine")

# For Python in a process of its own: what a shell starts in the background ignores Ctrl-C, and its children with it.
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


@contextmanager
def to_be_stopped(code: str, *arguments: str, **pipes: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process that heeds Ctrl-C, and is gone afterwards whatever happens.

    It does not measure coverage: where Ctrl-C falls into the tracer, the tracer keeps its lock for ever.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", f"{HEED_CTRL_C}\n{code}", *arguments]
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


DIM = 3
NAMES = list(bt.ALGORITHMS)
TREES = testing.example_trees()
SHOP = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})

State = dict[str, NDArray[Any]]
Factory = Callable[..., bt.Policy]


def make(name: str, tree: bt.Tree, rng: Any = 0, **options: Any) -> bt.Policy:
    """A policy by its name; the linear ones with contexts of length DIM."""
    if name.startswith("Lin"):
        options.setdefault("dim", DIM)
    return bt.ALGORITHMS[name](tree, rng=rng, **options)


def factory(name: str, **options: Any) -> Factory:
    return lambda tree, rng: make(name, tree, rng, **options)


def state(policy: bt.Policy) -> State:
    """Copies of every array a policy has, and of its tree's skeleton."""
    kept = testing.beliefs(policy)
    assert kept is not None
    shape = policy._state.walked_tree.shape
    return kept | {"start": shape.start.copy(), "content": shape.content.copy()}


def same(one: State, two: State, **tolerance: Any) -> bool:
    """Whether two states are equal, exactly unless a tolerance is given."""
    if one.keys() != two.keys():
        return False
    if tolerance:
        return all(one[k].shape == two[k].shape and np.allclose(one[k], two[k], **tolerance) for k in one)
    return all(np.array_equal(one[k], two[k]) for k in one)


def contexts(policy: bt.Policy, n: int, rng: np.random.Generator) -> Any:
    """n contexts as the policy needs them: (n, dim) or n times None."""
    return [None] * n if policy.dim is None else rng.standard_normal((n, policy.dim))


def run(policy: bt.Policy, steps: int, rng: Any) -> list[Any]:
    """Choose and learn for a while; every arm has a reward probability of its own by its place."""
    rng = np.random.default_rng(rng)
    arms = []
    for x in contexts(policy, steps, rng):
        arm = policy.choose(x)
        place = policy.tree.position(arm)
        policy.update(arm, float(rng.random() < (place % 7 + 1) / 9), x)
        arms.append(arm)
    return arms


def feed(policy: bt.Policy, events: Iterable[tuple[Any, float, Any]]) -> bt.Policy:
    for arm, reward, context in events:
        policy.update(arm, reward, context)
    return policy


def events(
    tree: bt.Tree, n: int, rng: Any, dim: int | None = None, binary: bool = True
) -> list[tuple[Any, float, Any]]:
    """Rewards for random arms, with contexts where ``dim`` says so."""
    rng = np.random.default_rng(rng)
    found = []
    for place in rng.integers(tree.n_arms, size=n):
        reward = float(rng.integers(2)) if binary else float(rng.random())
        found.append((tree.arms[place], reward, None if dim is None else rng.standard_normal(dim)))
    return found


def misaligned(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, one byte off the place where a processor wants them."""
    raw = np.empty(array.nbytes + 1, np.uint8)
    moved: NDArray[Any] = raw[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def masked(values: Any) -> Any:
    """The same numbers, the last one behind a mask."""
    mask = np.zeros(np.shape(values), bool)
    mask[-1] = True
    return np.ma.array(values, mask=mask)
