"""A catalogue: items in categories, with what is known of their rewards."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.posterior import Posterior
from banditree.errors import InvalidType, InvalidValue
from banditree.problems import Bernoulli, Instance, Problem, bernoulli
from banditree.problems.problem import Rng
from banditree.tree import Tree
from banditree.tree.values import by_arm

Floats = NDArray[np.float64]
CERTAIN = 1e9  # plays that stand for a mean that is known


class Catalogue:
    """A tree, and for each of its arms either ``plays`` and ``successes`` or its mean. `read_catalogue` makes one.

    Values are in the order of ``tree.arms``, or a mapping {arm: value}.

    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": ["h1"]})
    >>> Catalogue(tree, plays=[100, 50, 80], successes=[10, 4, 20])
    Catalogue(3 arms, 2 clusters, depth 1; 34 successes in 230 plays)
    """

    tree: Tree
    plays: Floats | None  # (arms,) in the order of tree.arms
    successes: Floats | None  # (arms,)
    means: Floats | None  # (arms,)
    notes: tuple[str, ...]  # what was cleaned while reading

    def __init__(
        self, tree: Tree, plays: Any = None, successes: Any = None, *, means: Any = None, notes: Iterable[str] = ()
    ) -> None:
        if (plays is None) != (successes is None) or (plays is None) == (means is None):
            raise InvalidType("a catalogue has plays and successes, or means")
        if not isinstance(tree, Tree):
            raise InvalidType(f"tree {tree!r:.60} is a {type(tree).__name__}; build one with bt.Tree(...)")
        self.tree, self.notes = tree, tuple(notes)
        self.plays, self.successes, self.means = (
            None if values is None else _checked(name, values, tree)
            for name, values in (("plays", plays), ("successes", successes), ("means", means))
        )
        if self.means is not None and (self.means > 1).any():
            raise InvalidValue(f"mean {self.means.max()} is above 1; means are rates from 0 to 1")
        if self.plays is not None and self.successes is not None and (self.successes > self.plays).any():
            arm = self.tree.arms[int((self.successes > self.plays).argmax())]
            raise InvalidValue(f"arm {arm!r} has more successes than plays")

    @property
    def _counts(self) -> tuple[Floats, Floats]:
        assert self.plays is not None
        assert self.successes is not None
        return self.plays, self.successes

    @property
    def rates(self) -> Floats:
        """Successes over plays, NaN for an arm without plays; or the means: (arms,)."""
        if self.means is not None:
            return self.means
        plays, successes = self._counts
        return successes / np.where(plays > 0, plays, np.nan)

    @cached_property
    def posterior(self) -> Posterior:
        """What is known of the true means. Means that were given count as known for certain."""
        if self.means is not None:
            return Posterior(self.tree, np.full(self.tree.n_arms, CERTAIN), self.means * CERTAIN)
        return Posterior(self.tree, *self._counts)

    def draws(self, n: int, rng: Rng) -> Floats:
        """True means of all arms in n worlds that the data allow; where means are known there is one: (n, arms)."""
        return self.posterior.draws(n, rng) if self.means is None else self.means[None, :]

    def world(self) -> Problem:
        """The catalogue as a problem to simulate: each seed meets true means that the counts allow, or the means."""
        if self.means is not None:
            return bernoulli({"catalogue": self.tree}, self.means)
        return Problem("catalogue", _draw, {"posterior": self.posterior})

    def __repr__(self) -> str:
        known = "means known"
        if self.plays is not None and self.successes is not None:
            known = f"{self.successes.sum():,.0f} successes in {self.plays.sum():,.0f} plays"
        return f"Catalogue({repr(self.tree)[5:-1]}; {known})"


def _draw(rng: Rng, posterior: Posterior) -> Instance:
    return Instance({"catalogue": posterior.tree}, Bernoulli(), means=posterior.draw(rng))


def tree_of(catalogue: Any) -> Tree:
    """The tree of a catalogue, or an error that says how to come by one."""
    if not isinstance(catalogue, Catalogue):
        how = "read it first with bt.read_catalogue(file, arm=..., path=[...], plays=..., successes=...)"
        raise InvalidType(f"catalogue {catalogue!r:.60} is a {type(catalogue).__name__}; {how}")
    return catalogue.tree


def _checked(name: str, values: Any, tree: Tree) -> Floats:
    array = by_arm(tree, name, values)
    if array.shape != (tree.n_arms,):
        raise InvalidValue(f"{name} has shape {array.shape}; {tree!r} needs one number an arm")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InvalidValue(f"{name} must be finite and not negative")
    return array
