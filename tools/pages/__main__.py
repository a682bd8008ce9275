"""``python -m tools.pages``: make the generated pages of the docs, in parts that a later run goes on with."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import monotonic

from tools.pages.evidence import DOCS, stamped
from tools.pages.registry import PAGES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pages", description=__doc__)
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {', '.join(PAGES)}")
    parser.add_argument("--minutes", type=float, help="stop measuring after this time; the next run goes on")
    parser.add_argument("--stale", action="store_true", help="measure nothing: say which pages are not of this code")
    parser.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="where the pages go (docs)")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(PAGES)
    for name in names:
        if name not in PAGES:
            raise SystemExit(f"--only: there is no page {name!r}; there are {', '.join(PAGES)}")
    if given.stale:
        stale = [name for name in names if not is_current(name, given.out)]
        raise SystemExit(f"make again: make pages ONLY={','.join(stale)}" if stale else None)
    until = monotonic() + 60 * given.minutes if given.minutes is not None else float("inf")
    for name in names:
        left = PAGES[name].make(given.out, until)
        print(f"{name}: {f'{left} parts are left' if left else 'whole'}", flush=True)


def is_current(name: str, folder: Path = DOCS) -> bool:
    """Whether a page carries the digest of this code."""
    carried = stamped(folder / f"{name}.md")
    return carried is not None and carried[1] == PAGES[name].digest()


if __name__ == "__main__":
    main()
