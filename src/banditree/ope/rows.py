"""The inputs of the estimators: weights, predictions and cluster probabilities of each row of a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from banditree.errors import InvalidValue
from banditree.ope import estimators
from banditree.ope.by_row import ByRow, Floats, Places
from banditree.tree import Tree


@dataclass(frozen=True, eq=False)
class Rows:
    """A log combined with a target; every array has one entry per row of the log."""

    tree: Tree
    places: Places  # (n,) the arm that was shown, as an index into tree.arms
    rewards: Floats  # (n,)
    propensities: Floats  # (n,)
    target: ByRow  # probabilities of the arms
    behaviour: ByRow | None  # those of the logging policy, if known
    model: ByRow | None = None  # predicted rewards
    scale: Floats | None = None  # (n,) weights of the rows, if a learning policy wrote the log

    @cached_property
    def weights(self) -> Floats:
        """Probability under the target over that under the logging policy: (n,)."""
        return np.asarray(self.target.at(self.places) / self.propensities)

    @cached_property
    def predicted(self) -> Floats:
        """The model's prediction for the arm that was shown: (n,)."""
        assert self.model is not None
        return self.model.at(self.places)

    @cached_property
    def direct(self) -> Floats:
        """The model's prediction for the target: (n,)."""
        assert self.model is not None
        return self.target.dot(self.model)

    def of_cluster(self, depth: int) -> tuple[Floats, Floats]:
        """Compute the probability of the shown arm's cluster at ``depth``, for target and logging policy: (n,) both."""
        assert self.behaviour is not None
        group = clusters(self.tree, depth)
        at = group[self.places]
        target, behaviour = (each.pooled(group).at(at) for each in (self.target, self.behaviour))
        if not (behaviour > 0).all():
            row = int((behaviour <= 0).argmax())
            arm = self.tree.arms[int(self.places[row])]
            raise InvalidValue(
                f"behaviour gives the cluster of arm {arm!r} probability 0, but row {row} of the log shows it; "
                "correct one of them"
            )
        return target, behaviour

    def cluster_weights(self, depth: int) -> Floats:
        """Compute target over logging policy, by cluster: (n,)."""
        return estimators.ratio(*self.of_cluster(depth))


def clusters(tree: Tree, depth: int) -> Places:
    """Number the clusters at a depth of the tree: (arms,). An arm with a shorter path is a cluster by itself."""
    shape = tree.shape
    level = shape.level_of()
    at = shape.node_of.astype(np.intp)
    while (deeper := level[at] > depth).any():
        at = np.where(deeper, shape.parent[at], at)
    return np.unique(at, return_inverse=True)[1].astype(np.intp)
