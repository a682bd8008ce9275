"""Many rewards or decisions in one call against a loop of single calls."""

from __future__ import annotations

from benchmarks.arena import Arena
from benchmarks.contestants import OURS
from benchmarks.findings import Section, Table, Target
from benchmarks.options import Options
from benchmarks.timing import Spread, ratio
from benchmarks.words import times

TEXT = """
`update_many` on 10,000 arms in 100 clusters, and `choose_many` of TSC with 1,000 arms in 32 clusters, compared with a
Python loop of `update` and `choose`; both on the native engine.
"""


FEW = 10  # rewards of a small batch, as they come in from a queue


def run(arena: Arena, options: Options) -> Section:
    # What is called, how many times in all and in one call, and the goal against single calls.
    cases: list[tuple[str, int, int, float | None]] = [
        ("update", options.batch, options.batch, 50.0),
        ("update", options.batch // 10, FEW, None),
        ("choose", options.decisions, options.decisions, 1.5),
    ]
    rows, targets = [], []
    for call, n, size, goal in cases:
        taken: dict[int, list[float]] = {1: [], size: []}  # seconds each
        for round_ in range(options.own_rounds):
            for at_once, seconds in taken.items():
                seconds.append(arena.ask(OURS, "batches", what=call, n=n, size=at_once, seed=round_)["seconds"])
        faster = ratio(taken[1], taken[size])
        each = ((Spread.of(taken[at_once]) * 1e9).text() for at_once in taken)
        rows.append((f"{call}_many of {size:,}", *each, times(faster.median)))
        if goal is not None:
            targets.append(Target(f"{call}_many of {size:,}, against a loop of {call}", faster, goal))
    table = Table(("call", "loop, ns each", "batch, ns each", "faster"), rows)
    return Section("Many at once", TEXT, tables=[("", table)], targets=targets)
