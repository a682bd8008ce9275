"""Reading the means that users give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from banditree._arms import in_order
from banditree.errors import InvalidType, InvalidValue
from banditree.theory.divergence import Floats
from banditree.tree import Tree

Means = Mapping[Any, float] | Sequence[float] | Floats


def of_tree(tree: Tree, means: Means) -> Floats:
    """The mean of every arm, in the order of ``tree.arms``: (arms,)."""
    return _read(in_order(tree, "means", means) if isinstance(means, Mapping) else means, tree.arms)


def flat(means: Means) -> tuple[Sequence[Any], Floats]:
    """Arms (or their places, where means is no mapping) and their means: (arms,)."""
    if isinstance(means, Mapping):
        arms = list(means)
        return arms, _read(list(means.values()), arms)
    mu = _read(means, None)
    return range(len(mu)), mu


def _read(values: Any, arms: Sequence[Any] | None) -> Floats:
    """Check that there is one number in [0, 1] for each arm; without arms, for any number of them but none."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue("means must be one number an arm, not lists of different lengths") from None
    if array.ndim == 0 or (array.size and array.dtype.kind not in "fiu"):
        raise InvalidType(f"means must be numbers, one an arm, in a list, an array or a mapping, not {values!r:.60}")
    if array.ndim > 1 or not array.size or (arms is not None and len(arms) != len(array)):
        wanted = "one number an arm" if arms is None else f"{len(arms):,} numbers, one an arm"
        raise InvalidValue(f"means has shape {array.shape}; give {wanted}")
    mu: Floats = array.astype(np.float64)
    wrong = ~((mu >= 0) & (mu <= 1))  # this way round, NaN is wrong as well
    if wrong.any():
        place = int(wrong.argmax())
        arm = place if arms is None else arms[place]
        raise InvalidValue(f"mean {mu[place]} of arm {arm!r} is not in [0, 1]; the theory is for Bernoulli rewards")
    return mu
