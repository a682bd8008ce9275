"""A claim on the page: its verdict's sign, the facts beside it, the checks and numbers behind it."""

from __future__ import annotations

from banditree.output.html import number
from banditree.paper.claims import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, Finding, Verdict
from banditree.paper.claims.checks import needed
from banditree.paper.report.grid import Grid
from banditree.paper.report.markdown import margin

# A word, a sign and a colour each, so that none of them has to carry the verdict alone.
SIGNS = {
    HOLDS: ("✓", "holds"),
    PART: ("◐", "part"),
    FAILS: ("✗", "fails"),
    OPEN: ("?", "open"),
    NOT_JUDGED: ("–", "none"),
}


def facts(verdict: Verdict) -> list[str]:
    """The margin and what it rests on, in a few words each; none where the claim is not judged."""
    found = verdict.finding
    if found is None:
        return []
    said = [
        f"margin {margin(found.margin)}",
        f"needed {needed(found.seeds):.1f}",
        f"{found.seeds} seeds",
        f"T = {found.horizon:,}",
    ]
    if verdict.half is not None:
        said.append(f"at half of T it {'also ' if verdict.half == verdict.verdict else ''}{verdict.half}")
    return said


def checks(found: Finding) -> Grid:
    """One row per check."""
    rows = [
        (
            check.what,
            {"yes": "passes", "no": "fails", "open": "open"}[check.result],
            "shown" if check.proof else "not refuted",
            "yes" if check.core else "no",
            f"{number(check.estimate.value)} ± {number(check.estimate.se)}",
            f"{'>' if check.above else '<'} {number(check.threshold)}",
            margin(check.margin),
        )
        for check in found.checks
    ]
    columns = ("check", "result", "passes when", "a part by itself", "number ± se", "threshold", "margin")
    return Grid(columns, rows, "Checks", words=4)


def behind(found: Finding) -> Grid:
    """The numbers that the sentence was made from."""
    return Grid(("number", "value"), [(name, number(value)) for name, value in found.numbers.items()], "Numbers")
