"""Read the probabilities of arms from a policy, a mapping or an array, or deduce them from a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.ope.by_row import ByRow, Places
from banditree.ope.log import Log
from banditree.tree import Tree

CLOSE = 1e-4  # tolerance of a sum of probabilities, which are often rounded


def arm_probabilities(what: str, given: Any, log: Log, tree: Tree) -> ByRow:
    """Return the probability of every arm for every row of the log; ``what`` is the parameter's name for errors."""
    if hasattr(given, "propensities"):
        return _of_policy(what, given, log, tree)
    if isinstance(given, Mapping):
        strange = [arm for arm in given if arm not in tree]
        if strange:
            raise UnknownArm(f"{what} has {strange[0]!r}, which is not an arm of {tree!r}")
        given = [given.get(arm, 0.0) for arm in tree.arms]
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidType(
            f"{what} {given!r:.60} must be a policy, {{arm: probability}}, or probabilities in the order of tree.arms"
        ) from None
    if array.shape not in ((tree.n_arms,), (len(log), tree.n_arms)):
        shapes = f"({tree.n_arms},), or ({len(log)}, {tree.n_arms}) with one row per row of the log"
        raise InvalidValue(f"{what} has shape {array.shape}; give probabilities in the order of tree.arms: {shapes}")
    table = np.atleast_2d(array)
    bad = ~((table >= 0) & (table <= 1 + CLOSE))  # true for NaN
    if bad.any():
        row, place = np.argwhere(bad)[0].tolist()
        at = f" in row {row}" if array.ndim == 2 else ""
        raise InvalidValue(
            f"{what} has {table[row, place]:g} for arm {tree.arms[place]!r}{at}; give probabilities from 0 to 1"
        )
    sums = table.sum(axis=1)
    off = np.abs(sums - 1) > CLOSE
    if off.any():
        at = f" in row {int(off.argmax())}" if array.ndim == 2 else ""
        raise InvalidValue(f"{what} sums to {sums[int(off.argmax())]:.6g}{at}; probabilities must sum to 1")
    return ByRow.same(array, len(log)) if array.ndim == 1 else ByRow.each(array)


def _of_policy(what: str, policy: Any, log: Log, tree: Tree) -> ByRow:
    """Ask the policy for its probabilities; if it takes contexts, once for each distinct context of the log."""
    arms = policy.tree.arms
    if set(arms) != set(tree.arms):
        raise InvalidValue(
            f"{what} is a policy on {policy.tree!r}, which has other arms than {tree!r}; give one on the same arms"
        )
    order = np.array([policy.tree.index[arm] for arm in tree.arms], np.intp)
    if getattr(policy, "dim", None) is None:
        return ByRow.same(np.asarray(policy.propensities(), np.float64)[order], len(log))
    if log.contexts is None:
        raise InvalidValue(
            f"{what} takes contexts, but the log has none; name the columns: read_log(..., context=[...])"
        )
    different, kind = np.unique(log.contexts, axis=0, return_inverse=True)
    table = np.array([np.asarray(policy.propensities(context=x), np.float64)[order] for x in different])
    return ByRow(table, kind.reshape(-1).astype(np.intp))


def deduce_behaviour(log: Log, places: Places, tree: Tree) -> ByRow | None:
    """Deduce the logging policy if each arm's propensity is the same on all of its rows and they sum to 1; else None.

    Arms without rows have probability 0. If all propensities are 1 / (number of arms), it is the uniform policy, even
    if some arms were not seen.
    """
    p = log.propensities
    if p is None:
        return None
    lowest, highest = np.full(tree.n_arms, np.inf), np.zeros(tree.n_arms)
    np.minimum.at(lowest, places, p)
    np.maximum.at(highest, places, p)
    seen = highest > 0
    if not np.allclose(lowest[seen], highest[seen], rtol=1e-6, atol=0):
        return None
    if np.allclose(highest[seen], 1 / tree.n_arms, rtol=1e-6, atol=0):
        return ByRow.same(np.full(tree.n_arms, 1 / tree.n_arms), len(log))
    return ByRow.same(highest, len(log)) if abs(highest.sum() - 1) <= CLOSE else None


def propensities_change(log: Log, places: Places, tree: Tree) -> bool:
    """Whether an arm's propensity changes over the log, a sign of a policy that learns or uses contexts."""
    p = log.propensities
    if p is None:
        return False
    mean = np.bincount(places, p, minlength=tree.n_arms) / np.maximum(np.bincount(places, minlength=tree.n_arms), 1)
    return bool((np.abs(p - mean[places]) > 0.01 * mean[places]).any())
