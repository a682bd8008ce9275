"""Small pieces of a page. Every text goes through ``text``, which escapes it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from math import isnan


def text(value: object) -> str:
    return escape(str(value))


def tag(name: str, *children: str, **attributes: str) -> str:
    """An element; children are HTML already, attributes are not. ``class_`` is class, other underscores are hyphens.

    >>> tag("p", text("a < b"), class_="note", data_id='"1"')
    '<p class="note" data-id="&quot;1&quot;">a &lt; b</p>'
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{''.join(children)}</{name}>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, label: str, words: int = 1) -> str:
    """A table of texts that scrolls in its own box; the first ``words`` columns are words, the others numbers."""

    def cell(kind: str, i: int, value: str) -> str:
        return tag(
            kind, text(value), class_="word" if i < words else "number", **({"scope": "col"} if kind == "th" else {})
        )

    head = tag("tr", *(cell("th", i, name) for i, name in enumerate(columns)))
    body = (tag("tr", *(cell("td", i, value) for i, value in enumerate(row))) for row in rows)
    inside = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def image(content: bytes, *, kind: str, alt: str) -> str:
    """A picture, carried inside the page; ``kind`` is the rest of its MIME type, such as png or svg+xml."""
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alt)}" loading="eager">'


def number(value: float) -> str:
    """Four digits, and no more than one after the point for what is above a hundred.

    >>> number(1234.56), number(87.654), number(0.0123456), number(float("nan"))
    ('1,235', '87.65', '0.01235', '–')
    """
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
