"""Collect and print everything that is wrong with a table, by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from banditree.errors import InvalidValue
from banditree.report.words import count

SHOWN = 20  # lines of a message, at most
ALIKE = 3  # up to this many defects of one kind get a line each, more share one
NAMES = 10  # values listed in a message, at most
LONGEST = 60  # characters of a value in a message, at most


def shown(value: Any) -> str:
    """Format a value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def first_few(values: Sequence[Any]) -> str:
    """List the first of many values: 'a', 'b', ... and 7 more.

    >>> first_few(["a", "b"]), first_few([])
    ("'a', 'b'", '')
    """
    more = f", ... and {len(values) - NAMES:,} more" if len(values) > NAMES else ""
    return ", ".join(map(shown, values[:NAMES])) + more


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong with a table. In a file the header is row 1; in a data frame the first row is row 0.

    Defects that differ only in the value have the same ``kind``; if there are many, they share a line.
    """

    row: int | None
    column: str | None
    message: str
    kind: str = ""

    def __str__(self) -> str:
        return _line([] if self.row is None else [f"row {self.row}"], self.column, self.message)


class CatalogueError(InvalidValue):
    """A table cannot be read as a catalogue. ``problems`` lists every defect; the message groups them by kind."""

    problems: list[Defect]

    def __init__(self, source: str, problems: Sequence[Defect]) -> None:
        self.problems = sorted(problems, key=lambda defect: -1 if defect.row is None else defect.row)
        lines = [f"  {line}" for line in _lines(self.problems)]
        if len(lines) > SHOWN:
            lines[SHOWN:] = [f"  ... and {len(lines) - SHOWN:,} more"]
        super().__init__("\n".join([f"{count(len(problems), 'problem')} in {source}", *lines]))


def _lines(defects: Sequence[Defect]) -> list[str]:
    """Write one line per defect, or per kind if there are many of it, in the order of their first rows."""
    alike: dict[tuple[str | None, str], list[Defect]] = {}
    for defect in defects:
        alike.setdefault((defect.column, defect.kind or defect.message), []).append(defect)
    lines: list[tuple[int, str]] = []
    for group in alike.values():
        if len(group) <= ALIKE:
            lines += [(-1 if each.row is None else each.row, str(each)) for each in group]
            continue
        rows = ", ".join(str(each.row) for each in group[:ALIKE])
        first = group[0]
        same = all(each.message == first.message for each in group)
        example = first.message if same else f"{first.message} (row {first.row}), and so on"
        place = _line([f"{len(group):,} rows ({rows}, ...)"], first.column, example)
        lines.append((-1 if first.row is None else first.row, place))
    return [line for _, line in sorted(lines, key=lambda line: line[0])]


def _line(places: list[str], column: str | None, message: str) -> str:
    places = places + ([] if column is None else [f"column {shown(column)}"])
    return f"{', '.join(places)}: {message}" if places else message
