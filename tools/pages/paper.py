"""Copy the claims table and the headline pictures of a reproduction into the documentation.

``python -m tools.pages.paper REPRODUCTION DOCS [MORE]``; MORE is the folder of a reproduction with more seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from banditree.base.files import write_whole
from banditree.errors import BadFile, BanditreeError, InvalidValue
from banditree.paper.claims import NOT_JUDGED

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
    write_whole(target, [f"{before}{START}\n\n{tables}\n{END}{after}".encode()])
    images = Path(docs) / "images"
    images.mkdir(exist_ok=True)
    written = [target]
    for name in HEADLINES:
        write_whole(images / f"{name}.png", [(folder / f"{name}.png").read_bytes()])
        written.append(images / f"{name}.png")
    return written


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
