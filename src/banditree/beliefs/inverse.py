"""Invert the matrices B of linear beliefs, and say which of the inverses have lost digits."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import Floats


def inverted(b: Floats, inflated: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Invert several B, and say which inverses inflate no variance by more than ``inflated``: (k, dim, dim), (k,).

    B is first scaled by powers of two to a diagonal near 1, so that the scale of the contexts does not matter. B^-1 is
    L^-T L^-1 with Cholesky's B = L L', as in the native engine: its relative errors are as small in directions of small
    variance.
    """
    diagonal = np.einsum("kii->ki", b)
    scale = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))  # (k, dim)
    both = scale[:, :, None] * scale[:, None, :]
    low = np.full_like(b, np.nan)
    try:
        low = np.linalg.cholesky(b * both)
    except np.linalg.LinAlgError:  # one of them is singular up to rounding
        for at in range(len(b)):
            with suppress(np.linalg.LinAlgError):
                low[at] = np.linalg.cholesky(b[at] * both[at])
    root = np.zeros_like(b)  # L^-1
    for i in range(b.shape[1]):
        root[:, i, i] = 1 / low[:, i, i]
        root[:, i, :i] = -(low[:, i, None, :i] @ root[:, :i, :i])[:, 0] * root[:, i, i, None]
    inverse = (root.transpose(0, 2, 1) @ root) * both
    inflation = diagonal * np.einsum("kii->ki", inverse)
    return inverse, ((inflation > 0) & (inflation <= inflated)).all(axis=1)
