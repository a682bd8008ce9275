"""Render a document as text: headers of tables wrap first, then numbers; names are broken only if nothing else fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from banditree.base.document import (
    Badge,
    Bar,
    Bullets,
    Cell,
    Code,
    Document,
    Grid,
    Link,
    Note,
    Outline,
    Picture,
    Quote,
    Range,
    Section,
)
from banditree.base.words import cell_width, chop, visible

COLUMN_GAP = 2  # spaces between columns
MIN_COLUMN_WIDTH = 4  # columns are not made narrower than this
MAX_ROWS = 15  # of a table
Rows = Sequence[Sequence[Cell]]
Styled = tuple[str, str]  # the style of a line, and the line


def to_text(document: Document, width: int | None = None) -> str:
    """Render a document as text, wrapped to ``width`` columns if one is given."""
    return "\n".join(line for _, line in styled_lines(document, width))


def styled_lines(document: Document, width: int | None = None) -> list[Styled]:
    """Return the lines of a document with their styles: headline, title, header, code, note, or none."""
    headline = [("headline", line) for line in _wrap(visible(document.headline), width) if line]
    return _strip([*headline, *_parts(document.parts, width)])


def brief_lines(document: Document, width: int | None = None) -> list[Styled]:
    """Return the essential lines of a document with their styles."""
    return _strip(list(_parts(document.brief or [document.headline], width)))


def _strip(lines: list[Styled]) -> list[Styled]:
    """Leave out empty lines at both ends."""
    full = [i for i, (_, line) in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []


def _parts(parts: Iterable[object], width: int | None, *, is_inside: bool = False) -> Iterator[Styled]:
    previous: object = ""
    for part in parts:
        if isinstance(part, Picture) or (isinstance(part, Section) and part.page_only):
            continue
        is_apart = isinstance(part, Section) or (isinstance(part, Grid | Outline) and not is_inside)
        if is_apart and not isinstance(previous, Section):
            yield "", ""
        yield from _part(part, width)
        previous = part
        if isinstance(part, Section):
            yield "", ""


def _part(part: object, width: int | None) -> Iterator[Styled]:
    if isinstance(part, Section):
        badge = f" [{plain(part.badge)}]" if part.badge else ""
        yield from (("title", line) for line in _wrap(visible(part.title) + badge, width))
        yield from _strip(list(_parts(part.parts, width, is_inside=True)))
    elif isinstance(part, Grid):
        yield from grid_lines(part, width)
    elif isinstance(part, Outline):
        yield from (("", line) for line in visible(part.text, lines=True).split("\n"))
    elif isinstance(part, Bullets):
        for words in part.lines:
            first, *rest = _wrap(plain(words), None if width is None else max(width - 2, 1))
            yield "", f"- {first}"
            yield from (("", f"  {line}") for line in rest)
    elif isinstance(part, Code):
        label = f"{part.label}: " if part.label else ""
        yield from (("code", line) for line in _wrap(label + visible(part.text, lines=True), width))
    elif isinstance(part, Quote):
        source = f" ({words})" if (words := plain(part.source)) else ""
        yield from (("note", line) for line in _wrap(f"“{visible(part.text)}”{source}", width))
    elif isinstance(part, Note):
        yield from (("note", line) for line in _wrap(plain(part.words), width))
    else:
        yield from (("", line) for line in _wrap(plain(part), width))


def plain(words: object) -> str:
    """Return the words of a sentence or a cell without links and marks."""
    if isinstance(words, tuple):
        return "".join(map(plain, words))
    if isinstance(words, Bar | Range):
        return ""
    return visible(words.text if isinstance(words, Link | Badge | Code) else words)


# Tables


def grid_lines(grid: Grid, width: int | None = None) -> Iterator[Styled]:
    """Yield the lines of a table, header first.

    >>> print(*(line for _, line in grid_lines(Grid(("category", "plays"), [("hats", "1,200")]))), sep="\\n")
    category  plays
    hats      1,200
    """
    are_marks = [all(isinstance(row[i], Bar | Range) for row in grid.rows) for i in range(len(grid.columns))]
    kept = [i for i, name in enumerate(grid.columns) if name or not are_marks[i]]
    names = {place for place, i in enumerate(kept) if i in set(grid.names)}
    header = [visible(grid.columns[i]) for i in kept]
    first, hidden, last = cut_rows(grid, None if grid.most is None else min(grid.most, MAX_ROWS))
    rows = [[plain(row[i]) for i in kept] for row in (*first, *last)]
    widths = _column_widths(header, rows, names, width)
    yield from (("header", line) for line in _side_by_side(header, widths, names))
    is_apart = max((_longest_word(row[0]) for row in rows), default=0) > widths[0]
    for place, row in enumerate(rows):
        if hidden and place == len(first):
            yield "", f"... {hidden:,} more"
        cells = row
        if is_apart and any(row[1:]):  # a name that does not fit goes on a line above its row
            yield from (("", line) for line in _wrap(row[0], width))
            cells = ["", *row[1:]]
        yield from (("", line) for line in _side_by_side(cells, widths, names))
    if hidden and not last:
        yield "", f"... and {hidden:,} more rows"


def cut_rows(grid: Grid, most: int | None) -> tuple[Rows, int, Rows]:
    """Return the rows to show first, the number of rows left out, and the rows to show after these."""
    if most is None or len(grid.rows) <= most:
        return grid.rows, 0, ()
    if not grid.both_ends:
        return grid.rows[:most], len(grid.rows) - most, ()
    half = most // 3
    return grid.rows[:half], len(grid.rows) - 2 * half, grid.rows[-half:]


def _column_widths(
    header: Sequence[str], rows: Sequence[Sequence[str]], names: set[int], width: int | None
) -> list[int]:
    columns = [[row[i] for row in rows] for i in range(len(header))]
    whole = [max(map(cell_width, cells), default=0) for cells in columns]
    natural = [max(pair) for pair in zip(whole, map(cell_width, header), strict=True)]
    room = None if width is None else width - COLUMN_GAP * (len(header) - 1)
    if room is None or sum(natural) <= room:
        return natural
    words = [_longest_word(name) for name in header]
    widths = [max(pair) for pair in zip(whole, words, strict=True)]  # the header wraps
    numbers = [i for i in range(len(header)) if i not in names]
    if sum(widths) > room:  # numbers wrap too
        for i in numbers:
            widths[i] = max(words[i], max(map(_longest_word, columns[i]), default=0))
    left = room - sum(widths[i] for i in numbers)
    for place, i in enumerate(sorted(names, key=lambda i: widths[i])):  # the longest get the remaining width
        widths[i] = max(min(widths[i], left // (len(names) - place)), words[i])
        left -= widths[i]
    while sum(widths) > room and max(widths) > MIN_COLUMN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths


def _side_by_side(cells: Sequence[str], widths: Sequence[int], names: set[int]) -> Iterator[str]:
    wrapped = [_wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for i in range(max(map(len, wrapped))):
        parts = []
        for column, (lines, width) in enumerate(zip(wrapped, widths, strict=True)):
            text = lines[i] if i < len(lines) else ""
            space = " " * (width - cell_width(text))
            parts.append(text + space if column in names else space + text)
        yield (" " * COLUMN_GAP).join(parts).rstrip()


# Lines


def _wrap(text: str, width: int | None) -> list[str]:
    """Wrap to this width at spaces; only longer words are broken inside."""
    if "\n" in text:
        return [line for part in text.split("\n") for line in _wrap(part, width)]
    if width is None or cell_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(joined) <= width:
            lines[-1] = joined
            continue
        if not lines[-1]:
            lines.pop()
        lines += chop(word, max(width, 1))
    return lines


def _longest_word(text: str) -> int:
    return max(map(cell_width, text.split(" ")))
