"""A problem is a distribution over instances; an instance is trees over the same arms and how their rewards are drawn.

The protocols say what a problem, or an instance, of the user's own needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from banditree.base.arrays import Floats
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import choice
from banditree.problems.rewards import MAX_MEAN, Rewards
from banditree.stream import Seed, generator
from banditree.tree import Tree
from banditree.tree.build import Name
from banditree.tree.lookup import by_arm

CONTEXTS = ("normal", "uniform", "unit", "constant", "hidden")
MAX_SHOWN = 200  # characters of a part of a problem


@dataclass(frozen=True, eq=False)
class Instance:
    """One instance: expected rewards are ``means``, or linear in a context, theta.x.

    Parameters
    ----------
    trees
        {name: tree} over the same arms; the first is the default.
    rewards
        The distribution of rewards around their expected value.
    means
        The paper's mu, {arm: mean} or in the order of the first tree's arms.
    theta
        Coefficients instead of means, one row per arm.
    contexts
        With ``theta``, how contexts are drawn: "normal" is N(0, I), "uniform" is U[0, 1]^dim, "unit" is a vector of
        length 1 in a uniform direction, "constant" is a 1 and then N(0, I). "hidden" is the same, but policies do not
        see the 1: theta has one number more than contexts, its level, the first.

    >>> from banditree.problems.rewards import Bernoulli
    >>> instance = Instance({"shop": Tree(["hat", "shoe"])}, Bernoulli(), means=np.array([0.2, 0.7]))
    >>> instance.expected("hat"), instance.best()
    (0.2, 0.7)
    >>> instance.reward("shoe", np.random.default_rng(0))
    1.0
    """

    trees: Mapping[str, Tree]  # the first is the default
    rewards: Rewards
    means: Floats | None = None  # (arms,)
    theta: Floats | None = None  # (arms, dim)
    contexts: str | None = None

    def __post_init__(self) -> None:
        trees: object = self.trees
        if not isinstance(trees, Mapping) or not all(isinstance(tree, Tree) for tree in trees.values()):
            raise InvalidType(f"trees={trees!r:.60} must be a mapping from names to bt.Tree, even for a single one")
        if not self.trees:
            raise InvalidValue("an instance needs at least one tree")
        if not isinstance(self.rewards, Rewards):
            raise InvalidType(
                f"rewards={self.rewards!r:.60} must be a reward distribution, such as bt.problems.Bernoulli()"
            )
        for name in ("means", "theta"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, by_arm(self.tree, name, getattr(self, name)))
        for name, tree in self.trees.items():
            if tree.arms != self.arms and set(tree.arms) != set(self.arms):
                raise InvalidValue(f"tree {name!r} has other arms than tree {next(iter(self.trees))!r}")
        if (self.means is None) == (self.theta is None):
            raise InvalidType("an instance needs either means or theta")
        if self.means is not None:
            self._check_means(self.means)
        if self.theta is not None:
            self._check_theta(self.theta)

    def _check_means(self, means: Floats) -> None:
        low, high = self.rewards.support
        if means.shape != (self.tree.n_arms,):
            raise InvalidValue(f"means have shape {means.shape}; {self.tree!r} needs ({self.tree.n_arms},)")
        low, high = max(low, -MAX_MEAN), min(high, MAX_MEAN)
        wrong = ~((low <= means) & (means <= high))  # NaN too
        if wrong.any():
            arm = self.arms[int(wrong.argmax())]
            allowed = f"from {low:g} to {high:g}"
            raise InvalidValue(f"mean {float(means[wrong][0])} of arm {arm!r} must be {allowed} for {self.rewards}")
        if self.contexts is not None:
            raise InvalidType("contexts go with theta; means do not depend on a context")

    def _check_theta(self, theta: Floats) -> None:
        if theta.ndim != 2 or len(theta) != self.tree.n_arms or theta.shape[1] == 0:
            raise InvalidValue(f"theta has shape {theta.shape}; {self.tree!r} needs ({self.tree.n_arms}, dim)")
        wrong = ~(np.abs(theta) <= MAX_MEAN).all(axis=1)  # NaN too
        if wrong.any():
            arm = self.arms[int(wrong.argmax())]
            raise InvalidValue(f"theta of arm {arm!r} is not finite, or above {MAX_MEAN:g}: {theta[wrong][0]}")
        if self.contexts == "hidden" and theta.shape[1] < 2:
            raise InvalidValue("theta needs a level and at least one more number where contexts='hidden'")
        if np.isfinite(self.rewards.support).any() and not self.rewards.links:
            raise InvalidValue(f"{self.rewards} is bounded and theta.x is not; use Uniform() or Gaussian(sd)")
        choice("contexts", self.contexts, CONTEXTS)

    @cached_property
    def tree(self) -> Tree:
        """The first tree, on which policies are built unless they ask for another."""
        return next(iter(self.trees.values()))

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms in the order of ``means`` and ``theta``."""
        return self.tree.arms

    @property
    def dim(self) -> int | None:
        """The length of the contexts, None where there are none."""
        return None if self.theta is None else self.theta.shape[1] - (self.contexts == "hidden")

    def context(self, rng: Seed) -> Floats | None:
        """Draw the context of a decision (the paper's x): (dim,), or None."""
        if self.contexts is None:
            return None
        stream = _stream(rng)
        if self.contexts == "constant":
            return np.concatenate([np.ones(1), stream.standard_normal((self.dim or 1) - 1)])
        drawn: Floats = stream.random(self.dim) if self.contexts == "uniform" else stream.standard_normal(self.dim)
        return drawn / np.sqrt(_dot(drawn, drawn)) if self.contexts == "unit" else drawn

    def reward(self, arm: Name, rng: Seed, context: object = None) -> float:
        """Draw the reward of an arm."""
        return self.rewards.draw(self.expected(arm, context), _stream(rng))

    def expected(self, arm: Name, context: object = None) -> float:
        """Return the expected reward of an arm; the context matters only for linear rewards."""
        position = self.tree.position(arm)
        if self.theta is None:
            return self._means[position]
        return self.rewards.expected(float(_dot(self.theta[position], self._check_context(context))))

    def best(self, context: object = None) -> float:
        """Return the highest expected reward of all arms (the paper's mu*)."""
        if self.theta is None:
            return self._best_mean
        return self.rewards.expected(float(_dot(self.theta, self._check_context(context)).max()))

    @cached_property
    def _means(self) -> list[float]:
        assert self.means is not None
        return [float(mean) for mean in self.means]

    @cached_property
    def _best_mean(self) -> float:
        return max(self._means)

    def _check_context(self, context: object) -> Floats:
        if context is None:
            raise InvalidType(
                f"rewards of this instance are linear in a context; give context=x with {self.dim} numbers"
            )
        try:
            given = np.asarray(context, np.float64)
        except (TypeError, ValueError):
            raise InvalidType(f"context={context!r:.60} must be {self.dim} numbers") from None
        if given.shape != (self.dim,):
            raise InvalidValue(f"context has shape {given.shape}; it must be ({self.dim},)")
        return np.concatenate([np.ones(1), given]) if self.contexts == "hidden" else given


