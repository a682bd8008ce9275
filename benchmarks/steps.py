"""How long everything may take, and the largest part: choose and update from Python, everyone on the same problems."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.contestants import NUMPY, OURS, Library
from benchmarks.harness import Arena, Contestant, Failed
from benchmarks.jobs import Case, write
from benchmarks.page import Section, Spread, Target, ratio
from tools.pages.markdown import Table, figures, times


@dataclass(frozen=True)
class Options:
    """The full run; `quick` has the same cases, made short."""

    rounds: int = 5
    own_rounds: int = 21  # without peers, which are slow: more rounds, for a machine that is not always as fast
    horizon: int = 3000
    contextual_horizon: int = 1000
    at_least: float = 0.1  # seconds of steps a contestant is timed for in a round, as many runs as that takes
    patience: float = 15.0  # seconds after which a run is stopped
    enough: float = 60.0  # seconds of steps after which a slow contestant sits out the remaining rounds
    batch: int = 1_000_000
    decisions: int = 100_000
    seeds: int = 20  # of a simulation in a round
    largest: int = 1_000_000  # arms
    growth_rounds: int = 9
    peer_arms: int = 10_000  # arms for the peers' memory
    cold_rounds: int = 9
    thread_horizon: int = 100_000
    log_rows: int = 1_000_000
    loaded: float = 1.5  # seconds of load on a server in a round

    @classmethod
    def quick(cls) -> Options:
        return cls(
            rounds=3,
            own_rounds=3,
            horizon=2000,
            contextual_horizon=300,
            at_least=0.03,
            patience=5.0,
            enough=2.0,
            batch=200_000,
            decisions=20_000,
            seeds=2,
            largest=10_000,
            growth_rounds=2,
            peer_arms=1000,
            cold_rounds=3,
            thread_horizon=20_000,
            log_rows=20_000,
            loaded=0.2,
        )


PLAYED = {
    "100 arms in 10 clusters": ("TS", "TSC"),
    "1,000 arms in 32 clusters": ("TS", "TSC", "UCB1", "UCBC"),
    "400 arms in 20 clusters, 5 features": ("LinATS", "LinTS", "LinTSC", "LinUCB", "LinUCBC"),
}
GOALS = {
    ("100 arms in 10 clusters", "TS"): 8.0,
    ("1,000 arms in 32 clusters", "TSC"): 20.0,
}
TEXT = """
Each step is one decision and one reward, from a Python loop, on one thread. All contestants have the same arms and the
same random rewards; each is used through its own calls (named in the table), with the same settings where it has them.
Regret is cumulative pseudo-regret with its standard error; lower is better. The flat policies ignore the clusters; TSC,
UCBC, LinATS, LinTSC and LinUCBC use them, which is what banditree is for. Times are medians over rounds, with the
middle half of the rounds in brackets; the table says where a contestant was too slow and was stopped. LinUCB is given
alpha = c = 0.5 everywhere, which is so little that it often stays with the first arms that pay.
"""


@dataclass
class Cell:
    """One contestant's runs of one algorithm on one problem."""

    problem: str
    algorithm: str
    who: str
    label: str
    seconds: list[float] = field(default_factory=list)  # (rounds,) per step
    regrets: list[float] = field(default_factory=list)  # (runs,)
    tried: list[int] = field(default_factory=list)  # (runs,) arms played at least once
    spent: float = 0.0
    stopped_at: int | None = None

    @property
    def time(self) -> Spread:
        return Spread.of(self.seconds)

    @property
    def regret(self) -> tuple[float, float]:
        """Mean and standard error, which is not known of one run."""
        values = np.array(self.regrets)
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return float(values.mean()), float(error)

    def regret_text(self) -> str:
        if self.stopped_at is not None:
            return f"stopped at step {self.stopped_at:,}"
        mean, error = self.regret
        return figures(mean) if np.isnan(error) else f"{figures(mean)} ± {figures(error, 2)}"


def steps(arena: Arena, options: Options) -> Section:
    cells = [
        Cell(problem, algorithm, who, _labels(contestant)[algorithm])
        for problem, algorithms in PLAYED.items()
        for algorithm in algorithms
        for who, contestant in arena.contestants.items()
        if algorithm in _labels(contestant)
    ]
    with TemporaryDirectory() as folder:
        files = write(Path(folder), horizon=options.horizon, contextual_horizon=options.contextual_horizon)
        _play(arena, options, cells, files)
        blind = {problem: Case.read(str(path)) for problem, path in files.items()}
        horizons = {problem: case.horizon for problem, case in blind.items()}
        blind_regret = {problem: case.blind_regret() for problem, case in blind.items()}
        n_arms = {problem: case.n_arms for problem, case in blind.items()}
    return _section([cell for cell in cells if cell.seconds], horizons, blind_regret, n_arms)


