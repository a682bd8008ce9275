"""`python -m benchmarks`: measure what is missing, part by part, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from time import monotonic

import banditree as bt
from benchmarks import page
from benchmarks.contestants import OTHERS, OWN
from benchmarks.harness import Arena
from benchmarks.sections import SECTIONS
from benchmarks.steps import Options
from tools.pages import evidence
from tools.pages.evidence import DOCS, Page, Part
from tools.pages.journal import Line


def main() -> None:
    given = _parser().parse_args()
    if bt.engine() != "native":
        raise SystemExit(
            "the benchmarks compare the native engine, which is not installed; run make setup with a compiler"
        )
    only = given.only.split(",") if given.only else list(SECTIONS)
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"--only: there is no part {unknown[0]!r}; the parts are {', '.join(SECTIONS)}")
    if not (given.quick or given.only or given.no_peers):
        until = monotonic() + 60 * given.minutes if given.minutes else float("inf")
        print(f"{PAGE.make(DOCS, until)} parts are left")
        return
    options = Options.quick() if given.quick else Options()
    if given.patience is not None:
        options = replace(options, patience=given.patience)
    for name in only:
        measure(name, options, with_peers=not given.no_peers)


def measure(name: str, options: Options, *, with_peers: bool = True) -> list[Line]:
    """Measure a part, show it, and return its lines."""
    with Arena((*OWN, *OTHERS) if with_peers else OWN, patience=options.patience + 240) as arena:
        section = SECTIONS[name](arena, options)
        section.versions, section.failures = dict(arena.versions), dict(arena.failures)
    print(section.shown(), flush=True)
    return section.lines()


def parts(options: Options | None = None) -> list[Part]:
    """The parts of the page. Times depend on everything, so all are measured again with another version."""
    options = options or Options()
    return [Part(n, evidence.digest(n, bt.__version__, options), partial(measure, n, options)) for n in SECTIONS]


PAGE = Page("benchmarks", page.COLUMNS, parts, page.text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same cases made short, on the terminal")
    parser.add_argument("--no-peers", action="store_true", help="ours and the NumPy loop alone; installs nothing")
    parser.add_argument("--only", metavar="PARTS", help=f"some of: {', '.join(SECTIONS)}; on the terminal")
    parser.add_argument("--minutes", type=float, help="start no further part after this time; the next run goes on")
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="stop a slow contestant's run after so long")
    return parser


if __name__ == "__main__":
    main()