def _stream(rng: Seed) -> Any:
    """Return anything that draws like a Generator unchanged; make one from an int or a SeedSequence."""
    return rng if hasattr(rng, "random") else generator(rng)


def _dot(theta: Floats, x: Floats) -> Floats:
    """Return theta.x over the last axis, summed from left to right, so that both engines round the same: (...,)."""
    total: Floats = theta[..., 0] * x[0]
    for i in range(1, len(x)):
        total = total + theta[..., i] * x[i]
    return total


@runtime_checkable
class AnyInstance(Protocol):
    """Trees over the same arms, the first of which is ``tree``, and their rewards."""

    @property
    def tree(self) -> Tree: ...

    @property
    def trees(self) -> Mapping[str, Tree]: ...

    def context(self, rng: Any) -> Any: ...

    def reward(self, arm: Name, rng: Any, context: Any = None) -> float: ...

    def expected(self, arm: Name, context: Any = None) -> float: ...

    def best(self, context: Any = None) -> float: ...


@runtime_checkable
class AnyProblem(Protocol):
    """Draws instances from a NumPy Generator. It may also have ``name``, ``fixed`` and ``slow``, as `Problem` has."""

    def instance(self, rng: Any) -> AnyInstance: ...


@dataclass(frozen=True, eq=False)
class Problem:
    """Draws instances by ``draw(rng, **parameters)``, a function of a module, so that a problem can be pickled.

    >>> from banditree.problems import unstructured
    >>> problem = unstructured(n_arms=6, n_clusters=2)
    >>> problem
    unstructured(n_arms=6, n_clusters=2)
    >>> problem.instance(0).tree.clusters
    {0: [0, 1, 2], 1: [3, 4, 5]}
    """

    name: str
    draw: Callable[..., Instance]
    parameters: Mapping[str, Any]
    fixed: bool = False  # every seed has the same instance, which is drawn once
    slow: bool = False  # drawing takes long in Python, so it is worth several processes

    def instance(self, rng: Seed) -> Instance:
        """Draw one instance; ``rng`` is an int, a SeedSequence or a Generator."""
        if self.fixed:
            return self._fixed_instance
        return self.draw(generator(rng), **self.parameters)

    @cached_property
    def _fixed_instance(self) -> Instance:
        return self.draw(generator(0), **self.parameters)

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return _describe(self.name, self.parameters)


def describe(problem: object) -> str:
    """Describe a problem, so that problems with the same text draw the same instances.

    One of the user's own without a ``__repr__`` is described by its class and its public attributes.
    """
    if type(problem).__repr__ is not object.__repr__ or not hasattr(problem, "__dict__"):
        return repr(problem)
    public = {name: value for name, value in vars(problem).items() if not name.startswith("_")}
    return _describe(type(problem).__qualname__, public)


def _describe(name: str, parts: Mapping[str, object]) -> str:
    """Describe by name and parts; what is in arrays, trees and long texts is told by a digest."""
    shown = [
        f"{part}=array{value.shape}" if isinstance(value, np.ndarray) else f"{part}={value!r:.{MAX_SHOWN}}"
        for part, value in parts.items()
    ]
    if contents := list(_contents(parts)):
        shown.append(f"digest={hashlib.sha256(repr(contents).encode()).hexdigest()[:8]}")
    return f"{name}({', '.join(shown)})"


def _contents(value: object) -> Iterator[object]:
    """Yield what a text does not show."""
    if isinstance(value, np.ndarray):
        yield value.tolist()
    elif isinstance(value, Tree):
        yield value.paths()
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _contents(part)
    elif len(text := repr(value)) > MAX_SHOWN:
        yield text
