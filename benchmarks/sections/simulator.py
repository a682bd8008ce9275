"""`bt.simulate` against a plain NumPy loop."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from benchmarks.arena import Arena
from benchmarks.contestants import OURS
from benchmarks.findings import Plot, Section, Table, Target
from benchmarks.options import Options
from benchmarks.report.plots import draw_targets
from benchmarks.timing import Spread, ratio
from benchmarks.words import figures, times

GOALS = {
    "TS, 100 arms": 18.0,
    "TS, 1,000 arms": 60.0,
    "UCB1, 1,000 arms": 8.0,
    "TSC, 1,000 arms in 32 clusters": 28.0,
    "HTS, 4,096 arms, fan-out 16": 50.0,
    "HTS, 1,024 arms, binary": 200.0,
    "LinTS, 400 arms, 5 features": 15.0,
    "LinTSC, 400 arms in 20 clusters": 80.0,
}
TEXT = """
Whole runs of 3,000 steps, including rewards and regret: `bt.simulate` on one thread against a plain NumPy loop over one
seed. Policies are built before the clock starts, and so is what all policies share: the instance and, for problems with
contexts, the contexts and the best arm's value in each. The algorithms are the same, so regret differs only by chance.
"""


def run(arena: Arena, options: Options) -> Section:
    section = Section("Whole runs: the simulator", TEXT)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    regrets: dict[tuple[str, str], list[float]] = defaultdict(list)
    for round_ in range(options.own_rounds):
        print(f"simulator: round {round_ + 1} of {options.own_rounds}", flush=True)
        for case in GOALS:
            for how, seeds in (("native", options.seeds), ("numpy", 1)):
                answer = arena.ask(OURS, "simulate", case=case, how=how, seed=round_, seeds=seeds)
                seconds[case, how].append(answer["seconds"])
                regrets[case, how].extend(answer["regrets"])
    rows = []
    for case, goal in GOALS.items():
        faster = ratio(seconds[case, "numpy"], seconds[case, "native"])
        section.targets.append(Target(f"{case}: a whole run, against the NumPy loop", faster, goal))
        both = [[seconds[case, how], regrets[case, how]] for how in ("native", "numpy")]
        times_, means = zip(*both, strict=True)
        rows.append(
            (
                case,
                *((Spread.of(values) * 1e6).text() for values in times_),
                times(faster.median),
                *(figures(sum(values) / len(values)) for values in means),
            )
        )
    header = ("policy", "native, µs per step", "NumPy loop, µs per step", "faster", "regret, native", "regret, NumPy")
    section.tables.append(("", Table(header, rows)))
    section.plots.append(Plot("simulator.png", "ratios and targets", partial(draw_targets, section.targets)))
    return section
