"""Judge the claims of the paper's experiments and appendix: verdicts are computed, never written by hand.

Every claim has its statistic and threshold in the code. `HOW_JUDGED` of the report says how a verdict comes about.
"""

from __future__ import annotations

import json
from pathlib import Path

from banditree.paper.claims.appendix import APPENDIX, COST
from banditree.paper.claims.checks import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, VERDICTS, Check, Finding, Missing
from banditree.paper.claims.claim import Claim, Data, Source, Verdict
from banditree.paper.claims.figure_1 import DOMINANCE, HIERARCHY, LEMMA
from banditree.paper.claims.figure_2 import CONTEXTUAL, VIOLATION
from banditree.paper.claims.instances import INSTANCES
from banditree.paper.figures import DEFAULT, FIGURES
from banditree.report.files import write_whole

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
    try:
        finding = claim.evaluate(Data(results, jobs=jobs))
    except Missing as missing:
        return Verdict(claim, None, missing=str(missing))
    half = _try(claim, Data(results, half=True, jobs=jobs)) if claim.over_time else None
    variants = {name: _try(claim, Data(results, name, jobs=jobs)) for name in _variants(claim)}
    return Verdict(
        claim,
        finding,
        half=None if half is None else half.verdict,
        variants={name: finding for name, finding in variants.items() if finding is not None},
    )


def write_claims(verdicts: list[Verdict], out: Path) -> Path:
    """Write claims.json, a list with one object per claim."""
    path = Path(out) / "claims.json"
    described = [verdict.to_dict() for verdict in verdicts]
    write_whole(path, [json.dumps(described, indent=2, allow_nan=False, ensure_ascii=False).encode(), b"\n"])
    return path


def _try(claim: Claim, data: Data) -> Finding | None:
    try:
        return claim.evaluate(data)
    except Missing:
        return None


def _variants(claim: Claim) -> list[str]:
    """Return the variants that all figures of a claim have."""
    known = [list(FIGURES[name].variants) for name in claim.figures]
    return [variant for variant in known[0] if variant != DEFAULT and all(variant in variants for variants in known)]
