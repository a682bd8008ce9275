"""Problems that change over time: at regular steps the arms get the means of a new instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from banditree.base.arrays import Floats
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.problems.instance import AnyProblem, Instance
from banditree.stream import Seed, generator, seed_sequence
from banditree.tree.build import Name

MAX_STEPS = 10**12  # between two changes


def drifting(problem: AnyProblem, every: int = 5_000) -> Drifting:
    """Give the arms the means (or theta) of a new instance of ``problem`` every ``every`` steps.

    The tree stays the first one, and regret is measured against the arm that is best at that step. Until the first
    change the instance is that of ``problem`` itself, for the same rng.

    Parameters
    ----------
    problem
        A problem whose instances are :class:`Instance`, with the same arms and different means.
    every
        Steps between two changes.

    Examples
    --------
    >>> from banditree.problems import unstructured
    >>> instance = drifting(unstructured(n_arms=6, n_clusters=2), every=100).instance(0)
    >>> first, later = instance.truth(0), instance.truth(1)
    >>> bool((first == later).any())
    False
    """
    every = whole("every", every, 1, MAX_STEPS, why="the number of steps between two changes")
    if isinstance(problem, Drifting) or not callable(getattr(problem, "instance", None)):
        raise InvalidType(f"problem={problem!r:.60} must be a problem with instance(rng) that does not drift already")
    if getattr(problem, "fixed", False):
        raise InvalidValue(f"the means of {problem!r:.60} never change: every seed has the same instance")
    changing = Drifting(problem, every, slow=bool(getattr(problem, "slow", False)))
    instance = changing.instance(0)
    if np.array_equal(instance.truth(0), instance.truth(1)):
        raise InvalidValue(f"the means of {problem!r:.60} never change: two of its instances have the same ones")
    return changing


@dataclass(frozen=True, eq=False)
class Drifting:
    """A problem whose instances change over time; built by `drifting`."""

    problem: AnyProblem
    every: int
    slow: bool = False
    name: ClassVar[str] = "drifting"
    fixed: ClassVar[bool] = False

    @property
    def parameters(self) -> dict[str, object]:
        return {"problem": self.problem, "every": self.every}

    def __repr__(self) -> str:
        return f"drifting(problem={self.problem!r}, every={self.every})"

    def instance(self, rng: Seed) -> DriftingInstance:
        """Draw one instance; ``rng`` is an int, a SeedSequence or a Generator."""
        root = seed_sequence(rng)
        return DriftingInstance(_draw(self.problem, root), self.problem, root, self.every)


def _draw(problem: AnyProblem, seed: np.random.SeedSequence) -> Instance:
    instance = problem.instance(generator(seed))
    if type(instance) is not Instance:
        raise InvalidType(
            f"{problem!r:.60} returned {instance!r:.60}; only problems that return bt.problems.Instance can drift"
        )
    return instance


class DriftingInstance:
    """An instance that counts steps: each call of ``context`` starts the next one.

    So one object serves one run; `simulate` draws another for each policy.
    """

    def __init__(self, first: Instance, problem: AnyProblem, root: np.random.SeedSequence, every: int) -> None:
        self.first = self.now = first
        self.problem, self.root, self.every = problem, root, every
        self.tree, self.trees, self.arms = first.tree, first.trees, first.arms
        self.rewards, self.contexts, self.dim = first.rewards, first.contexts, first.dim
        self.step = 0  # the current step, counted from 1; 0 before the first

    @property
    def means(self) -> Floats | None:
        """The means at the current step: (arms,)."""
        return self.now.means

    @property
    def theta(self) -> Floats | None:
        """The coefficients at the current step: (arms, dim)."""
        return self.now.theta

    def truth(self, change: int) -> Floats:
        """Return means or theta after this many changes, in the order of the arms: (arms,) or (arms, dim)."""
        drawn = self.first
        if change:
            key = (*self.root.spawn_key, change)
            drawn = _draw(self.problem, np.random.SeedSequence(self.root.entropy, spawn_key=key))
        truth = drawn.means if self.dim is None else drawn.theta
        first = self.first.means if self.dim is None else self.first.theta
        if truth is None or first is None or set(drawn.arms) != set(self.arms) or truth.shape != first.shape:
            raise InvalidValue(f"instances of {self.problem!r:.60} have different arms or contexts; it cannot drift")
        if drawn.arms == self.arms:
            return np.require(truth, requirements=["C", "A"])
        return np.ascontiguousarray(truth[drawn.tree.positions(self.arms)])

    def context(self, rng: Seed) -> Floats | None:
        """Start the next step, and draw its context: (dim,), or None."""
        if self.step and self.step % self.every == 0:
            truth = self.truth(self.step // self.every)
            fields = {"means": truth} if self.dim is None else {"theta": truth}
            self.now = Instance(self.trees, self.rewards, contexts=self.contexts, **fields)
        self.step += 1
        return self.now.context(rng)

    def reward(self, arm: Name, rng: Seed, context: object = None) -> float:
        """Draw the reward of an arm."""
        return self.now.reward(arm, rng, context)

    def expected(self, arm: Name, context: object = None) -> float:
        """Return the expected reward of an arm at the current step."""
        return self.now.expected(arm, context)

    def best(self, context: object = None) -> float:
        """Return the highest expected reward of all arms at the current step."""
        return self.now.best(context)
