"""Show trees, tables, runs and policies in a notebook, as plain HTML that needs no extra.

Every name goes through `html.text`, which escapes it. Styles are set on the elements, because a notebook has no style
sheet of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from banditree.output.html import tag, text

if TYPE_CHECKING:
    from banditree.report.tables import Table

INDENT = "margin:0;padding-left:1.2em;list-style:none"
NOTE = "opacity:.65"
LEFT, RIGHT = "text-align:left", "text-align:right"

# A line of an outline: its text, a note beside it, the lines below it, and whether these are shown at first.
Line = tuple[str, str, "Sequence[Line]", bool]


def outline(title: str, lines: Sequence[Line]) -> str:
    """Write nested lines that can be opened and closed; a cluster is a line with lines below it."""
    return titled(title, _list(lines))


def _list(lines: Sequence[Line]) -> str:
    return tag("ul", *(tag("li", _line(*line)) for line in lines), style=INDENT)


def _line(words: str, note: str, below: Sequence[Line], shown: bool) -> str:
    said = text(words) + (f" {tag('span', text(note), style=NOTE)}" if note else "")
    if not below:
        return said
    opened = {"open": "open"} if shown else {}
    return tag("details", tag("summary", said), _list(below), **opened)


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool], *, note: str = "") -> str:
    """Write a table of texts; ``left`` says which columns are aligned left."""
    sides = [LEFT if words else RIGHT for words in left]
    head = tag("tr", *(tag("th", text(name), style=side) for name, side in zip(columns, sides, strict=True)))
    body = (
        tag("tr", *(tag("td", text(cell), style=side) for cell, side in zip(row, sides, strict=True))) for row in rows
    )
    inside = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", inside, tag("div", text(note), style=NOTE) if note else "", style="overflow-x:auto")


def titled(title: str, *parts: str) -> str:
    """Write a title and the parts below it."""
    return tag("div", tag("div", tag("b", text(title))), *parts)


def table(found: Table) -> str:
    """Write a table as printing shows it: the first rows, and how many more there are."""
    shown, left, note = found.shown()
    return grid(found.columns, shown, left, note=note)
