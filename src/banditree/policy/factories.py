"""Factories of policies: classes, partials or functions, on a tree of the instance; and the parameters they ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from banditree.errors import InvalidType
from banditree.policy.algorithms import ALGORITHMS
from banditree.policy.policy import Policy
from banditree.stream import Seed
from banditree.tree import Tree

Factory = Callable[..., Any]


@dataclass(frozen=True)
class On:
    """A factory, and the name of the instance's tree that it builds on."""

    tree: str
    factory: Factory

    def __call__(self, tree: Tree, *, rng: Seed) -> NoReturn:
        raise InvalidType(f"bt.on({self.tree!r}, ...) must be outermost: bt.on({self.tree!r}, partial(...))")


def on(tree: str, factory: Factory) -> On:
    """Build a policy of `simulate` on the instance's tree of this name, a key of ``instance.trees``.

    >>> import banditree as bt
    >>> policies = {"TSC": bt.TSC, "HTS": bt.on("ward", bt.HTS)}
    """
    if isinstance(factory, On) or not callable(factory):
        raise InvalidType(f"bt.on({tree!r}, {factory!r:.60}): give a policy class, or a function that builds a policy")
    return On(tree, factory)


def policy_class(factory: Factory) -> tuple[type[Policy] | None, dict[str, object]]:
    """Return the class that a factory builds, None if it is not a `Policy`, and the options that are set already.

    >>> import banditree as bt
    >>> from functools import partial
    >>> policy_class(on("ward", partial(bt.HTS, depth=2))) == (bt.HTS, {"depth": 2})
    True
    """
    options: dict[str, object] = {}
    while isinstance(factory, On | partial):
        if isinstance(factory, partial):
            options = {**factory.keywords, **options}
        factory = factory.factory if isinstance(factory, On) else factory.func
    return (factory if isinstance(factory, type) and issubclass(factory, Policy) else None), options


def asks_for_dim(factory: Factory) -> bool:
    """Say whether a factory builds a policy with contexts, such as LinTS, whose ``dim`` is not set yet.

    A function of the user's asks for it by a parameter of that name.

    >>> import banditree as bt
    >>> from functools import partial
    >>> asks_for_dim(bt.LinTS), asks_for_dim(bt.TS), asks_for_dim(partial(bt.LinTS, dim=5))
    (True, False, False)
    """
    kind, options = policy_class(factory)
    if kind is not None:
        return kind.about.takes_contexts and not options.keys() & {"dim", "features", "prior"}
    try:
        parameters = inspect.signature(factory.factory if isinstance(factory, On) else factory).parameters
    except (TypeError, ValueError):  # some functions that are not written in Python have none
        return False
    return "dim" in parameters and parameters["dim"].default in (None, inspect.Parameter.empty)


def runs_natively(policy: object) -> bool:
    """Say whether a policy, on a built-in instance, runs without any code of the user's."""
    if not isinstance(policy, Policy) or type(policy) not in (Policy, *ALGORITHMS.values()):
        return False
    takes_vectors = policy.dim == policy.belief.dim  # else `Policy` puts a constant after the features
    return takes_vectors and not {"choose", "update"} & vars(policy).keys() and policy.engine == "native"
