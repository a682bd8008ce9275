"""Copy the claims table and the headline pictures of a reproduction into docs/paper.md.

``python -m tools.pages.paper REPRODUCTION DOCS [MORE]``; MORE is the folder of a reproduction with more seeds. `make
pages ONLY=paper` runs the reproduction too, figure by figure, and goes on where it stopped.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from time import monotonic

from banditree.base.files import write_whole
from banditree.errors import BadFile, BanditreeError, InvalidValue
from banditree.paper.claims import CLAIMS, NOT_JUDGED
from banditree.paper.figures import FIGURES
from banditree.paper.reproduce import reproduce
from tools.pages import evidence
from tools.pages.evidence import DOCS

POLICIES = (
    *("TS", "TSC", "HTS", "TSMax", "UCB1", "UCBC", "UCT", "ATS"),
    *("LinTS", "LinTSC", "LinHTS", "LinUCB", "LinUCBC", "LinUCT"),
)
HEADLINES = ("2b", "2c", "1f")  # the pictures that the README and the documentation show
START, END = "<!-- claims: start -->", "<!-- claims: end -->"


def update_docs(out: str | Path, docs: str | Path, more: str | Path | None = None) -> list[Path]:
    """Put the table between the two marks in ``paper.md`` and the pictures into ``images``; return the files.

    What was judged in the folder ``more`` follows in a table of its own.
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
    tables += f"\n{evidence.stamp(digest())}\n"
    write_whole(target, [f"{before}{START}\n\n{tables}\n{END}{after}".encode()])
    images = Path(docs) / "images"
    images.mkdir(exist_ok=True)
    written = [target]
    for name in HEADLINES:
        write_whole(images / f"{name}.png", [(folder / f"{name}.png").read_bytes()])
        written.append(images / f"{name}.png")
    return written


def digest() -> str:
    """What the claims depend on: the law of the paper's policies and of ATS, and the figures' settings."""
    figures = [
        (figure.name, figure.horizon, figure.seeds, [(each.label, repr(each.problem)) for each in figure.settings()])
        for figure in FIGURES.values()
    ]
    return evidence.digest(evidence.law(POLICIES), re.sub(r" at 0x\w+", "", repr(figures)), sorted(CLAIMS))


def make(docs: Path, until: float = float("inf")) -> int:
    """Run the figures that are missing until a time, and update the page when all are there."""
    out = DOCS.parent / "reproduction"
    left = list(FIGURES)
    while left and monotonic() < until:
        reproduce([left.pop(0)], variants=["all"], out=out, resume=True, beyond=True, progress=False)
    if not left:
        update_docs(out, docs)
    return len(left)


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code: 0, or 2 after an error message."""
    if len(arguments) not in (2, 3):
        print("usage: python -m tools.pages.paper REPRODUCTION DOCS [MORE]", file=sys.stderr)
        return 2
    try:
        written = update_docs(*arguments)
    except (BanditreeError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(*written, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
