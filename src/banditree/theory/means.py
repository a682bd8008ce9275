"""Read and check the means that users pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from banditree.errors import InvalidValue
from banditree.theory.arithmetic import Floats
from banditree.tree import Tree
from banditree.tree.values import by_arm, numbers

Means = Mapping[Any, float] | Sequence[float] | Floats


def of_tree(tree: Tree, means: Means) -> Floats:
    """Return the mean of every arm, in the order of ``tree.arms``: (arms,)."""
    return _checked(by_arm(tree, "means", means), tree.arms)


def flat(means: Means) -> tuple[Sequence[Any], Floats]:
    """Return arms (positions if ``means`` is not a mapping) and their means: (arms,)."""
    if isinstance(means, Mapping):
        arms = list(means)
        return arms, _checked(numbers("means", list(means.values())), arms)
    mu = _checked(numbers("means", means), None)
    return range(len(mu)), mu


def _checked(mu: Floats, arms: Sequence[Any] | None) -> Floats:
    """Check that there is one number in [0, 1] per arm; if ``arms`` is None, at least one number."""
    if mu.ndim > 1 or not mu.size or (arms is not None and len(arms) != len(mu)):
        wanted = "one number per arm" if arms is None else f"{len(arms):,} numbers, one per arm"
        raise InvalidValue(f"means has shape {mu.shape}; give {wanted}")
    wrong = ~((mu >= 0) & (mu <= 1))  # also true for NaN
    if wrong.any():
        first = int(wrong.argmax())
        arm = first if arms is None else arms[first]
        raise InvalidValue(f"mean {mu[first]} of arm {arm!r} is not in [0, 1]; the theory is for Bernoulli rewards")
    return mu
