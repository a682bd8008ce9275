"""Restore saved evidence into beliefs, and check it: a file may come from anywhere."""

from __future__ import annotations

import numpy as np

from banditree.beliefs.base import ROUNDING, Arrays, Floats, Rows
from banditree.errors import InvalidValue
from banditree.tree.shape import Shape


def put_back(shape: Shape, rows: Rows, arrays: Arrays) -> None:
    """Replace the present evidence by saved arrays from `Rows.kept`; if they cannot be right, raise and change nothing.

    The evidence of the arms is decisive. That of an inner node must be their sum, up to rounding.
    """
    arrays = {name: array for name, array in arrays.items() if name not in rows.NOT_READ}
    for name in rows.EVIDENCE:
        if name not in arrays:
            raise InvalidValue(f"{name} is missing")
        present = getattr(rows, name)
        if arrays[name].shape != present.shape:
            raise InvalidValue(f"{name} has shape {arrays[name].shape}; the tree needs {present.shape}")
        if arrays[name].dtype != present.dtype:
            raise InvalidValue(f"{name} holds {arrays[name].dtype}s, not {present.dtype}s")
    if unknown := sorted(arrays.keys() - {*rows.EVIDENCE, "scale"}):
        raise InvalidValue(f"{unknown[0]!r} is unknown; if a newer banditree saved it, upgrade banditree")
    staged = rows.stage()
    with np.errstate(all="ignore"):  # the checks find values that are not finite
        staged.put_back(arrays)
        _check_sums(shape, staged)
        staged.check_evidence()
    rows.commit(staged)


def _check_sums(shape: Shape, rows: Rows) -> None:
    """Compare inner nodes with the sums of their arms.

    Arrays that cannot be negative may differ by rounding only. The others may have terms of both signs that are much
    larger than their sum, so that rounding is as large as the sum: those sums are recomputed.
    """
    counted = np.zeros(shape.n_nodes)  # of all of them together, because one may be the difference of others
    for name in rows.NON_NEGATIVE:
        counted[shape.node_of] += np.abs(getattr(rows, name)[shape.node_of])
    shape.sum_up(counted)
    for name in rows.EVIDENCE:
        stored: Floats = getattr(rows, name)
        sums, sizes = np.zeros_like(stored), np.zeros_like(stored)
        sums[shape.node_of] = stored[shape.node_of]
        sizes[shape.node_of] = np.abs(stored[shape.node_of])
        off = np.abs(stored - shape.sum_up(sums)).reshape(len(stored), -1).max(axis=1)  # (nodes,)
        if name in rows.NON_NEGATIVE:
            if (off > ROUNDING * counted).any():
                raise InvalidValue(f"{name} of a cluster is not the sum over its arms")
        else:
            size = shape.sum_up(sizes).reshape(len(stored), -1).max(axis=1)
            differs = ~(off <= ROUNDING * size + rows.residue(name, np.arange(len(stored))))
            stored[differs] = sums[differs]
