"""Numbers and messages as they appear in the report."""

from __future__ import annotations

import re


def short(message: str, length: int = 160) -> str:
    """One line without the paths of this machine."""
    line = re.sub(r"(\w+:/)?/[^\s'\",;)]*", "...", " ".join(message.split()))
    return line if len(line) <= length else line[: length - 3] + "..."


def figures(value: float, digits: int = 3) -> str:
    """A number with so many significant figures, and commas for thousands."""
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
