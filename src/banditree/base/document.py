"""The parts of a document: the content of a result, independent of the medium.

A document is a headline and parts. A part is a sentence (a str, or a tuple of texts, links, badges and code), or one
of the classes below. Cells of a grid are texts or marks, such as a bar.

>>> document = Document("TSC is best.", (Grid(("policy", "regret"), [("TSC", "12"), ("TS", "31")]), Note("4 seeds")))
>>> from banditree.report.text import to_text
>>> print(to_text(document))
TSC is best.
<BLANKLINE>
policy  regret
TSC         12
TS          31
4 seeds
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Link:
    """A link to an anchor of the same page."""

    text: str
    to: str


@dataclass(frozen=True)
class Badge:
    """A word that stands out; the sign before it says the same without its colour."""

    text: str
    sign: str = ""
    kind: str = "open"  # holds, fails or open: the class in the style sheet


@dataclass(frozen=True)
class Code:
    """Program text; a block of its own where it is a part. ``label`` precedes it on a terminal."""

    text: str
    label: str = ""


Inline = str | Link | Badge | Code
Words = Inline | tuple[Inline, ...]


@dataclass(frozen=True)
class Bar:
    """A cell that shows a share from 0 to 1 as the length of a bar; pages only."""

    share: float
    faint: bool = False


@dataclass(frozen=True)
class Range:
    """A cell that shows an interval and a value on a scale from 0 to 1; pages only."""

    low: float
    high: float
    value: float


Cell = Words | Bar | Range
Columns = dict[str, Callable[[Any], Cell]]  # {name of a column: how its cells are written}


@dataclass(frozen=True)
class Grid:
    """A table of formatted cells. Columns of ``names`` are aligned left and hold text, the others numbers.

    A page shows at most ``most`` rows, a terminal half as many; with ``both_ends`` these are the first and the last.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    names: Iterable[int] = (0,)
    label: str = ""  # a description for screen readers
    most: int | None = 30
    both_ends: bool = False

    @classmethod
    def of(cls, rows: Iterable[object], columns: Columns, **options: Any) -> Grid:
        """Make a table with one row for each item; ``columns`` says how each column is written."""
        return cls(tuple(columns), [[write(row) for write in columns.values()] for row in rows], **options)


@dataclass(frozen=True)
class Note:
    """A line in small print."""

    words: Words


@dataclass(frozen=True)
class Bullets:
    """A list of lines."""

    lines: Sequence[Words]


@dataclass(frozen=True)
class Quote:
    """A quotation and its source."""

    text: str
    source: Words = ""


@dataclass(frozen=True)
class Picture:
    """A picture, drawn only where it is shown: ``draw`` returns SVG as text, or the bytes of a PNG file."""

    draw: Callable[[], str | bytes]
    caption: Words = ""
    alt: str = ""


@dataclass(frozen=True)
class Line:
    """A line of an outline, with the lines below it; ``is_open`` says whether these are shown at first."""

    text: str
    note: str = ""
    below: Sequence[Line] = ()
    is_open: bool = False


@dataclass(frozen=True)
class Outline:
    """Nested lines that open and close, such as a tree; ``text`` stands for them on a terminal."""

    lines: Sequence[Line]
    text: str = ""


@dataclass(frozen=True)
class Section:
    """Parts under a title."""

    title: str
    parts: Sequence[Part]
    anchor: str = ""
    badge: Badge | None = None  # beside the title
    is_card: bool = False  # a framed part of the section around it
    is_folded: bool = False  # closed at first
    page_only: bool = False  # too long for a terminal or a notebook


Part = Words | Grid | Note | Bullets | Quote | Picture | Outline | Section


@dataclass(frozen=True)
class Document:
    """The content of a result: the answer first, then the evidence."""

    headline: str
    parts: Sequence[Part] = ()
    name: str = ""  # a few words for the title of the page's window; the headline where it is empty
    about: str = ""  # a few words above the headline
    brief: Sequence[Part] = ()  # what a command prints with --quiet; the headline where it is empty
    has_contents: bool = False  # whether links to its sections follow the headline

    def to_fragment(self, text: str) -> str:
        """Return the document as a notebook's cell; ``text`` in a box where Jinja2 is not installed."""
        from banditree.report.html import fragment

        return fragment(self, text)
