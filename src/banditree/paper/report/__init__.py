"""Write the report of a reproduction: report.html, claims.json, claims.md, and copies for the documentation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from banditree.errors import BadFile, InvalidValue
from banditree.files import write_whole
from banditree.paper.claims import NOT_JUDGED, Verdict, judge, write_claims
from banditree.paper.report.markdown import claims_table
from banditree.paper.report.page import Report
from banditree.paper.report.theory import Theory, theory
from banditree.paper.results import Results, load_results

HEADLINES = ("2b", "2c", "1f")  # the pictures that the README and the documentation show
START, END = "<!-- claims: start -->", "<!-- claims: end -->"

__all__ = ["HEADLINES", "Report", "Theory", "update_docs", "write_report"]


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


def update_docs(out: str | Path, docs: str | Path, more: str | Path | None = None) -> list[Path]:
    """Copy the claims table and the headline pictures of a reproduction into the documentation; return the files.

    The table goes between the two marks in ``paper.md``, the pictures to ``images``. ``more`` is the folder of a
    reproduction of some or all figures with more seeds; what was judged there follows in a table of its own.
    """
    folder, target = Path(out), Path(docs) / "paper.md"
    sources = [folder / "claims.md", *(folder / f"{name}.png" for name in HEADLINES)]
    sources += [] if more is None else [Path(more) / "claims.md"]
    absent = [str(path) for path in sources if not path.exists()]
    if absent:
        raise InvalidValue(f"cannot find {', '.join(absent)}; `banditree reproduce --out DIR` writes them to DIR")
    text = target.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise BadFile(f"{target} has no marks {START} and {END}, between which the claims go")
    tables = sources[0].read_text(encoding="utf-8")
    if more is not None:
        lines = sources[-1].read_text(encoding="utf-8").splitlines()
        judged = [line for line in lines if f"**{NOT_JUDGED}**" not in line]
        tables += "\n### With more seeds\n\n" + "\n".join(judged) + "\n"
    write_whole(target, [f"{before}{START}\n\n{tables}\n{END}{after}".encode()])
    images = Path(docs) / "images"
    images.mkdir(exist_ok=True)
    written = [target]
    for name in HEADLINES:
        write_whole(images / f"{name}.png", [(folder / f"{name}.png").read_bytes()])
        written.append(images / f"{name}.png")
    return written
