"""Put saved evidence back into beliefs, checked: files come from anywhere."""

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
    """Put what `Rows.kept` gave in place of the present; where it cannot be right, raise and change nothing.

    The evidence of the arms is what counts. An inner node's is their sum, up to rounding, and what derives from the
    evidence is kept to the last bit where it agrees, and computed afresh where it is missing or does not.
    """
    present = rows.kept()
    for name in rows.EVIDENCE:
        if name not in kept:
            raise InvalidValue(f"{name} is missing")
    for name, array in kept.items():
        if name in rows.OPTIONAL:
            continue  # its rows look at it themselves
        if name not in present:
            raise InvalidValue(f"{name!r} is not known; if a newer banditree saved it, upgrade banditree")
        if array.shape != present[name].shape:
            raise InvalidValue(f"{name} has shape {array.shape}, the tree needs {present[name].shape}")
        if array.dtype != present[name].dtype:
            raise InvalidValue(f"{name} holds {array.dtype}s, not {present[name].dtype}s")
    before = {name: array.copy() for name, array in present.items()}
    try:
        with np.errstate(all="ignore"):  # what is not finite is looked for
            rows.put_back({name: array for name, array in before.items() if name not in rows.OPTIONAL} | dict(kept))
            _check_sums(shape, rows)
            rows.check_evidence()
            _check_derived(rows)
    except BaseException:
        rows.put_back(before)
        raise


def _check_sums(shape: Shape, rows: Rows) -> None:
    """Compare inner nodes with the sums of their arms.

    What counts something can be wrong by rounding alone. The rest may also have terms of either sign that are much
    larger than their sum, and then rounding is no smaller than the sum: it is summed afresh.
    """
    counted = np.zeros(shape.n_nodes)  # of all the counts together: one may be what remains of another
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
            differs = ~(off <= ROUNDING * shape.sum_up(sizes).reshape(len(stored), -1).max(axis=1))
            stored[differs] = sums[differs]


def _check_derived(rows: Rows) -> None:
    """Compute what derives from the evidence afresh, and go back to what was stored where the two agree."""
    if not rows.DERIVED:
        return
    for start in range(0, len(getattr(rows, rows.DERIVED[0])), BLOCK):
        nodes = np.arange(start, min(start + BLOCK, len(getattr(rows, rows.DERIVED[0]))))
        stored = {name: getattr(rows, name)[nodes] for name in rows.DERIVED}
        rows.settle(nodes)
        agree = np.full(len(nodes), True)
        for name, old in stored.items():
            new = getattr(rows, name)[nodes]
            if not np.isfinite(new).all():
                raise InvalidValue(f"{name} cannot be computed from the evidence")
            off, size = (np.abs(x).reshape(len(nodes), -1).max(axis=1) for x in (old - new, new))
            agree &= off <= ROUNDING * size
        for name, old in stored.items():
            getattr(rows, name)[nodes[agree]] = old[agree]
