"""How exact and how fast are winning probabilities? Errors against SciPy, and times, of beliefs as policies have them.

``python -m tools.pages.probability_table`` prints the table of docs/exact-probabilities.md.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree.beliefs import winning as readable
from banditree.stream import native
from tests.support.winning import by_quadrature

Floats = NDArray[np.float64]
Belief = tuple[Floats, Floats]
MOST_CLASSES = 100  # the errors of more take minutes with SciPy


def played(arms: int, rewards: int, seed: int = 0) -> Belief:
    """The arms' beliefs after so many rewards of a flat Thompson sampling."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.2, 0.6, arms)
    policy = bt.TS(bt.Tree(arms), rng=seed)
    a, b = np.ones(arms), np.ones(arms)
    for uniform in rng.random(rewards):
        arm = int(policy.choose())
        won = bool(uniform < mean[arm])
        policy.update(arm, won)
        (a if won else b)[arm] += 1
    return a, b


def cases() -> dict[str, Belief]:
    rng = np.random.default_rng(5)
    wins = rng.binomial(10_000, 0.5 + 0.01 * rng.standard_normal(32)).astype(float)
    return {
        "10 arms, a few plays each": (1.0 + rng.integers(0, 3, 10), 1.0 + rng.integers(0, 6, 10)),
        "1,000 arms, a few plays each": (1.0 + rng.integers(0, 3, 1000), 1.0 + rng.integers(0, 6, 1000)),
        "32 arms, 10,000 plays each": (1 + wins, 10_001 - wins),
        "20 arms from Beta(0.05, 0.05)": (0.05 + (np.arange(20) % 3 == 0), 0.05 + (np.arange(20) % 4 == 0)),
        "20 arms from Beta(0.001, 0.001)": (0.001 + rng.integers(0, 3, 20), 0.001 + rng.integers(0, 30, 20)),
        "3 arms, 2 million plays each": (np.array([1e6, 1.001e6, 0.999e6]), np.full(3, 1e6)),
        "60 arms, shapes from 0.001 to a million": (10 ** rng.uniform(-3, 6, 60), 10 ** rng.uniform(-3, 6, 60)),
        "32 arms after 3,000 rewards": played(32, 3_000),
        "32 arms after 300,000 rewards": played(32, 300_000),
        "1,000 arms after 3,000 rewards": played(1000, 3_000),
        "1,000 arms after 300,000 rewards": played(1000, 300_000),
        "1,000 arms, all different": (1 + 3 * rng.random(1000), 1 + 30 * rng.random(1000)),
        "100,000 arms after 3,000 rewards": played(100_000, 3_000),
    }


def milliseconds(engine: Any, a: Floats, b: Floats, repeats: int) -> str:
    """The fastest of some calls."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        engine.beta_wins(a, b)
        times.append(perf_counter() - start)
    return f"{1e3 * min(times):.2g}"


def row(name: str, a: Floats, b: Floats) -> str:
    classes = len(set(zip(a.tolist(), b.tolist(), strict=True)))
    engine = readable if native is None else native
    found = engine.beta_wins(a, b)
    error = "not computed"
    if classes <= MOST_CLASSES:
        first = np.unique(a + 1j * b, return_index=True)[1]  # one of each class is enough to compare
        expected = by_quadrature(a, b)[first]
        large = expected > 1e-12
        error = f"{np.abs(found[first][large] / expected[large] - 1).max():.0e}"
    cells = [name, f"{classes:,}", error, f"{abs(found.sum() - 1):.0e}"]
    cells += ["" if native is None else milliseconds(native, a, b, 30), milliseconds(readable, a, b, 5)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    print("| beliefs | classes | largest relative error | sum less 1 | native, ms | readable, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (a, b) in cases().items():
        print(row(name, a, b), flush=True)


if __name__ == "__main__":
    main()