def _labels(contestant: Contestant) -> dict[str, str]:
    """Algorithm -> what a contestant runs for it, in its own words."""
    library: Library = contestant.load()
    return {algorithm: offer.label for algorithm, offer in library.offers.items()}


def _play(arena: Arena, options: Options, cells: list[Cell], files: dict[str, Path]) -> None:
    """Round after round, everyone in turn."""
    failed: set[int] = set()
    for round_ in range(options.rounds):
        print(f"steps: round {round_ + 1} of {options.rounds}", flush=True)
        for place, cell in enumerate(cells):
            if place in failed or cell.stopped_at is not None or cell.spent > options.enough:
                continue
            try:
                answer = arena.ask(
                    cell.who,
                    "benchmarks.jobs:steps",
                    algorithm=cell.algorithm,
                    case=str(files[cell.problem]),
                    seed=round_,
                    limit=options.patience,
                    at_least=options.at_least,
                )
            except Failed as error:
                failed.add(place)
                arena.failures[f"{cell.who}, {cell.algorithm} with {cell.problem}"] = str(error)
                continue
            cell.spent += answer["seconds"]
            cell.seconds.append(answer["seconds"] / answer["steps"])
            if answer["whole"]:
                cell.regrets.extend(answer["regrets"])
                cell.tried.extend(answer["tried"])
            else:
                cell.stopped_at = answer["steps"]


def _section(cells: list[Cell], horizons: dict[str, int], blind: dict[str, float], n_arms: dict[str, int]) -> Section:
    section = Section("A step at a time, from Python", TEXT)
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.problem].append(cell)
    for problem, group in groups.items():
        heading = f"{problem}: {horizons[problem]:,} steps"
        section.tables.append((heading, _table(group)))
        section.notes.append(f"{heading}: choosing at random has a regret of {figures(blind[problem])}.")
        section.notes += [note for cell in group if cell.who == OURS for note in _luck(cell, n_arms[problem])]
        for algorithm in PLAYED[problem]:
            _judge(section, problem, [cell for cell in group if cell.algorithm == algorithm])
    return section


def _luck(cell: Cell, n_arms: int) -> list[str]:
    """Say it where a run depends so much on the first few arms it tries that a peer's few runs tell little."""
    regrets = np.array(cell.regrets)
    if len(regrets) < 20 or regrets.std() < 0.25 * regrets.mean():
        return []
    low, high = (figures(value) for value in np.quantile(regrets, [0.05, 0.95]))
    return [
        f"The regret of one run of {cell.algorithm} is largely luck here: {cell.label} tries "
        f"{np.median(cell.tried):.0f} of {n_arms:,} arms in the median run, and nine runs in ten have a regret between "
        f"{low} and {high}. Contestants differ if their means do by more than the standard errors."
    ]


def _table(group: list[Cell]) -> Table:
    ours = {cell.algorithm: cell for cell in group if cell.who == OURS}
    rows = []
    for cell in group:
        slower = "1" if cell.who == OURS else times(ratio(cell.seconds, ours[cell.algorithm].seconds).median)
        rows.append((cell.algorithm, cell.who, cell.label, (cell.time * 1e6).text(), slower, cell.regret_text()))
    return Table(("algorithm", "contestant", "runs", "µs per step", "times ours", "regret"), rows, left=3)


def _judge(section: Section, problem: str, cells: list[Cell]) -> None:
    """Add targets against the NumPy loop, and peers that are faster or have less regret by over two standard errors."""
    by_name = {cell.who: cell for cell in cells}
    ours, algorithm = by_name[OURS], cells[0].algorithm
    if (problem, algorithm) in GOALS and NUMPY in by_name:
        measured = ratio(by_name[NUMPY].seconds, ours.seconds)
        what = f"{algorithm}, {problem}: choose and update from Python, against the NumPy loop"
        section.targets.append(Target(what, measured, GOALS[problem, algorithm]))
    mean, error = ours.regret
    for cell in cells:
        if cell.who in (OURS, NUMPY) or cell.who.startswith("banditree"):
            continue
        if cell.time.median < ours.time.median:
            section.peer_wins.append(
                f"{cell.who} is faster at {algorithm} with {problem}: {times(ours.time.median / cell.time.median)}."
            )
        if cell.stopped_at is None and cell.regrets:
            theirs, their_error = cell.regret
            scale = np.hypot(error, their_error if np.isfinite(their_error) else np.std(ours.regrets))
            if theirs < mean - 2 * scale:
                section.peer_wins.append(
                    f"{cell.who} ({cell.label}) has less regret than our {algorithm} with {problem}: "
                    f"{figures(theirs)} against {figures(mean)}."
                )
