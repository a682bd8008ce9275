"""What the page shows about a claim: the sign of its verdict, facts, checks and numbers."""

from __future__ import annotations

from banditree.output.html import number
from banditree.paper.claims import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, Finding, Verdict
from banditree.paper.claims.checks import needed_errors
from banditree.paper.report.markdown import margin
from banditree.paper.report.numbers import Grid

# A sign and a CSS class for each verdict, so that it never depends on the colour alone.
SIGNS = {
    HOLDS: ("✓", "holds"),
    PART: ("◐", "part"),
    FAILS: ("✗", "fails"),
    OPEN: ("?", "open"),
    NOT_JUDGED: ("–", "none"),
}


def facts(verdict: Verdict) -> list[str]:
    """Return the margin and what it is based on; nothing if the claim is not judged."""
    found = verdict.finding
    if found is None:
        return []
    said = [
        f"margin {margin(found.margin)}",
        f"needed {needed_errors(found.seeds):.1f}",
        f"{found.seeds} seeds",
        f"T = {found.horizon:,}",
    ]
    if verdict.half is not None:
        said.append(f"at half of T it {'also ' if verdict.half == verdict.verdict else ''}{verdict.half}")
    return said


def checks(found: Finding) -> Grid:
    """Return one row per check."""
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
    """Return the numbers behind the sentence."""
    return Grid(("number", "value"), [(name, number(value)) for name, value in found.numbers.items()], "Numbers")
