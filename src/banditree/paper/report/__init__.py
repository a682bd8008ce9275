"""The report of a reproduction: report.html, claims.json and claims.md, and the copies that the documentation shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from banditree.errors import BadFile, InvalidValue
from banditree.paper.claims import Verdict, judge, write_claims
from banditree.paper.report.markdown import claims_table
from banditree.paper.report.page import page
from banditree.paper.report.theory import Theory, theory
from banditree.paper.results import Results, load_results
from banditree.store import write_whole

HEADLINES = ("2b", "2c", "1f")  # the pictures that the README and the documentation show
START, END = "<!-- claims: start -->", "<!-- claims: end -->"

__all__ = ["HEADLINES", "Theory", "update_docs", "write_report"]


def write_report(out: str | Path, results: Results | None = None, verdicts: Sequence[Verdict] | None = None) -> Path:
    """Judge the claims and write ``report.html``, ``claims.json`` and ``claims.md`` to ``out``; the path of the page.

    ``results`` are those of the folder, unless given; ``verdicts`` are computed from them, unless given.
    """
    folder = Path(out)
    results = (load_results(folder) if results is None else results).in_order()
    if not results.kept:
        raise InvalidValue(f"{folder} has no finished figure; run `banditree reproduce --out {folder}` first")
    verdicts = judge(results) if verdicts is None else list(verdicts)
    write_claims(list(verdicts), folder)
    write_whole(folder / "claims.md", [claims_table(verdicts).encode()])
    path = folder / "report.html"
    write_whole(path, [page(results, verdicts, theory(results)).encode()])
    return path


def update_docs(out: str | Path, docs: str | Path) -> list[Path]:
    """Put the claims table and the headline pictures of a reproduction into the documentation; the files written.

    The table goes between the two marks in ``paper.md``, the pictures to ``images``.
    """
    folder, target = Path(out), Path(docs) / "paper.md"
    sources = [folder / "claims.md", *(folder / f"{name}.png" for name in HEADLINES)]
    absent = [path.name for path in sources if not path.exists()]
    if absent:
        raise InvalidValue(f"{folder} has no {', '.join(absent)}; run `banditree reproduce --out {folder}` first")
    text = target.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise BadFile(f"{target} has lost the marks {START} and {END}, between which the claims go")
    table = sources[0].read_text(encoding="utf-8")
    write_whole(target, [f"{before}{START}\n\n{table}\n{END}{after}".encode()])
    images = Path(docs) / "images"
    images.mkdir(exist_ok=True)
    for source in sources[1:]:
        write_whole(images / source.name, [source.read_bytes()])
    return [target, *(images / source.name for source in sources[1:])]
