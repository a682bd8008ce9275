"""The page `docs/benchmarks.md`: what a section hands over, medians and ratios, and the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.contestants import NUMPY, OURS, READABLE
from tools.pages.journal import Line
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


@dataclass
class Section:
    """One part of the report."""

    title: str
    text: str
    tables: list[tuple[str, Table]] = field(default_factory=list)  # (heading, table)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peer_wins: list[str] = field(default_factory=list)

    versions: dict[str, str] = field(default_factory=dict)  # of the contestants
    failures: dict[str, str] = field(default_factory=dict)  # who, or who and what -> why

    def lines(self) -> list[Line]:
        """The section as lines of the CSV file: a line per cell of a table, per target, per win and so on."""
        found: list[Line] = []

        def add(kind: str, where: str, row: str, column: str, value: str) -> None:
            found.append({"kind": kind, "where": where, "row": row, "column": column, "value": value})

        for heading, content in self.tables:
            for cells in content.rows:
                key = ", ".join(cells[: max(content.left, 1)])
                for name, cell in zip(content.header, cells, strict=True):
                    add("table", heading or self.title, key, name, cell)
        for target in self.targets:
            spread = target.measured
            numbers = {"median": spread.median, "low": spread.low, "high": spread.high, "goal": target.goal}
            for name, number in numbers.items():
                add("target", self.title, target.what, name, f"{number:.5g}")
            add("target", self.title, target.what, "rounds", str(spread.n))
            add("target", self.title, target.what, "unit", target.unit)
            add("target", self.title, target.what, "sign", "at most" if target.at_most else "at least")
        for kind, texts in (("note", self.notes), ("win", self.peer_wins)):
            for place, text in enumerate(texts):
                add(kind, self.title, str(place), "text", text)
        for kind, named in (("version", self.versions), ("failure", self.failures)):
            for name, text in named.items():
                add(kind, self.title, name, "text", text)
        add("machine", self.title, "", "text", describe())
        return found

    def shown(self) -> str:
        """The tables and notes, for a terminal."""
        lines = [f"## {self.title}\n", self.text.strip(), ""]
        for heading, content in self.tables:
            lines += [f"### {heading}\n"] if heading else []
            lines += [table(content), ""]
        return "\n".join([*lines, *self.notes])


COLUMNS = ("kind", "where", "row", "column", "value")


def targets(lines: Sequence[Line]) -> list[Target]:
    """The targets that stand in lines."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        if line["kind"] == "target":
            found.setdefault(line["row"], {})[line["column"]] = line["value"]
    return [
        Target(
            what,
            Spread(float(of["median"]), float(of["low"]), float(of["high"]), int(of["rounds"])),
            float(of["goal"]),
            at_most=of["sign"] == "at most",
            unit=of["unit"],
        )
        for what, of in found.items()
    ]


def _targets_table(found: Sequence[Target]) -> str:
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

Contestants take turns, round after round, each in its own process on one thread, so that other load on the machine
affects all of them. Compare ratios, not microseconds, with your own machine. Each peer runs in its own environment, in
the version that PyPI offers, with the settings that its documentation recommends.
"""
HOW = """## Run it yourself

```
make bench                                          # what is missing; rewrites this page
.venv/bin/python -m benchmarks --quick --no-peers   # a minute: the same cases, shortened, on the terminal
.venv/bin/python -m benchmarks --only steps,cold    # some parts
```

A peer is one part of `benchmarks/peers.py`; corrections from the authors of a library are welcome.
"""


def text(lines: Sequence[Line], folder: Path) -> str:
    """The page: targets, where a peer wins, the decisions of ATS, logs and the service, and a picture."""
    found = targets(lines)
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in ("win", "version", "failure")}
    machines = list(dict.fromkeys(line["value"] for line in lines if line["kind"] == "machine"))
    parts = [INTRO, f"Measured on: {'; '.join(machines) or 'nothing yet'}.\n"]
    versions = {line["row"]: line["value"] for line in by_kind["version"] if line["row"] != READABLE}
    if versions:
        parts.append(", ".join(f"{_short(name)} {version}" for name, version in versions.items()) + ".\n")
    if found:
        picture = draw_targets([target for target in found if target.unit == "×" and not target.at_most], folder)
        met = sum(target.met for target in found)
        parts += [f"## Targets\n\n{met} of {len(found)} met.\n\n{_targets_table(found)}\n", picture]
    wins = [f"- {line['value']}" for line in by_kind["win"]]
    rule = "Faster, smaller, or with less regret by more than two standard errors (two of our sd for a single run).\n\n"
    parts.append("## Where a peer wins\n\n" + rule + ("\n".join(wins) if wins else "Nowhere so far.") + "\n")
    if by_kind["failure"]:
        lost = [f"- {line['row']}: {line['value']}" for line in by_kind["failure"]]
        parts.append("\n".join(["Not everything ran:\n", *lost, ""]))
    parts += [_short_table(lines, title) for title in SHOWN]
    return "\n".join([*parts, HOW])


SHOWN = ("Decisions with their probability", "Logs", "The service")  # sections whose tables stand on the page


def _short_table(lines: Sequence[Line], title: str) -> str:
    """A table as it stands in lines."""
    rows: dict[str, dict[str, str]] = {}
    for line in lines:
        if line["kind"] == "table" and line["where"] == title:
            rows.setdefault(line["row"], {})[line["column"]] = line["value"]
    if not rows:
        return ""
    header = list(next(iter(rows.values())))
    notes = [f"\n{line['value']}\n" for line in lines if line["kind"] == "note" and line["where"] == title]
    shown = table(Table(header, [tuple(cells.values()) for cells in rows.values()]))
    return "\n".join([f"## {title}\n", f"{shown}\n", *notes])


def _short(name: str) -> str:
    return {OURS: "banditree (native and readable engine)", NUMPY: "NumPy (plain loops)"}.get(name, name)


def draw_targets(found: Sequence[Target], folder: Path) -> str:
    """Draw a bar per target, and a line where the goal is; return the link."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if not found:
        return ""
    figure = Figure(figsize=(7.2, 0.9 + 0.3 * len(found)), layout="constrained")
    axes = figure.subplots()
    for place, target in enumerate(found):
        middle = target.measured.median
        axes.barh(place, middle, color="#0072B2" if target.met else "#D55E00", height=0.6)
        axes.plot([target.goal] * 2, [place - 0.42, place + 0.42], color="black", linewidth=2)
        end = (max(middle, target.goal), place)
        axes.annotate(times(middle), end, (6, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(found)), [target.what.split(":")[0] for target in found], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=0.5)
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast; a black line is the target, an orange bar misses it")
    axes.spines[["top", "right"]].set_visible(False)
    path = folder / "images" / "benchmarks.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return f"![How many times as fast, beside the targets](images/{path.name})\n"
