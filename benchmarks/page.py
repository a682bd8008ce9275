"""The page `docs/benchmarks.md`: what a section hands over, medians and ratios, and the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.harness import Arena
from tools.pages.markdown import Table, describe, figures, table, times


@dataclass(frozen=True)
class Spread:
    """The median of repeated measurements, and the middle half of them."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = np.percentile(values, [25, 50, 75]).tolist()
        return cls(median, low, high, len(values))

    def __mul__(self, unit: float) -> Spread:
        return Spread(self.median * unit, self.low * unit, self.high * unit, self.n)

    def text(self) -> str:
        """``12.3 (12.1 to 12.9)``; the bare number where there was one measurement."""
        if self.n == 1:
            return figures(self.median)
        return f"{figures(self.median)} ({figures(self.low)} to {figures(self.high)})"


def ratio(slow: Sequence[float], fast: Sequence[float]) -> Spread:
    """How many times faster: the ratio within each round, where the machine was in the same mood for both."""
    return Spread.of([a / b for a, b in zip(slow, fast, strict=False)])


@dataclass(frozen=True)
class Target:
    """A number to reach: at least so much, or at most."""

    what: str
    measured: Spread
    goal: float
    at_most: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool:
        return self.measured.median <= self.goal if self.at_most else self.measured.median >= self.goal


@dataclass(frozen=True)
class Plot:
    """A picture: its file name, what it shows in words, and how to draw it."""

    name: str
    shows: str
    draw: Callable[[Path], None]


@dataclass
class Section:
    """One part of the report."""

    title: str
    text: str
    tables: list[tuple[str, Table]] = field(default_factory=list)  # (heading, table)
    targets: list[Target] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peer_wins: list[str] = field(default_factory=list)


def targets(found: Sequence[Target]) -> str:
    rows = []
    for target in found:
        sign = "at most" if target.at_most else "at least"
        goal = f"{sign} {figures(target.goal, 2 if target.goal < 100 else 3)}{target.unit}"
        rows.append(
            (target.what, _measured(target), _middle(target.measured), goal, "met" if target.met else "**missed**")
        )
    return table(Table(("what", "measured", "middle half of the rounds", "target", ""), rows))


def _measured(target: Target) -> str:
    return times(target.measured.median) if target.unit == "×" else figures(target.measured.median)


def _middle(spread: Spread) -> str:
    return "one measurement" if spread.n == 1 else f"{figures(spread.low, 2)} to {figures(spread.high, 2)}"


INTRO = """# Benchmarks

`make bench` writes this page in one run. Contestants take turns, round after round, each in its own process on one
thread, so that other load on the machine affects all of them alike. Compare ratios, not microseconds, with your own
machine. Each peer runs in its own environment, in the version that PyPI offers.
"""
HOW = """## Run it yourself

```
make bench                                       # everything, about twenty minutes; rewrites this page
.venv/bin/python -m benchmarks --quick --no-peers   # a minute: the same cases, shortened
.venv/bin/python -m benchmarks --only steps,cold    # some parts
.venv/bin/python -m benchmarks --help
```

A short or partial run prints its tables and writes to `build/benchmarks`, not here. A peer is one part of
`benchmarks/peers.py`; corrections from the authors of a library are welcome.
"""


def write(folder: Path, arena: Arena, sections: Sequence[Section], *, pictures: str = "benchmarks") -> tuple[Path, str]:
    """Draw the pictures and write the page below ``folder``; gives its path and text."""
    (folder / pictures).mkdir(parents=True, exist_ok=True)
    parts = [INTRO, f"Measured on: {describe()}.\n", _headline(sections), _wins(arena, sections)]
    parts += [_contestants(arena.versions, arena.failures)]
    for section in sections:
        parts.append(_section(section, pictures))
        for plot in section.plots:
            plot.draw(folder / pictures / plot.name)
    text = "\n".join([*parts, HOW])
    path = folder / "benchmarks.md"
    path.write_text(text, encoding="utf-8")
    return path, text


def _headline(sections: Sequence[Section]) -> str:
    found = [target for section in sections for target in section.targets]
    if not found:
        return ""
    met = sum(target.met for target in found)
    return f"## Targets\n\n{met} of {len(found)} met.\n\n{targets(found)}\n"


def _wins(arena: Arena, sections: Sequence[Section]) -> str:
    if not arena.peers:
        return ""
    wins = [f"- {win}" for section in sections for win in section.peer_wins]
    rule = "Faster, smaller, or with less regret by more than two standard errors (two of our sd for a single run).\n\n"
    return "## Where a peer wins\n\n" + rule + ("\n".join(wins) if wins else "Nowhere in this run.") + "\n"


def _contestants(versions: Mapping[str, str], failures: Mapping[str, str]) -> str:
    names = [name for name in versions if name != READABLE]
    lines = ["## Contestants\n", ", ".join(f"{_short(name)} {versions[name]}" for name in names) + ".\n"]
    if failures:
        lines += ["Not everything ran:\n", *(f"- {who}: {why}" for who, why in failures.items()), ""]
    return "\n".join(lines)


def _short(name: str) -> str:
    return {OURS: "banditree (native and readable engine)", NUMPY: "NumPy (plain loops)"}.get(name, name)


def _section(section: Section, pictures: str) -> str:
    lines = [f"## {section.title}\n", section.text.strip() + "\n"]
    for heading, content in section.tables:
        lines += [f"### {heading}\n"] if heading else []
        lines += [table(content), ""]
    for note in section.notes:
        lines += [note, ""]
    for plot in section.plots:
        lines += [f"![{plot.shows}]({pictures}/{plot.name})", ""]
    return "\n".join(lines)
