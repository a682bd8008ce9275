"""The table of docs/exact-probabilities.md: errors of winning probabilities against SciPy, and times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import banditree as bt
from banditree.base.arrays import Floats
from banditree.beliefs import winning as readable
from banditree.stream import native
from tests.support.winning import by_quadrature
from tools.pages import evidence
from tools.pages.evidence import DOCS, Page, Part
from tools.pages.journal import Line
from tools.pages.markdown import Table, table

Belief = tuple[Floats, Floats]
MOST_CLASSES = 100  # the errors of more take minutes with SciPy


def played(arms: int, rewards: int, seed: int = 0) -> Belief:
    """The arms' beliefs after this many rewards of a flat Thompson sampling."""
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


def cases() -> dict[str, Callable[[], Belief]]:
    rng = np.random.default_rng(5)
    wins = rng.binomial(10_000, 0.5 + 0.01 * rng.standard_normal(32)).astype(float)
    return {
        "10 arms, a few plays each": lambda: (1.0 + rng.integers(0, 3, 10), 1.0 + rng.integers(0, 6, 10)),
        "1,000 arms, a few plays each": lambda: (1.0 + rng.integers(0, 3, 1000), 1.0 + rng.integers(0, 6, 1000)),
        "32 arms, 10,000 plays each": lambda: (1 + wins, 10_001 - wins),
        "20 arms from Beta(0.05, 0.05)": lambda: (0.05 + (np.arange(20) % 3 == 0), 0.05 + (np.arange(20) % 4 == 0)),
        "20 arms from Beta(0.001, 0.001)": lambda: (0.001 + rng.integers(0, 3, 20), 0.001 + rng.integers(0, 30, 20)),
        "3 arms, 2 million plays each": lambda: (np.array([1e6, 1.001e6, 0.999e6]), np.full(3, 1e6)),
        "60 arms, shapes from 0.001 to a million": lambda: (10 ** rng.uniform(-3, 6, 60), 10 ** rng.uniform(-3, 6, 60)),
        "32 arms after 3,000 rewards": lambda: played(32, 3_000),
        "32 arms after 300,000 rewards": lambda: played(32, 300_000),
        "1,000 arms after 3,000 rewards": lambda: played(1000, 3_000),
        "1,000 arms after 300,000 rewards": lambda: played(1000, 300_000),
        "1,000 arms, all different": lambda: (1 + 3 * rng.random(1000), 1 + 30 * rng.random(1000)),
        "100,000 arms after 3,000 rewards": lambda: played(100_000, 3_000),
    }


def milliseconds(engine: Any, a: Floats, b: Floats, repeats: int) -> str:
    """The fastest of some calls."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        engine.beta_wins(a, b)
        times.append(perf_counter() - start)
    return f"{1e3 * min(times):.2g}"


COLUMNS = ("beliefs", "classes", "largest relative error", "sum less 1", "native, ms", "readable, ms")
START, END = "<!-- table: start -->", "<!-- table: end -->"


def measure(beliefs: Callable[[], Belief]) -> list[Line]:
    """The errors and times of a case."""
    a, b = beliefs()
    classes = len(set(zip(a.tolist(), b.tolist(), strict=True)))
    engine = readable if native is None else native
    found = engine.beta_wins(a, b)
    error = "not computed"
    if classes <= MOST_CLASSES:
        first = np.unique(a + 1j * b, return_index=True)[1]  # one of each class is enough to compare
        expected = by_quadrature(a, b)[first]
        large = expected > 1e-12
        error = f"{np.abs(found[first][large] / expected[large] - 1).max():.0e}"
    times = ("" if native is None else milliseconds(native, a, b, 30), milliseconds(readable, a, b, 5))
    return [dict(zip(COLUMNS[1:], (f"{classes:,}", error, f"{abs(found.sum() - 1):.0e}", *times), strict=True))]


def parts() -> list[Part]:
    """Every case is a part. What they depend on shows in the probabilities of three small ones."""
    known = list(cases().items())
    engine = readable if native is None else native
    small = [engine.beta_wins(*beliefs()) for _, beliefs in (known[0], known[3], known[6])]
    return [
        Part(name, evidence.digest(name, evidence.numbers(small)), partial(measure, beliefs)) for name, beliefs in known
    ]


def text(lines: list[Line], folder: Path) -> str:
    """The page as it is, with another picture and table between its marks."""
    page = (DOCS / "exact-probabilities.md").read_text(encoding="utf-8")
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    assert (start, end) == (START, END), "docs/exact-probabilities.md has lost the marks around its table"
    rows = [(line["part"], *(line[column] for column in COLUMNS[1:])) for line in lines]
    picture = draw(lines, folder / "images" / "exact-probabilities.png") if lines else ""
    written = f"{before}{START}\n{picture}\n{table(Table(COLUMNS, rows))}\n\n{END}{after}"
    return written.partition("\nAll lines: [data/")[0].partition("\n**Pending:")[0]


def draw(lines: list[Line], path: Path) -> str:
    """Draw the time of a vector against its number of different beliefs, on both engines; return the link."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for column, colour in (("native, ms", "#0072B2"), ("readable, ms", "#D55E00")):
        shown = [(int(line["classes"].replace(",", "")), float(line[column])) for line in lines if line[column]]
        x, y = zip(*shown, strict=True) if shown else ((), ())
        axes.scatter(x, y, s=26, color=colour, linewidths=0, label=column.partition(",")[0])
    axes.set(xscale="log", yscale="log", xlabel="different beliefs", ylabel="ms for all probabilities")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return f"\n![Time for all probabilities, by how many beliefs are different](images/{path.name})\n"


PAGE = Page("exact-probabilities", COLUMNS[1:], parts, text)
