"""Write the claims as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan

from banditree.paper.claims import Verdict
from banditree.paper.figures import FIGURES

COLUMNS = (
    "claim", "the paper says", "verdict", "margin", "seeds", "the numbers say", "other readings", "run it again"
)  # fmt: skip


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """Return one row per claim: the quote, the verdict, what the numbers say, and the command that repeats it."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for verdict in verdicts:
        claim = verdict.claim
        cells = (
            f"{claim.title} (`{claim.id}`)",
            claim.quote,
            f"**{verdict.verdict}**",
            margin(verdict.margin),
            "–" if verdict.finding is None else str(verdict.finding.seeds),
            verdict.sentence,
            "; ".join(f"{name}: {finding.verdict}" for name, finding in verdict.variants.items()) or "–",
            f"`{again(verdict)}`",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def again(verdict: Verdict) -> str:
    """Return the command that gives this verdict, with its seeds if they are not the paper's, and its readings."""
    claim, finding = verdict.claim, verdict.finding
    command = f"banditree reproduce {' '.join(claim.figures)}"
    seeds = {FIGURES[name].seeds for name in claim.figures}
    if finding is not None and not claim.of_instances and finding.seeds not in seeds:
        command += f" --seeds {finding.seeds}"
    return f"{command} --variant all" if verdict.variants else command


def margin(value: float | None) -> str:
    """Format a margin, in standard errors on the paper's side of the threshold; a count has none.

    >>> margin(12.345), margin(-3.2), margin(None), margin(float("inf"))
    ('+12.3', '-3.2', '–', 'count')
    """
    if value is None or isnan(value):
        return "–"
    return "count" if isinf(value) else f"{value:+.1f}"
