"""Write counts with their nouns, and make text safe to print in a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls (escape sequences start with them), and marks that reverse or hide the text that follows.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SPACES = "\t\n\v\f\r\x85\u2028\u2029"


def count(n: int, thing: str, things: str = "") -> str:
    """Write a count with its noun: 1 arm, 1,200 arms; ``things`` is an irregular plural."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {things or thing + 's'}"


def visible(text: object, *, lines: bool = False) -> str:
    r"""Make control characters visible, so that a name cannot control the terminal.

    White space of any kind becomes a space; with ``lines``, ends of lines are kept.

    >>> print(visible("\x1b[31mred\x1b[0m hat\r\n"))
    \x1b[31mred\x1b[0m hat
    """
    plain = str(text)
    if lines:
        return "\n".join(visible(line) for line in plain.split("\n"))
    return UNSEEN.sub(_shown, plain).rstrip() if UNSEEN.search(plain) else plain


def _shown(match: re.Match[str]) -> str:
    mark = match[0]
    return " " if mark in SPACES else mark.encode("unicode_escape").decode()
