"""docs/estimator-table.md: which estimator wins where, on logs of worlds whose truth is known, and published tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import banditree as bt
from banditree import ope
from banditree.base.arrays import Floats
from tools.pages import evidence, published_tables
from tools.pages.evidence import Page, Part
from tools.pages.journal import Line
from tools.pages.markdown import Table, table

CLUSTERS, SIZE = 10, 10
TREE = bt.Tree.from_labels(np.repeat(np.arange(CLUSTERS), SIZE).tolist())
HEAD = """# Which estimator wins where

{logs} logs of each world, 100 arms in 10 clusters, rewards of 0 and 1. A number is the root mean squared error of the
estimate over the logs, as a multiple of doubly robust's, so below 1 is better than `dr`; the best of a world is bold.
In brackets is the share of its 95% intervals that hold the truth; `dm` has none. A plain name means that SLOPE chooses
the setting, as `bt.evaluate` does by default.
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
- The intervals of `switch-dr`, `dros`, `mips` and `offcem` leave their bias out: use them to compare values.
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


COLUMNS = ("estimator", "error", "spread", "coverage")
LOGS = 200


def measure(world: World, place: int, logs: int = LOGS) -> list[Line]:
    """One line per estimator: the root mean squared error, and how often the interval holds the truth."""
    return [
        {
            "estimator": name,
            "error": f"{np.sqrt(np.mean([error**2 for error, _ in found])):.6g}",
            "spread": "",
            "coverage": "" if name == "dm" else f"{np.mean([holds for _, holds in found]):.3f}",
        }
        for name, found in errors(world, logs, place).items()
    ]


def parts() -> list[Part]:
    """The worlds, and the published tables. What they depend on shows in the estimates of a log or two."""
    found = []
    for place, world in enumerate(worlds()):
        tried = errors(world, 1, place)
        of = evidence.digest(world, LOGS, evidence.numbers([[error for error, _ in some] for some in tried.values()]))
        found.append(Part(f"{world.name}, {world.rows:,} rows", of, partial(measure, world, place)))
    law = evidence.digest(*(part.digest for part in found))
    for name in published_tables.SETTINGS:
        of = evidence.digest(law, name, published_tables.SETTING)
        found.append(Part(f"published: {name}", of, partial(published_tables.measure, name)))
    return found


def text(lines: list[Line], folder: Path) -> str:
    """The whole page."""
    found: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in lines:
        found[line["part"]][line["estimator"]] = line
    names = list(ope.ESTIMATORS)
    rows = []
    for part in (name for name in found if not name.startswith("published")):
        sizes = {name: float(found[part][name]["error"]) for name in names}
        best = min(sizes.values())
        cells = []
        for name in names:
            ratio = f"{sizes[name] / sizes['dr']:.2f}"
            held = found[part][name]["coverage"]
            bold = f"**{ratio}**" if sizes[name] == best else ratio
            cells.append(f"{bold} ({100 * float(held):.0f}%)" if held else bold)
        rows.append((part, *cells))
    published = {
        name: {estimator: (float(line["error"]), float(line["spread"])) for estimator, line in of.items()}
        for name in published_tables.SETTINGS
        if (of := found.get(f"published: {name}"))
    }
    picture = draw(found, folder / "images" / "estimator-table.png") if rows else ""
    header = ("world", *(f"`{name}`" for name in names))
    head = [HEAD.format(logs=LOGS), table(Table(header, rows)), picture, TAIL]
    return "\n".join([*head, published_tables.section(published)])


def draw(found: Mapping[str, Mapping[str, Line]], path: Path) -> str:
    """Draw the errors of all estimators over that of doubly robust, one row per world; return the link."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    worlds = [name for name in found if not name.startswith("published")]
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    for place, name in enumerate(name for name in ope.ESTIMATORS if name != "dr"):
        x = [float(found[world][name]["error"]) / float(found[world]["dr"]["error"]) for world in worlds]
        y = np.arange(len(worlds))[::-1] + 0.07 * (3.5 - place)
        axes.scatter(x, y, s=24, marker="osDv^P*X"[place], linewidths=0, label=name)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set(xscale="log", xlabel="root mean squared error over that of dr")
    axes.set_yticks(range(len(worlds)), worlds[::-1], fontsize="small")
    axes.xaxis.set_major_locator(ticker.FixedLocator([0.5, 1, 2, 3]))
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return f"\n![Errors of the estimators over that of dr, world by world](images/{path.name})\n"


PAGE = Page("estimator-table", COLUMNS, parts, text)
