"""Judge the claims of the paper's experiments and appendix: verdicts are computed, never written by hand.

Every claim has its statistic and threshold in the code. `HOW_JUDGED` of the report says how a verdict comes about.
"""

from __future__ import annotations

import json
from pathlib import Path

from banditree.base.files import write_whole
from banditree.paper.claims.checks import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, VERDICTS, Check, Finding, Missing
from banditree.paper.claims.claim import Claim, Data, Source, Verdict
from banditree.paper.claims.comparisons import APPENDIX, CONTEXTUAL, COST, VIOLATION
from banditree.paper.claims.figure_1 import DOMINANCE, HIERARCHY, LEMMA
from banditree.paper.claims.instances import INSTANCES
from banditree.paper.figures import DEFAULT, FIGURES

CLAIMS: dict[str, Claim] = {
    claim.id: claim for claim in (*DOMINANCE, *LEMMA, *HIERARCHY, *INSTANCES, *VIOLATION, *CONTEXTUAL, *APPENDIX, *COST)
}

__all__ = [
    "CLAIMS", "Check", "Claim", "FAILS", "Finding", "HOLDS", "NOT_JUDGED", "OPEN", "PART", "VERDICTS", "Verdict",
    "judge", "judge_claim", "write_claims",
]  # fmt: skip


def judge(results: Source, *, jobs: int | None = -1) -> list[Verdict]:
    """Judge every claim, in the paper's order; verdicts say where data are missing."""
    return [judge_claim(claim, results, jobs=jobs) for claim in CLAIMS.values()]


def judge_claim(claim: Claim, results: Source, *, jobs: int | None = -1) -> Verdict:
    """Judge a claim under the default readings, at half the horizon, and under each variant that was run."""

    def find(variant: str = DEFAULT, *, half: bool = False) -> Finding | str:
        """Return the finding, or what is missing for it."""
        try:
            return claim.find(Data(results, claim.figures, variant, half, jobs))
        except Missing as missing:
            return str(missing)

    finding = find()
    if isinstance(finding, str):
        return Verdict(claim, None, missing=finding)
    half = find(half=True) if claim.over_time else ""
    readings = {name: find(name) for name in FIGURES[claim.figures[0]].options if _have_variant(claim, name)}
    return Verdict(
        claim,
        finding,
        half=None if isinstance(half, str) else half.verdict,
        variants={name: reading for name, reading in readings.items() if not isinstance(reading, str)},
    )


def _have_variant(claim: Claim, variant: str) -> bool:
    """Say whether all figures of a claim have this variant."""
    return all(variant in FIGURES[figure].options for figure in claim.figures)


def write_claims(verdicts: list[Verdict], out: Path) -> Path:
    """Write claims.json, a list with one object per claim."""
    path = Path(out) / "claims.json"
    described = [verdict.to_dict() for verdict in verdicts]
    write_whole(path, [json.dumps(described, indent=2, allow_nan=False, ensure_ascii=False).encode(), b"\n"])
    return path
