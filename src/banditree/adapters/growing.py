"""Add arms and features to a policy as they are first seen, for tools that do not list them in advance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real

import numpy as np

from banditree.base.arrays import Floats
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import Policy
from banditree.policy.factories import Factory, asks_for_dim
from banditree.stream import Seed, seed_sequence
from banditree.tree import Tree
from banditree.tree.build import Name

Learned = tuple[Name, float, dict[Hashable, float]]  # an arm, its reward, the features of the context

MAX_FEATURES = 1000
CONSTANT = ("constant",)  # the key of the column that is always 1


class GrowingPolicy:
    """A policy that is built at its first decision and extended when new arms or features appear.

    A context becomes a vector with one column per feature. Numbers in a list have a column for each position; features
    by name, and values that are text, get a column when they are first seen. When the columns are used up, the policy
    is built again with twice as many and learns all its rewards again. This changes no belief, as a new feature was 0
    before. Policies without an intercept of their own also get a column that is always 1.

    ``factory`` is a policy class, or a function ``factory(tree, rng=rng)``; if it has a parameter ``dim``, that is set
    too. ``tree`` has the arms known already, if there are any.
    """

    def __init__(self, factory: Factory, rng: Seed, tree: Tree | None = None) -> None:
        if not callable(factory):
            raise InvalidType(f"{factory!r:.60} is not a policy class, nor a function that builds a policy")
        self.factory = factory
        self._policy: Policy | None = None
        self._seed = seed_sequence(rng)
        self._tree = tree
        self._n_built = 0
        self._grows = asks_for_dim(factory)
        self._columns: dict[Hashable, int] = {}
        self._dim = 0
        self._history: list[Learned] | None = None  # kept only if columns may be added

    @property
    def policy(self) -> Policy:
        """The policy, with its beliefs."""
        if self._policy is None:
            raise InvalidValue("there is no policy yet: it is built at the first decision")
        return self._policy

    def offer(self, arms: Mapping[Name, Sequence[object]], context: object) -> Policy:
        """Make sure that the policy has these arms ({arm: its clusters}) and the context's features, and return it."""
        if self._policy is None and self._tree is None:
            self._tree = Tree.from_paths([(*clusters, arm) for arm, clusters in arms.items()])
        self._add_columns(context)
        if self._policy is None:
            self._policy = self._build()
        new = {arm: tuple(clusters) for arm, clusters in arms.items() if arm not in self.policy.tree}
        if new:
            self.policy.add_arms(new)
        return self.policy

    def vector(self, context: object) -> object:
        """Return a context as this policy takes it: a vector, or None if it takes none."""
        if self.policy.dim is None:
            return None
        return self._row(features_of(context)) if self._grows else context

    def update(self, arm: Name, reward: float, context: object) -> None:
        """Learn from one reward of an arm that was offered before."""
        policy = self.offer({}, context)
        policy.update(arm, reward, context=self.vector(context))
        if self._history is not None:
            self._history.append((arm, float(reward), features_of(context)))

    def _add_columns(self, context: object) -> None:
        """Give every feature of a context a column, and rebuild the policy if that takes more than it has."""
        if not self._grows:
            return
        new: list[Hashable] = [key for key in features_of(context) if key not in self._columns]
        if self._policy is None:
            if not new or not has_intercept(self.factory):  # every policy needs a column
                new = [CONSTANT, *new]
            self._history = None if _is_dense(context) else []
        elif new and self._history is None:
            raise InvalidValue(f"context {context!r:.60} differs in length from the first, which was a list of numbers")
        if len(self._columns) + len(new) > MAX_FEATURES:
            raise InvalidValue(
                f"contexts have more than {MAX_FEATURES:,} different features (the latest is {new[-1]!r:.60}); "
                "group rare ones, or hash them"
            )
        for key in new:
            self._columns.setdefault(key, len(self._columns))
        if len(self._columns) > self._dim:
            self._dim = min(MAX_FEATURES, max(len(self._columns), 2 * self._dim))
            if self._policy is not None:
                self._rebuild()

    def _rebuild(self) -> None:
        """Replace the policy by one with more columns that has learned the same rewards."""
        self._tree = self.policy.tree
        policy = self._build()
        if self._history:
            arms, rewards, features = zip(*self._history, strict=True)
            policy.update_many(list(arms), list(rewards), contexts=np.array([self._row(row) for row in features]))
        self._policy = policy

    def _build(self) -> Policy:
        """Build a policy on the present tree, with a random stream that no earlier one had."""
        seed = np.random.SeedSequence(self._seed.entropy, spawn_key=(*self._seed.spawn_key, self._n_built))
        self._n_built += 1
        settings = {"dim": self._dim} if self._grows else {}
        policy = self.factory(self._tree, rng=seed, **settings)
        if not isinstance(policy, Policy):
            raise InvalidType(f"{self.factory!r:.60} returned a {type(policy).__name__}; it must return a policy")
        return policy

    def _row(self, features: Mapping[Hashable, float]) -> Floats:
        row = np.zeros(self._dim)  # (dim,)
        if CONSTANT in self._columns:
            row[self._columns[CONSTANT]] = 1.0
        for key, value in features.items():
            row[self._columns[key]] = value
        return row


def has_intercept(factory: Factory) -> bool:
    """Say whether policies of this factory have a level of their own, so that contexts need no constant."""
    return bool(getattr(factory(Tree(2), dim=1, rng=0).belief, "has_intercept", False))


def features_of(context: object) -> dict[Hashable, float]:
    """Return a context as {feature: number}.

    A list has its positions as features. A value that is text, or a feature that is a bare text, counts 1 under a name
    of its own.

    >>> features_of([0.5, 2]), features_of({"age": 30, "device": "phone"}), features_of(None)
    ({(0,): 0.5, (1,): 2.0}, {('age',): 30.0, ('device', 'phone'): 1.0}, {})
    """
    features: dict[Hashable, float] = {}
    for key, value in _leaves((), context):
        if isinstance(value, str):
            features[*key, str(value)] = 1.0
        elif isinstance(value, Real):
            try:
                features[key] = float(value)
            except OverflowError:
                name = key[-1] if key else ""
                raise InvalidValue(
                    f"feature {name!r} of a context is {value!s:.60}, too large to compute with"
                ) from None
        else:
            raise InvalidType(
                f"feature {key[-1] if key else ''!r} of a context is {value!r:.60}; give numbers and text"
            )
    return features


def _leaves(key: tuple[object, ...], value: object) -> Iterable[tuple[tuple[object, ...], object]]:
    """Walk a context of lists and mappings, which may be nested, as one-hot tuples are in coba's lists."""
    if value is None and not key:
        return
    if hasattr(value, "items"):
        for name, entry in value.items():
            yield from _leaves((*key, name), entry)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for position, entry in enumerate(value):
            yield from _leaves((*key, position), entry)
    else:
        yield key, value


def _is_dense(context: object) -> bool:
    """Say whether a context is numbers in a fixed order, so that later ones have the same columns."""
    return not hasattr(context, "items") and not any(isinstance(value, str) for _, value in _leaves((), context))
