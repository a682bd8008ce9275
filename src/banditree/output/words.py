"""Words that go with numbers."""

from __future__ import annotations


def count(n: int, thing: str) -> str:
    """1 arm, 1,200 arms."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
