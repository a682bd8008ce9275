"""`python -m contest`: play every offer on every environment, and write the page."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, local
from time import perf_counter
from typing import Any

from benchmarks.harness import ROOT, Arena, Failed
from contest import page
from contest.contestants import CONTESTANTS
from contest.page import Row
from contest.worlds import ENVIRONMENTS, Environment, World


@dataclass(frozen=True)
class Options:
    """How much is played."""

    seeds: int = 20
    at_least: int = 8  # seeds of the slow ones
    horizon: int = 1_000_000  # at most; every environment has its own
    allowance: float = 60.0  # seconds for all worlds of an offer in an environment
    patience: float = 120.0  # seconds after which a world is stopped
    probes: int = 400  # decisions that test the stated probability

    @classmethod
    def quick(cls) -> Options:
        return cls(seeds=1, at_least=1, horizon=20, allowance=0.2, patience=1.0, probes=40)


@dataclass(frozen=True)
class Task:
    """An offer of a contestant in an environment; ``offer`` is its place in the list of offers."""

    who: str
    environment: Environment
    offer: int
    label: str
    note: str


def main() -> None:
    given = _parser().parse_args()
    options = Options.quick() if given.quick else Options()
    changed = {name: getattr(given, name) for name in ("seeds", "allowance") if getattr(given, name) is not None}
    options = replace(options, **changed)
    chosen = given.only.split(",") if given.only else [environment.name for environment in ENVIRONMENTS]
    unknown = set(chosen) - {environment.name for environment in ENVIRONMENTS}
    if unknown:
        raise SystemExit(f"--only: there is no environment {unknown.pop()!r}")
    environments = [environment for environment in ENVIRONMENTS if environment.name in chosen]
    is_whole = not (given.quick or given.only or given.here)
    out = Path(given.out) if given.out else ROOT / ("docs" if is_whole else "build/contest")
    kept = out if given.quick or given.here else ROOT / "build/contest"
    for place in (out, kept):
        place.mkdir(parents=True, exist_ok=True)
    begin = perf_counter()
    arena = Arena(CONTESTANTS, install=not given.here, patience=2 * options.seeds * options.patience + 60)
    arena.retire()
    journal = Journal(kept / "contest.jsonl", asdict(options), resume=given.resume, again=given.again or ())
    with tempfile.TemporaryDirectory() as folder:
        worlds = drawn(environments, options, Path(folder))
        rows = played(arena, environments, worlds, options, journal, jobs=given.jobs)
    text = page.written(environments, rows, arena.versions, arena.failures, asdict(options))
    (out / "contest.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{perf_counter() - begin:.0f} s; written to {out / 'contest.md'}")


class Journal:
    """Rows as they are measured, one line each, so that a run which was stopped can go on.

    Parameters
    ----------
    path
        The file. Its first line has the options; rows of a run with other options are not used.
    resume
        Whether to use what is there already; else the file starts anew.
    again
        Packages whose rows are not used.
    """

    def __init__(self, path: Path, options: dict[str, Any], *, resume: bool, again: Sequence[str]) -> None:
        self._path, self._lock = path, Lock()
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        if resume and lines and lines[0] == options:
            rows = [Row(**line) for line in lines[1:] if line["package"] not in again]
        else:
            rows = []
        self._rows = {_key(row): row for row in rows}
        texts = [json.dumps(options), *(json.dumps(asdict(row)) for row in rows)]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")

    def find(self, row: Row) -> Row | None:
        """The row that was measured for this offer and environment."""
        return self._rows.get(_key(row))

    def add(self, row: Row) -> Row:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
        return row


def _key(row: Row) -> tuple[str, str, str, str, int]:
    return row.environment, row.package, row.label, row.note, row.horizon


def drawn(environments: Sequence[Environment], options: Options, folder: Path) -> dict[str, list[Path]]:
    """Draw all worlds beforehand, into files: {environment: one path per seed}."""
    worlds: dict[str, list[Path]] = {}
    for number, environment in enumerate(environments):
        worlds[environment.name] = [folder / f"{number}-{seed}.npz" for seed in range(options.seeds)]
        for seed, path in enumerate(worlds[environment.name]):
            environment.world(seed, options.horizon).save(path)
    return worlds


def played(
    arena: Arena,
    environments: Sequence[Environment],
    worlds: dict[str, list[Path]],
    options: Options,
    journal: Journal,
    *,
    jobs: int,
) -> list[Row]:
    """Play all offers, ``jobs`` at a time, each in a process of its package that goes from task to task."""
    tasks = [
        Task(who, environment, place, offer.label, offer.note)
        for environment in environments
        for who, contestant in arena.contestants.items()
        for place, offer in enumerate(contestant.load()(World.load(worlds[environment.name][0])))
    ]
    threads = local()
    lanes: SimpleQueue[Arena] = SimpleQueue()

    def play(task: Task) -> Row:
        horizon = min(task.environment.horizon, options.horizon)
        row = Row(task.environment.name, task.who, task.label, task.note, horizon)
        measured = journal.find(row)
        if measured is not None:
            return measured
        if not hasattr(threads, "lane"):
            threads.lane = arena.lane()
            lanes.put(threads.lane)
        try:
            answer = threads.lane.ask(
                task.who,
                "contest.play:play",
                offer=task.offer,
                worlds=[str(path) for path in worlds[task.environment.name]],
                allowance=options.allowance,
                at_least=options.at_least,
                patience_of_world=options.patience,
                n_probes=options.probes,
            )
        except Failed as error:
            return journal.add(replace(row, failure=str(error)))
        print(f"{row.environment}: {row.name}", flush=True)
        return journal.add(replace(row, **answer))

    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(play, tasks))
    while not lanes.empty():
        lanes.get().retire()
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m contest", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same environments and offers, made short")
    parser.add_argument("--seeds", type=int, help="worlds per environment")
    parser.add_argument(
        "--allowance", type=float, metavar="SECONDS", help="for all worlds of an offer in an environment"
    )
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--again", action="append", metavar="PACKAGE", help="with --resume: play this package again")
    parser.add_argument("--only", metavar="NAMES", help="some environments, with commas between them")
    parser.add_argument("--here", action="store_true", help="install nothing: play with the packages of this Python")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", metavar="DIR", help="where the page goes (docs; build/contest for a partial run)")
    return parser


if __name__ == "__main__":
    main()
