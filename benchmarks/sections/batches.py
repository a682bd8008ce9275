"""Many rewards or decisions in one call against a loop of single calls."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.arena import Arena
from benchmarks.contestants import OURS
from benchmarks.findings import Section, Table, Target
from benchmarks.options import Options
from benchmarks.timing import Spread, ratio
from benchmarks.words import times

TEXT = """
`update_many` on 10,000 arms in 100 clusters, and `choose_many` of TSC with 1,000 arms in 32 clusters, against a
Python loop of `update` and `choose`. Both on the native engine.
"""


def run(arena: Arena, options: Options) -> Section:
    sizes = {"update": options.batch, "choose": options.decisions}
    taken: dict[str, list[float]] = defaultdict(list)  # seconds each
    for round_ in range(options.own_rounds):
        for call, n in sizes.items():
            for how in ("one", "many"):
                answer = arena.ask(OURS, "batches", what=f"{call} {how}", n=n, seed=round_)
                taken[f"{call} {how}"].append(answer["seconds"])
    rows, targets = [], []
    for (call, n), goal in zip(sizes.items(), (50.0, 1.5), strict=True):
        one, many = taken[f"{call} one"], taken[f"{call} many"]
        faster = ratio(one, many)
        rows.append(
            (
                f"{call}_many of {n:,}",
                (Spread.of(one) * 1e9).text(),
                (Spread.of(many) * 1e9).text(),
                times(faster.median),
            )
        )
        targets.append(Target(f"{call}_many of {n:,}, against a loop of {call}", faster, goal))
    table = Table(("call", "loop, ns each", "batch, ns each", "faster"), rows)
    return Section("Many at once", TEXT, tables=[("", table)], targets=targets)
