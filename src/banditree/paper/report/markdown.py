"""The claims as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan

from banditree.paper.claims import Verdict


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """A row a claim: what is claimed, the verdict, what the numbers say, and the command that runs it again."""
    columns = ("claim", "the paper says", "verdict", "margin", "seeds", "the numbers say", "run it again")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for verdict in verdicts:
        claim = verdict.claim
        cells = (
            f"`{claim.id}`",
            claim.quote,
            f"**{verdict.verdict}**",
            margin(verdict.margin),
            "–" if verdict.finding is None else str(verdict.finding.seeds),
            verdict.sentence,
            f"`banditree reproduce {' '.join(claim.figures)}`",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def margin(value: float | None) -> str:
    """Standard errors on the paper's side of the threshold.

    >>> margin(12.345), margin(-3.2), margin(None), margin(float("inf"))
    ('+12.3', '-3.2', '–', 'exact')
    """
    if value is None or isnan(value):
        return "–"
    return "exact" if isinf(value) else f"{value:+.1f}"
