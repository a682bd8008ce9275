"""`python -m tests.support.fuzz --seconds 60`: random calls until the time is up, or until something is wrong."""

from __future__ import annotations

import argparse
import faulthandler
import secrets
import sys
import warnings
from collections.abc import Iterator
from itertools import count
from time import monotonic

from tests.support.fuzz import Wrong, fuzz


def until(seconds: float) -> Iterator[int]:
    end = monotonic() + seconds
    for world in count():
        if monotonic() > end:
            return
        yield world


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="to repeat a run")
    parser.add_argument("--world", type=int, help="this one of the seed's worlds alone")
    given = parser.parse_args()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    faulthandler.enable()
    warnings.simplefilter("error")
    print(f"seed {seed}", flush=True)
    try:
        calls = fuzz(seed, until(given.seconds) if given.world is None else iter([given.world]))
    except Wrong as wrong:
        sys.exit(str(wrong))
    print(f"{calls:,} calls, nothing wrong")


if __name__ == "__main__":
    main()
