"""Torture the service for as long as one likes: ``python -m tests.support.run_torture --rounds 1000``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases import postgres, programs
from tests.support.torture import torture

ROUNDS_PER_STORE = 100  # the whole log is folded after every round, so a log must not become too long


@contextmanager
def new_store(kind: str) -> Iterator[str]:
    if kind == "postgresql":
        with postgres() as database:
            yield database.address
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "decisions.db")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers under load, and look for what they lost.")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite", help="postgresql: three servers")
    options = parser.parse_args()
    if options.store == "postgresql" and programs() is None:
        parser.error("PostgreSQL is not installed: apt-get install postgresql")
    for done in range(0, options.rounds, ROUNDS_PER_STORE):
        rounds = min(ROUNDS_PER_STORE, options.rounds - done)
        with new_store(options.store) as store:
            servers = 3 if options.store == "postgresql" else 1
            seed = options.seed + done // ROUNDS_PER_STORE
            faults = torture(store, rounds, seed=seed, servers=servers, say=lambda line: print(line, flush=True))
        if faults:
            print(*faults[:20], f"{len(faults)} FAULTS, with --seed {seed}", sep="\n")
            sys.exit(1)
        print(f"{options.store}: {done + rounds} rounds, NOTHING LOST", flush=True)


if __name__ == "__main__":
    main()
