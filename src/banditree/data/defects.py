"""Defects of a table, by column and row, and the error that reports all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from banditree.base.words import count
from banditree.errors import InvalidValue

MAX_LINES = 20  # lines of a message
MAX_ALIKE = 3  # rows of one kind of problem that are listed before they are summarised
MAX_VALUES = 10  # values listed in a message
MAX_CHARACTERS = 60  # of a value in a message


def quote(value: object) -> str:
    """Format a value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."


def first_few(values: Sequence[object]) -> str:
    """List the first of many values: 'a', 'b', ... and 7 more.

    >>> first_few(["a", "b"]), first_few([])
    ("'a', 'b'", '')
    """
    more = f", ... and {len(values) - MAX_VALUES:,} more" if len(values) > MAX_VALUES else ""
    return ", ".join(map(quote, values[:MAX_VALUES])) + more


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong with a table, in one or several rows.

    In a file the header is row 1; in a data frame the first row is row 0. ``row`` is the first affected row, ``rows``
    are all of them. Problems that differ only in the value have the same ``kind``; if there are many, they share a
    line of the message.
    """

    row: int | None
    column: str | None
    message: str
    kind: str = ""
    rows: tuple[int, ...] = ()
    number: int = 0  # of affected rows, where an engine keeps rows that have no numbers

    @property
    def n(self) -> int:
        """The number of affected rows; 0 for a problem of the whole table."""
        return self.number or len(self.rows)

    def __post_init__(self) -> None:
        if not self.rows and self.row is not None:
            object.__setattr__(self, "rows", (self.row,))

    def __str__(self) -> str:
        return _line(self.rows, self.column, self.message, self.number)


class TableError(InvalidValue):
    """A table cannot be read. ``problems`` lists every kind of problem with all of its rows."""

    problems: list[Defect]

    def __init__(self, source: str, problems: Iterable[Defect]) -> None:
        reported = sorted(problems, key=_first_row)
        groups = _by_kind(reported)
        lines = sorted((line for group in groups for line in _lines(group)), key=lambda line: line[0])
        texts = [f"  {text}" for _, text in lines]
        if len(texts) > MAX_LINES:
            texts[MAX_LINES:] = [f"  ... and {len(texts) - MAX_LINES:,} more"]
        total = sum(max(problem.n, 1) for problem in reported)
        self.problems = self.list_problems(reported)
        super().__init__("\n".join([f"{count(total, 'problem')} in {source}", *texts]))

    @staticmethod
    def list_problems(problems: Sequence[Defect]) -> list[Defect]:
        """List the problems as users see them: here one for each kind, with all of its rows."""
        return [
            replace(group[0], rows=tuple(row for problem in group for row in problem.rows))
            for group in _by_kind(problems)
        ]


def _by_kind(problems: Iterable[Defect]) -> list[list[Defect]]:
    """Group the problems of a column that are of one kind, in the order of their first rows."""
    groups: dict[tuple[str | None, str], list[Defect]] = {}
    for problem in problems:
        groups.setdefault((problem.column, problem.kind or problem.message), []).append(problem)
    return list(groups.values())


def _first_row(problem: Defect) -> int:
    return -1 if problem.row is None else problem.row


def _lines(group: Sequence[Defect]) -> list[tuple[int, str]]:
    """Write one line for each problem, or one for all if there are many: (first row, line)."""
    first = group[0]
    rows = [row for problem in group for row in problem.rows]
    if all(problem.message == first.message for problem in group):
        return [(_first_row(first), _line(rows, first.column, first.message, first.number))]
    if len(rows) <= MAX_ALIKE:
        return [(_first_row(problem), str(problem)) for problem in group]
    example = f"{first.message} (row {first.row}), and so on"
    return [(_first_row(first), _line(rows, first.column, example))]


def _line(rows: Sequence[int], column: str | None, message: str, number: int = 0) -> str:
    """Write the place of a problem, and the problem."""
    first = ", ".join(str(row) for row in rows[:MAX_ALIKE])
    where = [count(number, "row")] if number else []
    if len(rows) > MAX_ALIKE:
        where.append(f"{len(rows):,} rows ({first}, ...)")
    elif rows:
        where.append(f"row{'s' if len(rows) > 1 else ''} {first}")
    if column is not None:
        where.append(f"column {quote(column)}")
    return f"{', '.join(where)}: {message}" if where else message
