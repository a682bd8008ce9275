"""Prepare a log and a target for the estimators, and note what is missing or suspicious."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.ope import probabilities
from banditree.ope.by_row import Places
from banditree.ope.estimator_classes import Estimator
from banditree.ope.estimators import mean_and_error
from banditree.ope.log import Log
from banditree.ope.rows import Rows
from banditree.tree import Tree

LOG_PROPENSITIES = (
    "the log has no propensities, so the policy's choices cannot be told from luck. From now on, log the "
    "probability of every decision: decision = policy.decide(), then decision.propensity; and name its column in "
    "read_log(..., propensity=...). For this log: behaviour= the probabilities of the policy that wrote it, or "
    'read_log(..., propensity="estimated"), which is right only if nothing but the context '
    "columns decided what was shown"
)


def tree_of(tree: Any, target: Any) -> Tree:
    if tree is None:
        tree = getattr(target, "tree", None)
        if tree is None and isinstance(target, dict):
            tree = Tree(list(target))
    if not isinstance(tree, Tree):
        raise InvalidType(
            f"tree {tree!r:.60} must be the bt.Tree of the arms; probabilities are in the order of its arms"
        )
    return tree


def rows_of(log: Log, places: Places, tree: Tree, target: Any, behaviour: Any, notes: list[str]) -> Rows:
    """Combine the log, the target, and the logging policy if it is given or can be deduced."""
    wanted = probabilities.arm_probabilities("target", target, log, tree)
    if behaviour is None:
        if log.propensities is None:
            raise InvalidValue(LOG_PROPENSITIES)
        return Rows(
            tree, places, log.rewards, log.propensities, wanted, probabilities.deduce_behaviour(log, places, tree)
        )
    known = probabilities.arm_probabilities("behaviour", behaviour, log, tree)
    at_shown = known.at(places)
    if log.propensities is None:
        if not (at_shown > 0).all():
            row = int((at_shown <= 0).argmax())
            raise InvalidValue(
                f"behaviour gives arm {tree.arms[int(places[row])]!r} probability 0, but row {row} shows it; "
                "correct one of them"
            )
        return Rows(tree, places, log.rewards, at_shown, wanted, known)
    apart = np.abs(at_shown / log.propensities - 1)
    if apart.max() > 0.01:
        row = int(apart.argmax())
        notes.append(
            f"behaviour and the log's propensities differ, most of all in row {row}: {at_shown[row]:.4g} and "
            f"{log.propensities[row]:.4g} for arm {tree.arms[int(places[row])]!r}; weights of arms "
            "use the log, those of clusters use behaviour"
        )
    return Rows(tree, places, log.rewards, log.propensities, wanted, known)


def without_clusters(wanted: list[Estimator], rows: Rows, notes: list[str], *, named: bool) -> list[Estimator]:
    """Drop estimators that need clusters and the logging policy's probabilities; an error if they were asked for."""
    out = [each for each in wanted if each.needs_clusters]
    labels = " and ".join(each.label for each in out)
    why = "a tree with clusters; this one is flat"
    if rows.behaviour is None:
        why = "the logging policy's probabilities of all arms: behaviour=, a policy or (n, arms) probabilities"
    if out and named:
        raise InvalidValue(f"{labels} {'needs' if len(out) == 1 else 'need'} {why}")
    if out:
        notes.append(f"left out: {labels}, which need {why}")
    return [each for each in wanted if not each.needs_clusters]


def unsupported_by(rows: Rows) -> tuple[tuple[Any, ...], float]:
    """Find the arms without rows that the target would show, most likely first, and their total probability."""
    share = rows.target.mean()
    share[np.bincount(rows.places, minlength=rows.tree.n_arms) > 0] = 0.0
    order = np.argsort(-share, kind="stable")[: int((share > 0).sum())]
    return tuple(rows.tree.arms[place] for place in order.tolist()), float(share.sum())


def check_weights(rows: Rows, unsupported: float, notes: list[str]) -> None:
    """Note if the weights do not average 1 (less the unsupported share), as they do if the propensities are right."""
    mean, error = mean_and_error(rows.weights, rows.scale)
    expected = 1 - unsupported
    if error > 0 and abs(mean - expected) > 4 * error:
        notes.append(
            f"the weights average {mean:.3g} ± {error:.2g} where they should average {expected:.3g}: the propensities "
            "are not those of the policy that wrote these rows, or the target was chosen by looking at them"
        )
