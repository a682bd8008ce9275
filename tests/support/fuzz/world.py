"""One random policy and a random sequence of calls on it; after each, the policy must be what the oracle says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import banditree as bt
from banditree.errors import BanditreeError
from banditree.policy import engines
from tests.support.fuzz.calls import CALLS, paths
from tests.support.fuzz.oracle import Oracle, differences
from tests.support.helpers import ENGINES, same, state

PRIORS = [
    bt.Beta(1, 1),
    bt.Beta(3, 9),
    bt.Beta(0.5, 0.25),
    bt.Gaussian(sd=1.0),
    bt.Gaussian(2.0, mean=0.5, prior_sd=0.5),
]
# The oracle adds up what rewards leave in vectors of contexts alone; LinATS adds an intercept and more of its own.
KNOWN = {name: kind for name, kind in bt.ALGORITHMS.items() if kind is not bt.LinATS}
OPTIONS: dict[str, list[Any]] = {
    "prior": PRIORS,
    "depth": [None, 0, 1, 2],
    "dim": [1, 3],
    "clock": ["cluster", "global"],
    "best": ["empirical", "posterior"],
    "v": [0.25, 1.0],
    "c": [0.5, 2.0],
    "arm_sd": [0.3],
    "cluster_sd": [1.0, (2.0, 0.5)],
    "noise": [1.0],
}


class Wrong(AssertionError):
    """A policy did what it must not; the message has the calls that lead there."""


class World:
    """A policy, its oracle, and what they went through. The same seeds make the same world."""

    def __init__(self, *seeds: int, kinds: dict[str, Any] | None = None) -> None:
        self.rng, self.made = np.random.default_rng(seeds), count()
        kinds = KNOWN if kinds is None else kinds
        name, self.engine = self.pick(list(kinds)), self.pick(ENGINES)
        self.exact = bool(self.rng.random() < 0.7)  # rewards and contexts that add up without rounding
        self.ints = bool(self.rng.random() < 0.5)  # arm ids
        self.gone: list[Any] = []  # arms that were there once
        known = kinds[name].about.parameters
        options = {option: self.pick(values) for option, values in OPTIONS.items() if option in known}
        if "dim" in options:
            options.pop("prior", None)  # a linear prior would have a dim of its own
        first = paths(self, int(self.rng.choice([1, 2, 6, 20, 120], p=[0.1, 0.1, 0.4, 0.3, 0.1])))
        with engines.using(self.engine):
            self.policy = kinds[name](bt.Tree.from_paths(first), rng=int(self.rng.integers(2**31)), **options)
        self.oracle = Oracle(first, self.policy.dim, self.policy.depth)
        shown = "".join(f", {key}={value!r}" for key, value in options.items())
        self.calls = [f"{name}(Tree.from_paths({first!r}){shown}) on the {self.engine} engine"]

    def pick(self, things: Any) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def step(self) -> None:
        """One call, and a look at what it left."""
        name = self.pick(list(CALLS))
        call = CALLS[name](self, bool(self.rng.random() < 0.3))
        self.calls.append(f"{name}: {call.text}" + (" (bad)" if call.refused else ""))
        before, stream, tree = state(self.policy), stream_state(self.policy), self.policy.tree
        try:
            result = call.run(self.policy)
        except BanditreeError as error:
            self.demand(call.refused, f"refused a good call: {error}")
            self.demand(stream_state(self.policy) == stream, f"refusing moved the stream: {error}")
        else:
            self.demand(not call.refused, "took a bad call")
            if call.learn is not None:
                call.learn(result)
        if call.learn is None or call.refused:
            self.demand(self.policy.tree is tree and same(before, state(self.policy)), "changed what it must not")
        elif len(self.oracle.paths) < 50 or self.rng.random() < 0.2:
            self.compare()

    def compare(self) -> None:
        found = differences(self.policy, self.oracle, exact=self.exact)
        self.demand(not found, "; ".join(found[:3]))

    def demand(self, kept: bool, what: str) -> None:
        if not kept:
            raise Wrong(f"{type(self.policy).__name__} {what}\n  " + "\n  ".join(self.calls))

    def reload(self, spoil: Callable[[bytes], bytes]) -> bt.Policy:
        """Save the policy and load what was written, after ``spoil`` had a hand in it."""
        with tempfile.TemporaryDirectory() as folder, engines.using(self.engine):
            file = Path(folder) / "policy"
            self.policy.save(file)
            file.write_bytes(spoil(file.read_bytes()))
            return bt.load(file, rng=int(self.rng.integers(2**31)))

    def replace(self, policy: bt.Policy) -> None:
        """Go on with what was loaded, which is the same to the last bit."""
        self.demand(same(state(self.policy), state(policy)), "is another after loading")
        self.policy = policy


def stream_state(policy: Any) -> str:
    """The random stream's own state, in full."""
    stream = policy._stream
    return repr(stream.bit_generator.state if isinstance(stream, np.random.Generator) else stream.state().tolist())


def fuzz(seed: int, worlds: Iterator[int], *, steps: int = 40, kinds: dict[str, Any] | None = None) -> int:
    """Let each of these worlds of a seed run for some steps; gives the number of calls."""
    made = 0
    for number in worlds:
        world = World(seed, number, kinds=kinds)
        try:
            for _ in range(steps):
                world.step()
            world.compare()
        except Exception as error:
            raise Wrong(
                f"{type(error).__name__}: {error}\nagain: python -m tests.support.fuzz --seed {seed} --world {number}"
            ) from error
        made += steps
    return made
