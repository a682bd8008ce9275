"""Lay out tables on a terminal: headers wrap first, then numbers; names are broken only if nothing else fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.text import Text

from banditree.report.words import visible

GAP = 2  # spaces between columns
NARROWEST = 4  # no column is made narrower than this


class Grid:
    """A table of texts under a header. ``names`` are the indices of the columns that hold names.

    >>> grid = Grid("category", "plays")
    >>> grid.add_row("hats", "1,200")
    >>> print(*grid.lines(80), sep="\\n")
    category  plays
    hats      1,200
    """

    def __init__(self, *columns: str, names: Iterable[int] = (0,)) -> None:
        self.columns, self.names = columns, tuple(names)
        self.rows: list[list[str]] = []

    def add_row(self, *cells: object) -> None:
        self.rows.append([visible(cell) for cell in cells])

    def lines(self, width: int) -> list[str]:
        """Return the lines of the table for a terminal of this width, header first."""
        return [line for _, line in self._lines(width)]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
        for style, line in self._lines(options.max_width):
            yield Text(line, style=style, no_wrap=True, overflow="ignore")

    def _lines(self, width: int) -> Iterator[tuple[str, str]]:
        """Yield (style, line) for each line of the table."""
        widths = self._widths(width)
        yield from (("dim", line) for line in _side_by_side(self.columns, widths))
        apart = max((_longest_word(row[0]) for row in self.rows), default=0) > widths[0]
        for row in self.rows:
            cells = row
            if apart and any(row[1:]):  # a name that does not fit goes on a line above its row
                yield from (("", line) for line in _wrapped(row[0], width))
                cells = ["", *row[1:]]
            yield from (("", line) for line in _side_by_side(cells, widths))

    def _widths(self, width: int) -> list[int]:
        """Compute the width of each column."""
        numbers = [i for i in range(len(self.columns)) if i not in self.names]
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        whole = [max(map(cell_len, cells), default=0) for cells in columns]
        header = [_longest_word(name) for name in self.columns]
        room = width - GAP * (len(self.columns) - 1)
        natural = [max(pair) for pair in zip(whole, map(cell_len, self.columns), strict=True)]
        found = [max(pair) for pair in zip(whole, header, strict=True)]  # the header wraps
        if sum(natural) <= room:
            return natural
        if sum(found) > room:  # numbers wrap too
            for i in numbers:
                found[i] = max(header[i], max(map(_longest_word, columns[i]), default=0))
        left = room - sum(found[i] for i in numbers)
        for place, i in enumerate(sorted(self.names, key=lambda i: found[i])):  # the longest get what the others leave
            found[i] = max(min(found[i], left // (len(self.names) - place)), header[i])
            left -= found[i]
        while sum(found) > room and max(found) > NARROWEST:
            found[found.index(max(found))] -= 1
        return found


def _side_by_side(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of one row: the first column aligned left, the others right."""
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for i in range(max(map(len, wrapped))):
        parts = []
        for column, (lines, width) in enumerate(zip(wrapped, widths, strict=True)):
            text = lines[i] if i < len(lines) else ""
            space = " " * (width - cell_len(text))
            parts.append(space + text if column else text + space)
        yield (" " * GAP).join(parts).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap to this width at spaces; only longer words are broken inside."""
    lines = [""]
    for word in text.split(" "):
        together = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(together) <= width:
            lines[-1] = together
            continue
        if not lines[-1]:
            lines.pop()
        lines += chop_cells(word, max(width, 1)) if cell_len(word) > width else [word]
    return lines


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split(" ")))
