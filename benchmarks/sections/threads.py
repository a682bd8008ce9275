"""Two threads against one."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.arena import Arena
from benchmarks.contestants import OURS
from benchmarks.findings import Section, Table, Target
from benchmarks.options import Options
from benchmarks.timing import Spread, ratio
from benchmarks.words import times

SEEDS = 16


def run(arena: Arena, options: Options) -> Section:
    text = f"""
Wall time of one `bt.simulate` call with `jobs=1` and with `jobs=2`: TSC, 1,000 arms in 32 clusters, {SEEDS} seeds of
{options.thread_horizon:,} steps.
"""
    section = Section("Two threads", text)
    taken: dict[int, list[float]] = defaultdict(list)
    for round_ in range(options.own_rounds):
        for jobs in (1, 2):
            answer = arena.ask(OURS, "threads", jobs=jobs, seeds=SEEDS, horizon=options.thread_horizon, seed=round_)
            taken[jobs].append(answer["seconds"])
    faster = ratio(taken[1], taken[2])
    row = (Spread.of(taken[1]).text(), Spread.of(taken[2]).text(), times(faster.median))
    section.tables.append(("", Table(("one thread, s", "two threads, s", "faster"), [row], left=0)))
    section.targets.append(Target("two threads, against one", faster, 1.7))
    return section
