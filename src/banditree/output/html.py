"""Write small pieces of HTML, for notebooks. Every text goes through ``text``, which escapes it."""

from __future__ import annotations

from html import escape
from math import isnan


def text(value: object) -> str:
    """Escape a text."""
    return escape(str(value))


def tag(name: str, *children: str, **attributes: str) -> str:
    """Write an element; children are HTML, attributes are escaped. ``class_`` is class, other underscores are hyphens.

    >>> tag("p", text("a < b"), class_="note", data_id='"1"')
    '<p class="note" data-id="&quot;1&quot;">a &lt; b</p>'
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{''.join(children)}</{name}>"


def number(value: float) -> str:
    """Format a number with four digits; none after the point from 1,000 on.

    >>> number(1234.56), number(87.654), number(0.0123456), number(float("nan"))
    ('1,235', '87.65', '0.01235', '–')
    """
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
