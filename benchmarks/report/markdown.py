"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.findings import Table, Target
from benchmarks.timing import Spread
from benchmarks.words import figures, times


def table(content: Table) -> str:
    rule = ["---" if column < content.left else "---:" for column in range(len(content.header))]
    return "\n".join(_row(cells) for cells in (content.header, rule, *content.rows))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
