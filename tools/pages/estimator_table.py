"""Which estimator wins where? Logs of worlds whose truth is known, and how far each estimate is from it.

``python -m tools.pages.estimator_table --out docs/estimator-table.md`` makes the table of the docs.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree import ope
from tools.pages.published_tables import kept_section

Floats = NDArray[np.float64]
CLUSTERS, SIZE = 10, 10
TREE = bt.Tree.from_labels(np.repeat(np.arange(CLUSTERS), SIZE).tolist())
HEAD = """# Which estimator wins where

Made by `make estimator-table`: {logs} logs of each world, 100 arms in 10 clusters, rewards of 0 and 1. A number is the
root mean squared error of the estimate over the logs, as a multiple of doubly robust's, so below 1 is better than
`dr`; the best of a world is bold. In brackets is the share of its 95% intervals that hold the truth. `dm` has no
interval without contexts. A plain name means that SLOPE chooses the setting, as `bt.evaluate` does by default.
"""
TAIL = """
How to read it:

- `ips`, `snips`, `dr` and `sndr`: the intervals hold while enough rows carry the weight, `dr` longest. With 300 rows,
  or a very skewed logging policy, they begin to fail; `bt.evaluate` shows the effective sample size, and its verdict
  withholds judgement there.
- `dr` beats `ips` everywhere, `snips` and `sndr` are about as good.
- `offcem` and `dros` have the smallest errors where rows are few or weights great, `offcem` where clusters explain the
  rewards. They lose, as all that trust clusters or a model do, where these explain nothing or where there are rows
  enough to do without.
- The intervals of `dm`, `switch-dr`, `dros`, `mips` and `offcem` leave their bias out: use them to compare values.
- A verdict therefore goes by `dr`.
"""


@dataclass(frozen=True)
class World:
    """How logs are made."""

    name: str
    rows: int
    within: float  # sd of the arms' means inside a cluster; between clusters it is 0.15
    sharp: float  # how far the target leans to good arms
    skew: float  # how far the logging policy leans away from uniform, at random


def worlds() -> list[World]:
    return [
        World("target near the logging policy", 2000, 0.05, 2.0, 0.0),
        World("clusters explain all, sharp target", 2000, 0.0, 20.0, 0.0),
        World("clusters explain most, sharp target", 2000, 0.05, 20.0, 0.0),
        World("clusters explain nothing, sharp target", 2000, 0.15, 20.0, 0.0),
        World("few rows", 300, 0.05, 20.0, 0.0),
        World("many rows", 20_000, 0.05, 20.0, 0.0),
        World("skewed logging policy", 2000, 0.05, 20.0, 1.0),
        World("very skewed logging policy", 2000, 0.05, 20.0, 2.0),
    ]


def errors(world: World, logs: int, seed: int) -> dict[str, list[tuple[float, bool]]]:
    """The error of each estimator on each log, and whether its interval holds the truth."""
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for number in range(logs):
        rng = np.random.default_rng([seed, number])
        centre = np.repeat(0.3 + 0.15 * rng.standard_normal(CLUSTERS) * (world.within < 0.15), SIZE)
        means = np.clip(centre + world.within * rng.standard_normal(TREE.n_arms), 0.01, 0.95)
        target = _softmax(world.sharp * (means + 0.05 * rng.standard_normal(TREE.n_arms)))
        behaviour = _softmax(world.skew * rng.standard_normal(TREE.n_arms))
        arms = rng.choice(TREE.n_arms, size=world.rows, p=behaviour)
        rewards = (rng.random(world.rows) < means[arms]).astype(float)
        table = {"arm": arms, "reward": rewards, "p": behaviour[arms]}
        log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
        truth = float(target @ means)
        for each in bt.evaluate(log, target, tree=TREE, behaviour=behaviour, rng=number):
            low, high = each.interval
            found[each.estimator.name].append((each.value - truth, low <= truth <= high))
    return found


def _softmax(scores: Floats) -> Floats:
    raised: Floats = np.exp(scores - scores.max())
    raised /= raised.sum()
    return raised


def text(logs: int, seed: int = 0) -> str:
    """The whole page."""
    names = list(ope.ESTIMATORS)
    lines = [HEAD.format(logs=logs), "| world | " + " | ".join(f"`{name}`" for name in names) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for place, world in enumerate(worlds()):
        found = errors(world, logs, seed + place)
        sizes = {name: float(np.sqrt(np.mean([error**2 for error, _ in found[name]]))) for name in names}
        best = min(sizes.values())
        cells = []
        for name in names:
            ratio = f"{sizes[name] / sizes['dr']:.2f}"
            held = "" if name == "dm" else f" ({100 * np.mean([holds for _, holds in found[name]]):.0f}%)"
            cells.append((f"**{ratio}**" if sizes[name] == best else ratio) + held)
        lines.append(f"| {world.name}, {world.rows:,} rows | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" + TAIL


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Make the table of estimators.")
    parser.add_argument("--out", type=Path, help="the file to write; without it the page is printed")
    parser.add_argument("--logs", type=int, default=200, help="logs of each world")
    options = parser.parse_args(arguments)
    page = text(options.logs) + kept_section(options.out)
    if options.out is None:
        sys.stdout.write(page)
    else:
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
