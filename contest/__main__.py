"""`python -m contest`: play every offer on every environment, and write the page."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import local
from time import monotonic, perf_counter

import numpy as np

import banditree as bt
from benchmarks.harness import ROOT, Arena, Contestant, Failed
from contest import page
from contest.contestants import CONTESTANTS
from contest.journal import Journal, Line, Offered, rows
from contest.worlds import ENVIRONMENTS, Environment
from tools.pages import evidence

PAGE, DATA = ROOT / "docs/contest.md", ROOT / "docs/data/contest.csv"
OURS = ("TS", "TSC", "ATS", "HierTS", "LinTS", "LinTSC", "LinATS")


@dataclass(frozen=True)
class Options:
    """How much is played."""

    seeds: int = 20
    at_least: int = 8  # seeds of the slow ones
    horizon: int | None = None  # at most; every environment has its own
    allowance: float = 60.0  # seconds for all worlds of an offer in an environment
    patience: float = 120.0  # seconds after which a world is stopped
    probes: int = 400  # decisions that test the stated probability

    @classmethod
    def quick(cls) -> Options:
        return cls(seeds=1, at_least=1, horizon=20, allowance=0.2, patience=1.0, probes=40)


@dataclass(frozen=True)
class Task:
    """An offer of a contestant in an environment, and what a line of it says before it is played."""

    environment: Environment
    line: Line


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is missing, write the page, and return how many worlds are left."""
    given = _parser().parse_args(arguments)
    options = Options.quick() if given.quick else Options()
    environments = _environments(given.only)
    hurry = min(given.patience or options.patience, options.patience)
    partial = given.quick or given.only or given.who or given.here
    out = Path(given.out) if given.out else ROOT / "build/contest" if partial else None
    text_file, data = (PAGE, DATA) if out is None else (out / "contest.md", out / "data" / "contest.csv")
    begin = perf_counter()
    arena = Arena(_contestants(given.who), install=not given.here, patience=3 * options.patience + 60)
    arena.retire()
    worlds = {e.name: fingerprint(e, options.horizon) for e in environments}
    versions = Versions(arena.versions)
    journal = Journal(data, worlds, versions.of)
    until = begin + 60 * given.minutes if given.minutes else float("inf")
    with tempfile.TemporaryDirectory() as folder:
        tasks = list(planned(arena, environments, worlds, versions))
        left = play(arena, tasks, options, journal, until, folder=Path(folder), jobs=given.jobs, hurry=hurry)
    journal.close()
    facts = asdict(options)
    text = page.written(
        environments, rows(journal.lines), arena.versions, arena.failures, facts, left, folder=text_file.parent
    )
    summary = "One line per environment and offer: [data/contest-summary.csv](data/contest-summary.csv)."
    text_file.write_text(f"{text}\n{summary} {evidence.footer('contest', page_digest())}\n", encoding="utf-8")
    print(f"{perf_counter() - begin:.0f} s; {left} worlds are left to play; written to {text_file}")
    return left


@dataclass(frozen=True)
class Versions:
    """What the lines of an offer depend on besides the world.

    Parameters
    ----------
    packages
        The version of each package that takes part.
    """

    packages: Mapping[str, str]

    def of(self, package: str, label: str) -> str | None:
        """A package's version, for our policies the law of each; None where the package does not take part."""
        return f"law {law(label)}" if package == page.OURS else self.packages.get(package)


def law(name: str) -> str:
    return evidence.law((name,)) if hasattr(bt, name) else ""


def fingerprint(environment: Environment, horizon: int | None = None) -> str:
    """Digest of what an environment draws; its first rounds are enough."""
    world = environment.world(0, min(200, horizon or 200))
    arrays = [
        array for array in (world.paths, world.contexts, world.theta, world.table, world.draws) if array is not None
    ]
    rounds = min(environment.horizon, horizon or environment.horizon)
    told = json.dumps(world.told)
    return evidence.digest(environment.name, rounds, world.noise, world.clicks, told, evidence.numbers(arrays))


def page_digest() -> str:
    """What the page depends on here: our policies, and the worlds."""
    return evidence.digest(*map(law, OURS), *map(fingerprint, ENVIRONMENTS))


@dataclass(frozen=True)
class Contest:
    """The page, as `make pages` makes it."""

    name = "contest"

    def digest(self) -> str:
        return page_digest()

    def make(self, folder: Path, until: float = float("inf")) -> int:
        minutes = [] if until == float("inf") else ["--minutes", str(max((until - monotonic()) / 60, 1e-3))]
        return main(["--out", str(folder), *minutes])


