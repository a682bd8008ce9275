"""The native shortcut for Thompson's choice, in NumPy, many decisions at once: to plant errors that tests catch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.support.win_probabilities import Floats, Pair

BIASES = ("no acceptance", "first member", "bar not raised", "leader twice", "one uniform twice", "gap too long")


def picks(pairs: Sequence[Pair], m: int, rng: np.random.Generator, bias: str = "") -> NDArray[np.int32]:
    """m choices among children with these posteriors, child 0 as the leader; ``bias`` names the error that is made."""
    a0, b0 = pairs[0]
    bar: Floats = rng.beta(a0, b0, m)  # (m,) the highest draw so far
    winner = np.zeros(m, np.int32)
    classes: dict[Pair, list[int]] = {}
    for child, pair in enumerate(pairs):
        classes.setdefault(pair, []).append(child)
    for (a, b), members in classes.items():
        others = members if bias == "leader twice" else [child for child in members if child != 0]
        before, won = bar.copy(), np.zeros(m, bool)
        for _ in others[bias == "gap too long" :]:
            x = above(a, b, before if bias == "bar not raised" else bar, rng, bias)
            higher = x > (before if bias == "bar not raised" else bar)
            bar[higher], won[higher] = x[higher], True
        if others:
            inside = np.zeros(m, int) if bias == "first member" else rng.integers(len(others), size=m)
            winner = np.where(won, np.array(others, np.int32)[inside], winner)
    return winner


def above(a: float, b: float, bar: Floats, rng: np.random.Generator, bias: str) -> Floats:
    """A draw from Beta(a, b) where it is above the bar, and 0 where it is not: (m,)."""
    if b == 1:
        draw: Floats = rng.random(len(bar)) ** (1 / a)
        return draw
    slope = (a - 1) / bar - (b - 1) / (1 - bar)
    down = np.minimum(slope, -1e-9)
    reach = -np.expm1(down * (1 - bar))
    log_density = special.xlogy(a - 1, bar) + special.xlog1py(b - 1, -bar) - special.betaln(a, b)
    p = np.exp(log_density) / -down * reach
    x = bar + np.log1p(-rng.random(len(bar)) * reach) / down
    log_ratio = special.xlogy(a - 1, x / bar) + special.xlogy(b - 1, (1 - x) / (1 - bar)) - down * (x - bar)
    screen, level = rng.random((2, len(bar)))
    if bias == "one uniform twice":
        level = screen
    accepted = (level < np.exp(log_ratio)) | (bias == "no acceptance")
    shown = np.where((screen < p) & accepted, x, 0.0)
    return np.where((slope < 0) & (p < 1), shown, rng.beta(a, b, len(bar)))
