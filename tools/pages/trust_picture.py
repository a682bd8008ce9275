"""Draw docs/images/trust.png, how ATS learns to trust a tree: ``python -m tools.pages.trust_picture``.

ATS runs in three worlds of 100 arms in 10 clusters. What its table says under ``trust`` is read off as it learns, and
drawn beside the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree.plots.style import BLUE, GREEN, VERMILLION, house_style

TARGET = Path(__file__).parents[2] / "docs" / "images" / "trust.png"
CLUSTERS, ARMS = 10, 10  # arms in each cluster
RUNS = 20
TIMES = np.unique(np.geomspace(30, 10_000, 16).astype(int))


@dataclass(frozen=True)
class World:
    """How far clusters differ, and how far the arms in them do: standard deviations of their mean rewards."""

    name: str
    clusters: float
    arms: float
    color: str
    marker: str


WORLDS = (
    World("clusters tell much", 0.12, 0.02, BLUE, "o"),
    World("clusters tell something", 0.08, 0.08, VERMILLION, "s"),
    World("clusters tell nothing", 0.0, 0.12, GREEN, "^"),
)


def means(world: World, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the mean rewards of all arms, cluster by cluster, with exactly the world's spreads: (arms,)."""
    centres = _scaled(rng.standard_normal(CLUSTERS), world.clusters)
    inside = np.concatenate([_scaled(rng.standard_normal(ARMS), world.arms) for _ in range(CLUSTERS)])
    return np.asarray(np.clip(0.4 + np.repeat(centres, ARMS) + inside, 0.01, 0.99))


def learned(world: World, seed: int) -> NDArray[np.float64]:
    """Run ATS, and read how far it believes clusters, and arms of a cluster, to differ: (2, times)."""
    rng = np.random.default_rng([seed, 8])
    true = means(world, rng)
    tree = bt.Tree({f"c{i}": [f"{i}-{j}" for j in range(ARMS)] for i in range(CLUSTERS)})
    rate = dict(zip(tree.arms, true.tolist(), strict=True))
    policy = bt.ATS(tree, rng=seed)
    found = []
    for time in range(1, TIMES[-1] + 1):
        arm = policy.choose()
        policy.update(arm, reward=int(rng.random() < rate[arm]))
        if time in TIMES:
            rows = {row.path: row.trust for row in policy.table() if "±" in row.trust}
            inside = [float(trust.split("±")[1]) for path, trust in rows.items() if len(path) == 1]
            found.append((float(rows[()].split("±")[1]), float(np.median(inside))))
    return np.array(found).T


def main() -> int:
    """Write the picture."""
    with house_style():
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained", sharey=True)
        for world in WORLDS:
            runs = np.array([learned(world, seed) for seed in range(RUNS)])  # (runs, 2, times)
            low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=0)  # (2, times) each
            for ax, at, true in zip(axes, range(2), (world.clusters, world.arms), strict=True):
                _line(ax, world, (low[at], middle[at], high[at]), true)
        _words(axes)
        figure.savefig(TARGET, dpi=150)
    print(TARGET)
    return 0


def _line(ax: Any, world: World, quartiles: tuple[Any, Any, Any], true: float) -> None:
    low, middle, high = quartiles
    ax.plot(TIMES, middle, color=world.color, marker=world.marker, label=world.name)
    ax.fill_between(TIMES, low, high, color=world.color, alpha=0.15, linewidth=0)
    ax.axhline(true, color=world.color, linestyle="--", linewidth=1.2)


def _words(axes: Any) -> None:
    for ax, what in zip(axes, ("clusters", "arms of a cluster"), strict=True):
        ax.set_xscale("log")
        ax.set_xticks([100, 1000, 10_000], ["100", "1,000", "10,000"])
        ax.set_xlabel("decisions")
        ax.set_title(f"how far {what} differ")
    axes[0].set_ylim(-0.004, 0.25)
    axes[0].set_ylabel("standard deviation of mean rewards")
    axes[1].legend(title=f"median and quartiles,\n{RUNS} runs; dashed: the truth", loc="upper right")


def _scaled(values: NDArray[np.float64], sd: float) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / values.std() * sd)


if __name__ == "__main__":
    raise SystemExit(main())