def planned(
    arena: Arena, environments: Sequence[Environment], worlds: dict[str, str], versions: Versions
) -> Iterator[Task]:
    """List all offers; those of a package are the same for all seeds of an environment."""
    for environment in environments:
        world = environment.world(0)
        for who, contestant in arena.contestants.items():
            for offer in contestant.load()(world):
                line = Line(environment.name, who, offer.label, offer.note, seed=0)
                version = versions.of(who, offer.label) or ""
                yield Task(environment, replace(line, world=worlds[environment.name], version=version))


def play(
    arena: Arena,
    tasks: Sequence[Task],
    options: Options,
    journal: Journal,
    until: float,
    *,
    folder: Path,
    jobs: int,
    hurry: float,
) -> int:
    """Play what is missing, seed by seed, until a time; return how many worlds are left.

    Going by seeds, a run that was cut short has played all offers on nearly the same seeds. Offers that need more than
    ``hurry`` seconds for a world are left to a run that has more time.
    """
    slow: set[Offered] = set()
    threads = local()
    lanes: SimpleQueue[Arena] = SimpleQueue()
    drawn: dict[tuple[str, int], Path] = {}

    def one(task: Task, seed: int) -> bool:
        if perf_counter() > until or task.line.offer in slow:
            return False
        if not hasattr(threads, "lane"):
            threads.lane = arena.lane()
            lanes.put(threads.lane)
        try:
            answer = threads.lane.ask(
                task.line.package,
                "contest.play:play",
                offer=[task.line.label, task.line.note],
                world=str(drawn[task.environment.name, seed]),
                seed=seed,
                at_most=hurry,
                n_probes=0 if seed else options.probes,
            )
        except Failed as error:
            answer = {"failure": str(error)}
        if hurry < options.patience and answer.get("reached") is not None:
            slow.add(task.line.offer)
            return False
        journal.add(replace(task.line, seed=seed, **answer))
        return True

    left = 0
    with ThreadPoolExecutor(jobs) as pool:
        for seed in range(options.seeds):
            missing = [task for task in tasks if is_missing(journal.of(task.line.offer), seed, options)]
            for environment in {task.environment.name: task.environment for task in missing}.values():
                if perf_counter() < until:
                    path = drawn[environment.name, seed] = folder / f"{len(drawn)}.npz"
                    environment.world(seed, options.horizon).save(path)
            done = list(pool.map(one, missing, [seed] * len(missing)))
            left += done.count(False)
            print(f"seed {seed}: {sum(done)} of {len(missing)} worlds played", flush=True)
            for path in drawn.values():
                path.unlink(missing_ok=True)
    while not lanes.empty():
        lanes.get().retire()
    return left


def is_missing(lines: Sequence[Line], seed: int, options: Options) -> bool:
    """Whether a seed is still to be played: not by who ended early, nor beyond the allowance of the slow ones."""
    if any(line.seed == seed or line.ended_early for line in lines):
        return False
    seconds = [line.seconds for line in lines]
    return seed < options.at_least or sum(seconds) + float(np.mean(seconds or [0.0])) <= options.allowance


def _environments(only: str | None) -> list[Environment]:
    known = {environment.name: environment for environment in ENVIRONMENTS}
    names = only.split(",") if only else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"--only: there is no environment {name!r}; there are {', '.join(known)}")
    return [environment for name, environment in known.items() if name in names]


def _contestants(who: str | None) -> list[Contestant]:
    known = {contestant.name: contestant for contestant in CONTESTANTS}
    names = who.split(",") if who else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"--who: there is no contestant {name!r}; there are {', '.join(known)}")
    return [contestant for name, contestant in known.items() if name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m contest", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same environments and offers, made short")
    parser.add_argument("--minutes", type=float, help="stop after this time; the next run goes on")
    parser.add_argument("--patience", type=float, metavar="SECONDS", help="leave for later who needs more for a world")
    parser.add_argument("--only", metavar="NAMES", help="some environments, with commas between them")
    parser.add_argument("--who", metavar="NAMES", help="some contestants, with commas between them")
    parser.add_argument("--here", action="store_true", help="install nothing: play with the packages of this Python")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", metavar="DIR", help="where the page goes (docs; build/contest for a partial run)")
    return parser


if __name__ == "__main__":
    main()
