"""Store one vector over arms for each row of a log: the probabilities of a policy, or the predictions of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
CHUNK = 4_000_000  # numbers to multiply at a time


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

    def mean(self) -> Floats:
        """Average over the rows: (arms,)."""
        return np.bincount(self.kind, minlength=len(self.table)) @ self.table / len(self.kind)

    def at(self, places: Places) -> Floats:
        """Return the value for each row's arm: (n,)."""
        return np.asarray(self.table[self.kind, places])

    def dot(self, other: ByRow) -> Floats:
        """Compute the dot product over arms, row by row: (n,)."""
        if self.constant or other.constant:
            products = self.table @ other.table.T if self.constant else (other.table @ self.table.T).T
            return np.asarray(products[0, other.kind] if self.constant else products[self.kind, 0])
        pairs, place = np.unique(self.kind * len(other.table) + other.kind, return_inverse=True)
        one, two = np.divmod(pairs, len(other.table))
        found = np.empty(len(pairs))
        step = max(1, CHUNK // self.table.shape[1])
        for low in range(0, len(pairs), step):
            part = slice(low, low + step)
            found[part] = np.einsum("ij,ij->i", self.table[one[part]], other.table[two[part]])
        return found[place]

    def pooled(self, group: Places) -> ByRow:
        """Sum over groups of arms, given the group of each arm; the result has vectors over groups."""
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
        return ByRow(np.add.reduceat(self.table[:, order], first, axis=1), self.kind)

    def map(self, table: Floats) -> ByRow:
        """Use another table for the same rows."""
        return ByRow(table, self.kind)
