"""The cost of a step as the number of arms grows."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from benchmarks.arena import Arena
from benchmarks.contestants import OURS
from benchmarks.findings import Plot, Section, Table, Target
from benchmarks.options import Options
from benchmarks.report.plots import draw_growth
from benchmarks.timing import Spread, ratio
from benchmarks.words import figures

SEEDS = 5  # fewer for a million arms, where a policy takes a second to build
POLICIES = {"TS": "TS, flat", "TSC": "TSC, √N clusters", "HTS": "HTS, fan-out 16"}
TEXT = """
Runs of 3,000 steps in `bt.simulate` on one thread, microseconds per step; building the tree and the policy is not
counted. Means are sorted from best to worst, so that neighbours are alike. "Evaluations" is the number of children that
the walk compares per step.
"""


def run(arena: Arena, options: Options) -> Section:
    section = Section("Growth with the number of arms", TEXT)
    sizes = [n for n in (100, 1000, 10_000, 100_000, 1_000_000) if n <= options.largest]
    seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
    evaluations: dict[tuple[str, int], float] = {}
    wanted = [(policy, n) for n in sizes for policy in POLICIES] + [("category", 50), ("category", 5000)]
    for round_ in range(options.growth_rounds):
        print(f"growth: round {round_ + 1} of {options.growth_rounds}", flush=True)
        for policy, n in wanted:
            seeds = SEEDS if n < 1_000_000 else 2
            answer = arena.ask(OURS, "growth", policy=policy, n_arms=n, seed=round_, seeds=seeds)
            seconds[policy, n].append(answer["seconds"])
            evaluations[policy, n] = answer["evaluations"]
    arena.retire([OURS])
    spreads = {key: Spread.of(values) * 1e6 for key, values in seconds.items()}
    rows = [
        (
            f"{n:,}",
            *(f"{spreads[policy, n].text()}" for policy in POLICIES),
            *(figures(evaluations[policy, n]) for policy in POLICIES),
        )
        for n in sizes
    ]
    header = ("arms", *POLICIES.values(), *(f"{policy} evaluations" for policy in POLICIES))
    section.tables.append(("", Table(header, rows)))
    last, first = sizes[-1], sizes[0]
    section.targets += [
        Target(
            f"HTS, fan-out 16: {last:,} arms against {first:,}, per step",
            ratio(seconds["HTS", last], seconds["HTS", first]),
            5.0,
            at_most=True,
        ),
        Target(
            "TSC: a category of 5,000 arms against one of 50, per step",
            ratio(seconds["category", 5000], seconds["category", 50]),
            3.0,
            at_most=True,
        ),
    ]
    if last >= 100_000:
        flat = ratio(seconds["TS", 100_000], seconds["TS", 1000])
        section.targets.append(Target("TS: 100,000 arms against 1,000, per step", flat, 2.0, at_most=True))
    curves = {POLICIES[policy]: [spreads[policy, n] for n in sizes] for policy in POLICIES}
    section.plots.append(Plot("growth.png", "microseconds per step against arms", partial(draw_growth, sizes, curves)))
    return section
