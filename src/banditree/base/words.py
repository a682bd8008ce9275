"""Write numbers, shares, intervals and counts as people read them, and make text safe to print in a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from unicodedata import combining, east_asian_width

# C0 and C1 controls (escape sequences start with them), and marks that reverse or hide the text that follows.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SPACES = "\t\n\v\f\r\x85\u2028\u2029"
UNKNOWN = "–"  # shown for a number that is not known
NOTHING = 1e-9  # the share of an interval's larger end below which the other is written as 0


def number(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits, without an exponent from 1,000 on; NaN is a dash.

    >>> number(12345.6), number(0.00123456), number(0.1 + 0.2, 4), number(float("nan"))
    ('12,300', '0.00123', '0.3', '–')
    """
    value += 0.0  # turns -0.0 into 0.0
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else UNKNOWN
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:.{digits}g}"


def percent(share: float) -> str:
    """Format a share from 0 to 1: 0.3% or 24%."""
    share += 0.0
    if math.isnan(share):
        return UNKNOWN
    return f"{100 * share:.1f}%" if abs(share) < 0.0995 and share else f"{100 * share:.0f}%"


def chance(share: float) -> str:
    """Format an estimated probability, never as 0% or 100%."""
    return "over 99%" if share > 0.99 else "under 1%" if share < 0.01 else f"{100 * share:.0f}%"


def interval(ends: Iterable[float], write: Callable[[float], str] = number) -> str:
    """Format an interval: "0.1 to 0.25", or a dash if it is not known.

    An end that is next to nothing beside the other is 0.

    >>> interval((0.1, 0.25)), interval((0.1, 0.25), percent), interval((6.58e-55, 0.8))
    ('0.1 to 0.25', '10% to 25%', '0 to 0.8')
    """
    both = list(ends)
    larger = max(map(abs, both))
    nothing = NOTHING * larger if math.isfinite(larger) else 0.0
    low, high = (write(0.0 if abs(end) < nothing else end) for end in both)
    return UNKNOWN if UNKNOWN in (low, high) else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Say roughly how long something takes.

    >>> duration(0.4), duration(42), duration(700), duration(9000)
    ('a few seconds', 'about 40 seconds', 'about 12 minutes', 'about 2.5 hours')
    """
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} seconds"
    return f"about {seconds / 60:.0f} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"


def path(names: Iterable[object]) -> str:
    """Write the path of a node, coarse to fine; the root is "(all)"."""
    return " / ".join(map(str, names)) or "(all)"


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
    return UNSEEN.sub(_spell_out, plain).rstrip() if UNSEEN.search(plain) else plain


def _spell_out(match: re.Match[str]) -> str:
    mark = match[0]
    return " " if mark in SPACES else mark.encode("unicode_escape").decode()


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two per wide character, none per combining mark."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def chop(word: str, width: int) -> list[str]:
    """Cut a word into pieces of at most this width."""
    pieces = [""]
    for sign in word:
        if pieces[-1] and cell_width(pieces[-1] + sign) > width:
            pieces.append("")
        pieces[-1] += sign
    return pieces
