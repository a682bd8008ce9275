"""`python -m benchmarks`: measure, print the tables, write the page."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import banditree as bt
from benchmarks import page
from benchmarks.contestants import OTHERS, OWN
from benchmarks.harness import ROOT, Arena
from benchmarks.sections import SECTIONS
from benchmarks.steps import Options


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
    options = Options.quick() if given.quick else Options()
    if given.patience is not None:
        options = replace(options, patience=given.patience)
    partial = given.quick or given.only or given.no_peers
    folder = Path(given.out) if given.out else ROOT / ("build/benchmarks" if partial else "docs")
    begin = perf_counter()
    with Arena(OWN if given.no_peers else (*OWN, *OTHERS), patience=options.patience + 240) as arena:
        sections = [SECTIONS[name](arena, options) for name in only]
        path, text = page.write(folder, arena, sections)
    print(text)
    print(f"{perf_counter() - begin:.0f} s; written to {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same cases made short")
    parser.add_argument("--no-peers", action="store_true", help="ours and the NumPy loop alone; installs nothing")
    parser.add_argument("--only", metavar="PARTS", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--out", metavar="DIR", help="where the page goes (docs; build/benchmarks for a partial run)")
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="stop a slow contestant's run after so long")
    return parser


if __name__ == "__main__":
    main()
