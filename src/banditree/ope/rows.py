"""What estimators work on: the rows of a log, with the target's and the logging policy's probabilities.

`prepare_rows` combines a log with a target. `ByRow` stores one vector over arms for each row, `LogRows` everything that
an estimator may ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.data.log import Log, different_kinds, match_arms
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.ope.sums import N_VARYING, PREDICTED, REWARD, WEIGHT, WEIGHTED_PREDICTION, WEIGHTED_REWARD, Form, Groups
from banditree.policy.saving import from_bytes
from banditree.tree import Tree
from banditree.tree.build import Name

UNIFORM, ITEM = "uniform", "item:"  # targets by name: every arm equally likely, always the same arm
SUM_TOLERANCE = 1e-4  # of probabilities, which are often rounded
MAX_EXACT = 200_000  # probabilities of policies with contexts that are computed exactly; beyond, choices are drawn
N_DRAWS = 32  # choices for each context then
CHUNK_NUMBERS = 4_000_000  # to multiply at a time

LOG_PROPENSITIES = (
    "the log has no propensities, so the policy's choices cannot be told from luck. From now on, log the "
    "probability of every decision: decision = policy.decide(), then decision.propensity; and name its column in "
    "read_log(..., propensity=...). For this log: behaviour= the probabilities of the policy that wrote it, or "
    'read_log(..., propensity="estimated"), which is right only if nothing but the context '
    "columns decided what was shown"
)


@dataclass(frozen=True, eq=False)
class ByRow:
    """One vector per row; rows with the same vector share its storage, so a policy without contexts stores only one."""

    table: Floats  # (kinds, arms)
    kind: Places  # (n,) index of each row's vector in the table

    @staticmethod
    def same(vector: Floats, n: int) -> ByRow:
        """Use one vector, (arms,), for all n rows."""
        return ByRow(vector[None, :], np.zeros(n, np.intp))

    @staticmethod
    def each(matrix: Floats) -> ByRow:
        """Use a separate vector for each row: (n, arms)."""
        return ByRow(matrix, np.arange(len(matrix)))

    @property
    def constant(self) -> bool:
        """Whether all rows have the same vector."""
        return len(self.table) == 1

    def mean(self, counts: Floats) -> Floats:
        """Average over the rows, each entry weighted by its ``counts``: (arms,)."""
        return np.asarray(np.bincount(self.kind, counts, minlength=len(self.table)) @ self.table / counts.sum())

    def at(self, places: Places) -> Floats:
        """Return the value for each row's arm: (n,)."""
        return np.asarray(self.table[self.kind, places])

    def dot(self, other: ByRow) -> Floats:
        """Compute the dot product over arms, row by row: (n,)."""
        if self.constant or other.constant:
            products = self.table @ other.table.T if self.constant else (other.table @ self.table.T).T
            return np.asarray(products[0, other.kind] if self.constant else products[self.kind, 0])
        pairs, pair_of_row = np.unique(self.kind * len(other.table) + other.kind, return_inverse=True)
        left, right = np.divmod(pairs, len(other.table))
        products = np.empty(len(pairs))
        step = max(1, CHUNK_NUMBERS // self.table.shape[1])
        for low in range(0, len(pairs), step):
            part = slice(low, low + step)
            products[part] = np.einsum("ij,ij->i", self.table[left[part]], other.table[right[part]])
        return products[pair_of_row]

    def pool(self, group: Places) -> ByRow:
        """Sum over groups of arms, given the group of each arm; the result has vectors over groups."""
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
        return ByRow(np.add.reduceat(self.table[:, order], first, axis=1), self.kind)

    def map(self, table: Floats) -> ByRow:
        """Use another table for the same rows."""
        return ByRow(table, self.kind)


@dataclass(frozen=True, eq=False)
class LogRows:
    """What estimators work on: a log combined with a target, as rows or groups of rows of one arm; (groups,) each."""

    tree: Tree
    places: Places  # the arm that was shown, as an index into tree.arms
    rewards: Floats
    propensities: Floats
    target: ByRow  # probabilities of the arms
    behaviour: ByRow | None  # those of the logging policy, if known
    counts: Floats  # rows in each group
    inside: Floats | None = None  # (groups, 3, 3) sums of products of r, 1/p and r/p about their means
    bounds: tuple[Floats, Floats] | None = None
    tails: tuple[Floats, Floats] | None = None
    unusual: tuple[float, Floats] | None = None  # as those of a log
    model: ByRow | None = None  # predicted rewards
    scale: Floats | None = None  # weights of the rows, if a learning policy wrote the log

    @cached_property
    def weights(self) -> Floats:
        """Probability under the target over that under the logging policy."""
        return np.asarray(self.target.at(self.places) / self.propensities)

    @cached_property
    def predicted(self) -> Floats:
        """The model's prediction for the arm that was shown."""
        assert self.model is not None
        return self.model.at(self.places)

    @cached_property
    def direct(self) -> Floats:
        """The model's prediction for the target."""
        assert self.model is not None
        return self.target.dot(self.model)

    @property
    def extremes(self) -> tuple[Floats, Floats]:
        """The lowest and the highest reward of each group."""
        return (self.rewards, self.rewards) if self.bounds is None else self.bounds

    @cached_property
    def groups(self) -> Groups:
        """How many rows each group has, how they vary, and how much they count."""
        if self.inside is None:
            return Groups(self.counts, self.scale)
        chance = self.target.at(self.places)
        from_sums = np.zeros((len(chance), N_VARYING, 3))  # what varies, by r, 1/p and r/p
        from_sums[:, REWARD, 0], from_sums[:, WEIGHT, 1], from_sums[:, WEIGHTED_REWARD, 2] = 1.0, chance, chance
        if self.model is not None:
            from_sums[:, WEIGHTED_PREDICTION, 1] = chance * self.predicted
        return Groups(self.counts, self.scale, from_sums @ self.inside @ from_sums.transpose(0, 2, 1), self.tails)

    @property
    def by_context(self) -> bool:
        """Whether the target's probabilities differ from row to row."""
        return not self.target.constant

    @cached_property
    def shown(self) -> Floats:
        """How many rows each arm has: (arms,)."""
        return np.bincount(self.places, self.counts, minlength=self.tree.n_arms).astype(np.float64)

    @cached_property
    def target_mean(self) -> Floats:
        """The target's probability of each arm, on average: (arms,)."""
        return self.target.mean(self.counts)

    def cluster_weights(self, depth: int) -> Floats:
        """Compute target over logging policy, by the cluster of the shown arm at ``depth``."""
        assert self.behaviour is not None
        cluster_of_arm = clusters(self.tree, depth)
        at = cluster_of_arm[self.places]
        behaviour = self.behaviour.pool(cluster_of_arm).at(at)
        _check_positive(behaviour, self.places, self.tree, "the cluster of ")
        return self.target.pool(cluster_of_arm).at(at) / behaviour

    def form(self, values: Floats, varying: int | None = None, slope: Floats | float = 1.0) -> Form:
        """Describe numbers that are linear in one variable of a group, or constant in it."""
        if self.groups.inside is None:
            return Form(values)
        slopes = np.zeros((len(values), N_VARYING))
        if varying is not None:
            slopes[:, varying] = slope
        return Form(values, slopes)

    def weigh(self, weights: Floats, growth: Floats | None, *, residuals: bool) -> Form:
        """Multiply rewards, or the residuals of the model, by weights that grow with the plain weight by ``growth``."""
        values = weights * (self.rewards - self.predicted if residuals else self.rewards)
        inside = self.groups.inside
        if inside is None or growth is None:
            return Form(values)
        slopes = np.zeros((len(values), N_VARYING))
        slopes[:, REWARD], slopes[:, WEIGHTED_REWARD] = weights - growth * self.weights, growth
        values = values + growth * inside[:, WEIGHT, REWARD] / self.groups.counts
        if residuals:
            slopes[:, PREDICTED], slopes[:, WEIGHTED_PREDICTION] = -slopes[:, REWARD], -growth
            values = values - growth * inside[:, WEIGHT, PREDICTED] / self.groups.counts
        return Form(values, slopes)

    def unsupported(self) -> tuple[tuple[Name, ...], float]:
        """Find the arms without rows that the target would show, most likely first, and their total probability."""
        share = np.where(self.shown > 0, 0.0, self.target_mean)
        order = np.argsort(-share, kind="stable")[: int((share > 0).sum())]
        return tuple(self.tree.arms[place] for place in order.tolist()), float(share.sum())


def clusters(tree: Tree, depth: int) -> Places:
    """Number the clusters at a depth of the tree: (arms,). An arm with a shorter path is a cluster by itself."""
    shape = tree.shape
    level = shape.level_of()
    node = shape.node_of.astype(np.intp)
    while (deeper := level[node] > depth).any():
        node = np.where(deeper, shape.parent[node], node)
    return np.unique(node, return_inverse=True)[1].astype(np.intp)


# ---------------------------------------------------------------- combining a log with a target


def find_tree(tree: object, target: object, log: Log) -> Tree:
    """Return the tree that was given, else that of the target or of the log, else a flat one if the target has names.

    Probabilities without names are in the order of a tree's arms, and policies that learn go by its clusters.
    """
    if tree is None:
        tree = getattr(target, "tree", None) or log.tree
    if tree is None and isinstance(target, Mapping | str):
        tree = Tree(list(target if isinstance(target, Mapping) else log.ids))
    if tree is None:
        raise InvalidType("give the bt.Tree of the arms as tree=...; the rows of this log have no paths")
    if not isinstance(tree, Tree):
        raise InvalidType(
            f"tree {tree!r:.60} must be the bt.Tree of the arms; probabilities are in the order of its arms"
        )
    return tree


def prepare_rows(log: Log, tree: Tree, target: object, behaviour: object, notes: list[str]) -> LogRows:
    """Combine the log, the target, and the logging policy if it is given or can be deduced."""
    places, p = log.places(tree), log.propensities
    chances = arm_probabilities("target", target, log, tree, notes)
    known = None if behaviour is None else arm_probabilities("behaviour", behaviour, log, tree, notes)
    if known is None and p is None:
        raise InvalidValue(LOG_PROPENSITIES)
    if known is None:
        known = deduce_behaviour(log, places, tree)
    elif p is None:
        p = known.at(places)
        _check_positive(p, places, tree)
        log = log.given(p)
    else:
        at_shown = known.at(places)
        ratio_error = np.abs(at_shown / p - 1)
        if ratio_error.max() > 0.01:
            row = int(ratio_error.argmax())
            notes.append(
                f"behaviour and the log's propensities differ, most of all in row {row}: {at_shown[row]:.4g} and "
                f"{p[row]:.4g} for arm {tree.arms[int(places[row])]!r}; weights of arms use the log, those of clusters "
                "use behaviour"
            )
    assert p is not None
    sums = (log.counted, log.inside, log.bounds, log.tails, log.unusual)
    return LogRows(tree, places, log.rewards, p, chances, known, *sums)


def _check_positive(behaviour: Floats, places: Places, tree: Tree, what: str = "") -> None:
    """Refuse a logging policy that could not have written this log."""
    if not (behaviour > 0).all():
        row = int((behaviour <= 0).argmax())
        arm = tree.arms[int(places[row])]
        raise InvalidValue(
            f"behaviour gives {what}arm {arm!r} probability 0, but row {row} of the log shows it; correct one of them"
        )


# ---------------------------------------------------------------- probabilities of arms


def arm_probabilities(what: str, given: object, log: Log, tree: Tree, notes: list[str]) -> ByRow:
    """Return the probability of every arm for every row of the log; ``what`` is the parameter's name for errors."""
    if hasattr(given, "propensities"):
        return _policy_probabilities(what, given, log, tree, notes)
    if isinstance(given, str) and given == UNIFORM:
        given = np.full(tree.n_arms, 1 / tree.n_arms)
    if isinstance(given, str) and given.startswith(ITEM):
        given = {given.removeprefix(ITEM): 1.0}
    if isinstance(given, Mapping):
        given = _in_tree_order(what, given, tree)
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InvalidType(
            f"{what} {given!r:.60} must be a policy, {{arm: probability}}, probabilities in the order of tree.arms, "
            "'uniform', or 'item:ID'"
        ) from None
    n = len(log.codes)
    if array.shape not in ((tree.n_arms,), (n, tree.n_arms)) or (log.plays is not None and array.ndim == 2):
        shapes = f"({tree.n_arms},)"
        shapes += "" if log.plays is not None else f", or ({n}, {tree.n_arms}) with one row per row of the log"
        raise InvalidValue(f"{what} has shape {array.shape}; give probabilities in the order of tree.arms: {shapes}")
    table = np.atleast_2d(array)
    bad = ~((table >= 0) & (table <= 1 + SUM_TOLERANCE))  # true for NaN
    if bad.any():
        row, place = np.argwhere(bad)[0].tolist()
        at = f" in row {row}" if array.ndim == 2 else ""
        raise InvalidValue(
            f"{what} has {table[row, place]:g} for arm {tree.arms[place]!r}{at}; give probabilities from 0 to 1"
        )
    sums = table.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        at = f" in row {int(off.argmax())}" if array.ndim == 2 else ""
        raise InvalidValue(f"{what} sums to {sums[int(off.argmax())]:.6g}{at}; probabilities must sum to 1")
    return ByRow.same(array, n) if array.ndim == 1 else ByRow.each(array)


def _in_tree_order(what: str, given: Mapping[object, Any], tree: Tree) -> Floats:
    """Return the values of {arm: probability} in the order of ``tree.arms``: (arms,)."""
    places = match_arms(list(given), tree)
    if None in places:
        strange = list(given)[places.index(None)]
        hint = different_kinds(list(given), tree, what)
        raise UnknownArm(f"{what} has {strange!r}, which is not an arm of {tree!r}{hint}")
    try:
        vector = np.zeros(tree.n_arms)
        vector[np.array(places, np.intp)] = list(given.values())
    except (TypeError, ValueError):
        raise InvalidType(f"{what} {given!r:.60} must be {{arm: probability}}") from None
    return vector


def _policy_probabilities(what: str, policy: Any, log: Log, tree: Tree, notes: list[str]) -> ByRow:
    """Ask the policy for its probabilities; if it takes contexts, once for each distinct context of the log."""
    if set(policy.tree.arms) != set(tree.arms):
        hint = different_kinds(policy.tree.arms, tree, "policy")
        raise InvalidValue(
            f"{what} is a policy on {policy.tree!r}, with other arms than {tree!r}{hint}; give one on the same arms"
        )
    order = np.array([policy.tree.index[arm] for arm in tree.arms], np.intp)
    if getattr(policy, "dim", None) is None:
        return ByRow.same(np.asarray(policy.propensities(), np.float64)[order], len(log.codes))
    if log.plays is not None:
        raise InvalidValue(
            f"{what} takes contexts, and the rows of a lazy log are only summed; read them, or a sample of them, into "
            "memory first, and give that to read_log"
        )
    if log.contexts is None:
        raise InvalidValue(
            f"{what} takes contexts, but the log has none; name the columns: read_log(..., context=[...])"
        )
    contexts = log.contexts_for(policy)
    distinct, kind = np.unique(contexts, axis=0, return_inverse=True)
    if len(distinct) * tree.n_arms <= MAX_EXACT or not hasattr(policy, "to_bytes"):
        table = np.array([np.asarray(policy.propensities(context=x), np.float64)[order] for x in distinct])
    else:
        table = _sample_choices(policy, distinct, tree)
        notes.append(f"{what}: {N_DRAWS} choices in each of {len(distinct):,} contexts stand for its probabilities")
    return ByRow(table, kind.reshape(-1).astype(np.intp))


def _sample_choices(policy: Any, contexts: Floats, tree: Tree) -> Floats:
    """Estimate a policy's probabilities by its choices; estimates that use them stay unbiased: (contexts, arms)."""
    copy = from_bytes(policy.to_bytes(), rng=0)  # so that the policy's own stream does not move
    table = np.zeros((len(contexts), tree.n_arms))
    rows = np.arange(len(contexts))
    for _ in range(N_DRAWS):
        places = np.array([tree.index[arm] for arm in copy.choose_many(contexts=contexts)], np.intp)
        table[rows, places] += 1 / N_DRAWS
    return table


def deduce_behaviour(log: Log, places: Places, tree: Tree) -> ByRow | None:
    """Deduce the logging policy if each arm's propensity is the same on all of its rows and they sum to 1; else None.

    Arms without rows have probability 0. If all propensities are 1 / (number of arms), it is the uniform policy, even
    if some arms were not seen.
    """
    if log.propensities is None:
        return None
    low, high = log.reach if log.reach is not None else (log.propensities, log.propensities)
    lowest, highest = np.full(tree.n_arms, np.inf), np.zeros(tree.n_arms)
    np.minimum.at(lowest, places, low)
    np.maximum.at(highest, places, high)
    seen = highest > 0
    if not np.allclose(lowest[seen], highest[seen], rtol=1e-6, atol=0):
        return None
    if np.allclose(highest[seen], 1 / tree.n_arms, rtol=1e-6, atol=0):
        return ByRow.same(np.full(tree.n_arms, 1 / tree.n_arms), len(places))
    return ByRow.same(highest, len(places)) if abs(highest.sum() - 1) <= SUM_TOLERANCE else None


def propensities_change(rows: LogRows) -> bool:
    """Whether an arm's propensity changes over the log, a sign of a policy that learns or uses contexts."""
    p = rows.propensities
    mean = np.bincount(rows.places, rows.counts * p, minlength=rows.tree.n_arms) / np.maximum(rows.shown, 1)
    return bool((np.abs(p - mean[rows.places]) > 0.01 * mean[rows.places]).any())
