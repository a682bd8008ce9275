"""Torture the service for as long as one likes: ``python -m tests.support.run_torture --rounds 1000``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.torture import torture


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    words.add_argument("--rounds", type=int, default=1000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--store", default=None, help="a file, or postgresql://... for three servers")
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or str(Path(folder) / "decisions.db")
        servers = 3 if store.startswith("postgres") else 1
        faults = torture(
            store, given.rounds, seed=given.seed, servers=servers, say=lambda line: print(line, flush=True)
        )
    for fault in faults[:20]:
        print(fault)
    print(f"{given.rounds} rounds, {'NOTHING LOST' if not faults else f'{len(faults)} FAULTS'}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
