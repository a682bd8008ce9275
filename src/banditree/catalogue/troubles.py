"""What is wrong with a table: all of it, by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from banditree.errors import InvalidValue
from banditree.output.words import count

SHOWN = 20  # lines of a message
ALIKE = 3  # equal troubles up to this many have a line each, more share one
NAMES = 10  # that a list in a message has
LONGEST = 60  # characters of a value in a message


def shown(value: Any) -> str:
    """A value as a message shows it, never long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def few(values: Sequence[Any]) -> str:
    """The first of many values: 'a', 'b', ... and 7 more.

    >>> few(["a", "b"]), few([])
    ("'a', 'b'", '')
    """
    more = f", ... and {len(values) - NAMES:,} more" if len(values) > NAMES else ""
    return ", ".join(map(shown, values[:NAMES])) + more


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong. In a file the header is row 1; in a data frame the first row is row 0.

    ``kind`` is the same for troubles that are alike but for the value; they share a line where there are many.
    """

    row: int | None
    column: str | None
    message: str
    kind: str = ""

    def __str__(self) -> str:
        return _line([] if self.row is None else [f"row {self.row}"], self.column, self.message)


class CatalogueError(InvalidValue):
    """A table that cannot be read as a catalogue. ``problems`` has every trouble, the message a line for each kind."""

    problems: list[Trouble]

    def __init__(self, source: str, problems: Sequence[Trouble]) -> None:
        self.problems = sorted(problems, key=lambda trouble: -1 if trouble.row is None else trouble.row)
        lines = [f"  {line}" for line in _lines(self.problems)]
        if len(lines) > SHOWN:
            lines[SHOWN:] = [f"  ... and {len(lines) - SHOWN:,} more"]
        super().__init__("\n".join([f"{count(len(problems), 'problem')} in {source}", *lines]))


def _lines(troubles: Sequence[Trouble]) -> list[str]:
    """A line for each trouble, or for many that are alike, in the order of their first rows."""
    alike: dict[tuple[str | None, str], list[Trouble]] = {}
    for trouble in troubles:
        alike.setdefault((trouble.column, trouble.kind or trouble.message), []).append(trouble)
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
