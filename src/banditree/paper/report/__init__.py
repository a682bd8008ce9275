"""Write the report of a reproduction: report.html, claims.json and claims.md."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from banditree.errors import InvalidValue
from banditree.paper.claims import Verdict, judge, write_claims
from banditree.paper.report.page import Report, claims_table
from banditree.paper.report.theory import Theory, theory
from banditree.paper.results import Results, load_results
from banditree.report.files import write_whole

__all__ = ["Report", "Theory", "write_report"]


def write_report(
    out: str | Path, results: Results | None = None, verdicts: Sequence[Verdict] | None = None, *, jobs: int | None = -1
) -> Path:
    """Judge the claims, write ``report.html``, ``claims.json`` and ``claims.md`` to ``out``; return the page's path.

    By default ``results`` are those of the folder, and ``verdicts`` are computed from them. What has to be simulated
    runs on ``jobs`` workers.
    """
    started = time.perf_counter()
    folder = Path(out)
    results = (load_results(folder) if results is None else results).in_order()
    if not results.kept:
        raise InvalidValue(f"{folder} has no finished figure; run `banditree reproduce --out {folder}` first")
    verdicts = judge(results, jobs=jobs) if verdicts is None else list(verdicts)
    write_claims(list(verdicts), folder)
    write_whole(folder / "claims.md", [claims_table(verdicts).encode()])
    bounds = theory(results, jobs=jobs)
    path = folder / "report.html"
    report = Report(results, verdicts, bounds, seconds=time.perf_counter() - started)
    write_whole(path, [report.to_html().encode()])
    return path
