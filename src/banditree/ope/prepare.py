"""A log and a target made ready for the estimators: who shows what, how likely, and what is missing or odd."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue
from banditree.ope import chances
from banditree.ope.estimators import mean_and_error
from banditree.ope.kinds import Estimator
from banditree.ope.log import Log
from banditree.ope.rows import Rows
from banditree.tree import Tree

Places = NDArray[np.intp]
LOG_PROPENSITIES = (
    "the log has no propensities, without which nothing tells the policy's choices from its luck. From now on log the "
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
        raise InvalidType(f"tree {tree!r:.60} must be the bt.Tree of the arms, whose order the probabilities have")
    return tree


def rows_of(log: Log, places: Places, tree: Tree, target: Any, behaviour: Any, notes: list[str]) -> Rows:
    """The log with its target, and the logging policy where it is given or can be deduced."""
    aims = chances.chances("target", target, log, tree)
    if behaviour is None:
        if log.propensities is None:
            raise InvalidValue(LOG_PROPENSITIES)
        return Rows(tree, places, log.rewards, log.propensities, aims, chances.deduced(log, places, tree))
    known = chances.chances("behaviour", behaviour, log, tree)
    at_shown = known.at(places)
    if log.propensities is None:
        if not (at_shown > 0).all():
            row = int((at_shown <= 0).argmax())
            raise InvalidValue(
                f"behaviour gives arm {tree.arms[int(places[row])]!r} probability 0, but row {row} shows it"
            )
        return Rows(tree, places, log.rewards, at_shown, aims, known)
    apart = np.abs(at_shown / log.propensities - 1)
    if apart.max() > 0.01:
        row = int(apart.argmax())
        notes.append(
            f"behaviour and the log's propensities differ, most in row {row}: {at_shown[row]:.4g} and "
            f"{log.propensities[row]:.4g} for arm {tree.arms[int(places[row])]!r}; weights of arms "
            "go by the log, those of clusters by behaviour"
        )
    return Rows(tree, places, log.rewards, log.propensities, aims, known)


def without_clusters(wanted: list[Estimator], rows: Rows, notes: list[str], *, named: bool) -> list[Estimator]:
    """Leave out what needs clusters and the logging policy's probabilities of them; an error where it was named."""
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
    """The arms without rows that the target would show, the likeliest first, and their share of its probability."""
    share = np.bincount(rows.target.kind, minlength=len(rows.target.table)) @ rows.target.table / len(rows.rewards)
    share[np.bincount(rows.places, minlength=rows.tree.n_arms) > 0] = 0.0
    order = np.argsort(-share, kind="stable")[: int((share > 0).sum())]
    return tuple(rows.tree.arms[place] for place in order.tolist()), float(share.sum())


def check_weights(rows: Rows, unsupported: float, notes: list[str]) -> None:
    """Weights average 1 (less what is unsupported) where the propensities are those of the logging policy."""
    mean, error = mean_and_error(rows.weights, rows.scale)
    expected = 1 - unsupported
    if error > 0 and abs(mean - expected) > 4 * error:
        notes.append(
            f"the weights average {mean:.3g} ± {error:.2g} where they should average {expected:.3g}: the propensities "
            "are not those of the policy that wrote these rows, or the target was chosen by looking at them"
        )
