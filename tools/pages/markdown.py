"""Numbers and tables as they appear on generated pages, and what they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import banditree as bt


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; numbers are aligned right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # columns of words


def table(content: Table) -> str:
    rule = ["---" if column < content.left else "---:" for column in range(len(content.header))]
    return "\n".join(_row(cells) for cells in (content.header, rule, *content.rows))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def figures(value: float, digits: int = 3) -> str:
    """A number with this many significant figures, and commas for thousands."""
    if abs(value) < 1e-6:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    before = len(str(int(abs(rounded)))) if abs(rounded) >= 1 else 0
    return f"{rounded:,.{max(0, digits - before)}f}" if before else f"{rounded:g}"


def micro(seconds: float) -> str:
    """Seconds as microseconds."""
    return figures(seconds * 1e6)


def times(ratio: float) -> str:
    return f"{figures(ratio, 2 if ratio < 100 else 3)}×"


def describe() -> str:
    """Processor, system, Python, NumPy and engine, without the name of the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{processor()}, {cores} cores, {platform.system()}, {python}, NumPy {version('numpy')}, "
        f"banditree {bt.__version__} ({bt.engine()} engine)"
    )


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
