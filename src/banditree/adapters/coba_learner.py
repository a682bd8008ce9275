"""Present a policy as a coba learner: `params`, `score`, `predict` and `learn`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Real
from typing import Any

from coba.primitives import Learner, is_batch

from banditree.adapters.growing import GrowingPolicy
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import Policy
from banditree.policy.factories import Factory
from banditree.stream import Seed
from banditree.tree.build import Name

Action = Any  # a value, a sequence of values or a mapping, as coba has them


class CobaLearner(Learner):  # type: ignore[misc]
    """A coba learner that decides by a policy of banditree. Made by `bt.adapters.coba`, which documents it."""

    def __init__(self, factory: Factory, path: Callable[[Action], Sequence[object]] | None, rng: Seed) -> None:
        if path is not None and not callable(path):
            raise InvalidType(f"path {path!r:.60} must be a function of an action, such as lambda action: (action[0],)")
        self._path = path or clusters_of
        self._growing = GrowingPolicy(factory, rng)
        self._arms: dict[Hashable, Name] = {}
        self._names: set[Name] = set()

    @property
    def policy(self) -> Policy:
        """The policy, with its beliefs. There is none before the first decision."""
        return self._growing.policy

    @property
    def params(self) -> dict[str, object]:
        """What coba's tables show: the algorithm, its settings, and where the clusters come from."""
        factory = self._growing.factory
        function = getattr(factory, "func", factory)
        settings = {name: _plain(value) for name, value in getattr(factory, "keywords", {}).items()}
        path = {} if self._path is clusters_of else {"path": getattr(self._path, "__name__", type(self._path).__name__)}
        return {"family": getattr(function, "__name__", type(function).__name__), **settings, **path}

    def predict(self, context: object, actions: Sequence[Action]) -> tuple[Action, float]:
        """Choose one of the actions, and return it with the exact probability of choosing it."""
        policy, arms = self._offer(context, actions)
        decision = policy.decide(self._growing.vector(context), only=_limits(policy, arms))
        return actions[arms.index(decision.arm)], decision.propensity

    def score(self, context: object, actions: Sequence[Action], action: Action) -> float:
        """Return the exact probability of choosing ``action`` among ``actions``."""
        policy, arms = self._offer(context, actions)
        arm = self._arms.get(key_of(action))
        if arm not in arms:
            raise InvalidValue(f"action {action!r:.60} is not among the actions offered")
        probabilities = policy.propensities(self._growing.vector(context), only=_limits(policy, arms))
        return float(probabilities[policy.tree.position(arm)])

    def learn(self, context: object, action: Action, reward: float, probability: float | None) -> None:
        """Learn from the reward of an action, also of one that was never offered; the probability is not needed."""
        _refuse_batch(context, action, reward)
        _, (arm,) = self._offer(context, [action])
        self._growing.update(arm, reward, context)

    def _offer(self, context: object, actions: Sequence[Action] | None) -> tuple[Policy, list[Name]]:
        """Return the policy, which knows all these actions, and their arms."""
        _refuse_batch(context, actions)
        if not actions:
            raise InvalidValue("there are no actions to choose from; policies of banditree need a list of actions")
        keys = [key_of(action) for action in actions]
        names: dict[Hashable, Name] = {}  # of actions that are new
        clusters: dict[Name, Sequence[object]] = {}
        for key, action in zip(keys, actions, strict=True):
            if key not in self._arms and key not in names:
                name = _name_of(action)
                while name in self._names or name in clusters:  # another action reads the same
                    name = f"{name}'"
                names[key], clusters[name] = name, self._clusters(action)
        policy = self._growing.offer(clusters, context)
        self._arms.update(names)
        self._names.update(clusters)
        return policy, [self._arms[key] for key in keys]

    def _clusters(self, action: Action) -> Sequence[object]:
        clusters = self._path(action)
        if isinstance(clusters, str | bytes) or not isinstance(clusters, Sequence):
            raise InvalidType(f"path({action!r:.60}) is {clusters!r:.60}; return a tuple of cluster names")
        return clusters


def clusters_of(action: Action) -> tuple[Name, ...]:
    """Return the clusters that an action's text features name; if all are text, the last is the action's own name.

    >>> clusters_of(("sports", "football", 17)), clusters_of({"category": "sports", "id": "a7"}), clusters_of("a7")
    (('sports', 'football'), ('sports',), ())
    """
    if hasattr(action, "items"):
        values = [value for _, value in action.items()]
    elif isinstance(action, Iterable) and not isinstance(action, str):
        values = list(action)
    else:
        return ()
    texts = tuple(str(value) for value in values if isinstance(value, str))
    return texts if len(texts) < len(values) else texts[:-1]


def key_of(action: Action) -> Hashable:
    """Return what tells actions apart: equal features are the same action, whatever holds them."""
    if isinstance(action, str):
        return str(action)
    if hasattr(action, "items"):
        return frozenset((name, key_of(value)) for name, value in action.items())
    if not isinstance(action, Iterable):
        return action  # type: ignore[no-any-return]
    try:
        features = tuple(action)
        hash(features)
    except TypeError:
        features = tuple(key_of(value) for value in action)
    return features


def _name_of(action: Action) -> Name:
    """Return an arm's id, for people to read: text and whole numbers as they are, features in a row."""
    if isinstance(action, str):
        return str(action)
    if hasattr(action, "items"):
        return ", ".join(f"{name}={value}" for name, value in action.items())
    if isinstance(action, Iterable):
        return "(" + ", ".join(str(_name_of(value)) for value in action) + ")"
    is_whole = isinstance(action, int) or (isinstance(action, Real) and float(action).is_integer())
    return int(action) if is_whole else str(action)


def _limits(policy: Policy, arms: list[Name]) -> list[Name] | None:
    return None if len(set(arms)) == policy.tree.n_arms else arms


def _refuse_batch(*values: object) -> None:
    """Refuse a batch: coba then calls once for each of its rows."""
    if any(map(is_batch, values)):
        raise InvalidType("this learner takes one interaction at a time")


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | None) else str(value)
