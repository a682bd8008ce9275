"""Restore saved evidence into beliefs, and check it: a file may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import ROUNDING, Floats, Rows
from banditree.errors import InvalidValue
from banditree.tree.shape import Shape

BLOCK = 4096  # nodes whose derived arrays are checked together


def put_back(shape: Shape, rows: Rows, kept: Mapping[str, NDArray[Any]]) -> None:
    """Replace the present arrays by saved ones from `Rows.kept`; if they cannot be right, raise and change nothing.

    The evidence of the arms is decisive. That of an inner node must be their sum, up to rounding. Derived arrays are
    kept to the last bit if they agree with the evidence, and recomputed if they are missing or do not.
    """
    present = rows.kept()
    for name in rows.EVIDENCE:
        if name not in kept:
            raise InvalidValue(f"{name} is missing")
    for name, array in kept.items():
        if name in rows.OPTIONAL:
            continue  # Rows.put_back checks these
        if name not in present:
            raise InvalidValue(f"{name!r} is unknown; if a newer banditree saved it, upgrade banditree")
        if array.shape != present[name].shape:
            raise InvalidValue(f"{name} has shape {array.shape}; the tree needs {present[name].shape}")
        if array.dtype != present[name].dtype:
            raise InvalidValue(f"{name} holds {array.dtype}s, not {present[name].dtype}s")
    before = {name: array.copy() for name, array in present.items()}
    try:
        with np.errstate(all="ignore"):  # the checks find values that are not finite
            rows.put_back({name: array for name, array in before.items() if name not in rows.OPTIONAL} | dict(kept))
            _check_sums(shape, rows)
            rows.check_evidence()
            _check_derived(rows)
    except BaseException:
        rows.put_back(before)
        raise


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


def _check_derived(rows: Rows) -> None:
    """Recompute the derived arrays, and return to the stored values where the two agree."""
    if not rows.DERIVED:
        return
    for start in range(0, len(getattr(rows, rows.DERIVED[0])), BLOCK):
        nodes = np.arange(start, min(start + BLOCK, len(getattr(rows, rows.DERIVED[0]))))
        stored = {name: getattr(rows, name)[nodes] for name in rows.DERIVED}
        rows.refresh_derived(nodes)
        agree = np.full(len(nodes), True)
        for name, old in stored.items():
            new = getattr(rows, name)[nodes]
            if not np.isfinite(new).all():
                raise InvalidValue(f"{name} cannot be computed from the evidence")
            off, size = (np.abs(x).reshape(len(nodes), -1).max(axis=1) for x in (old - new, new))
            agree &= off <= ROUNDING * size + rows.residue(name, nodes)
        for name, old in stored.items():
            getattr(rows, name)[nodes[agree]] = old[agree]
