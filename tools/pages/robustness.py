"""Measure how good ATS is beside TS, TSC and HTS at every depth, and LinATS beside its rivals, on worlds of many kinds.

``python -m tools.pages.robustness --out docs/robustness.md`` makes the page of the docs, its picture, and beside it
``robustness-contexts.md``, the page of LinATS. ``--part`` makes one of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from banditree.simulation.progress import tasks_bar
from tools.pages.robustness_contexts import context_page, context_worlds, cover, measure_contexts, quicker
from tools.pages.robustness_growth import Growth, grow
from tools.pages.robustness_numbers import Point, measure
from tools.pages.robustness_page import NORMAL, PAPER, RANDOM, SHOPS, page
from tools.pages.robustness_worlds import World, growing_worlds, normal_worlds, random_worlds, shops, table_worlds

N_RANDOM, RANDOM_SEEDS = 24, 12  # worlds drawn at random, and seeds of each
N_SHOPS, SHOP_SEEDS = 12, 24  # the same for shops, in which single runs differ by a factor of five
END, GROWTH_SEEDS = 1_000_000, 10
SHARE = 0.3  # of the seeds that the worlds of the paper name: enough, with a budget of about 25 minutes on two cores
QUICK_HORIZON, QUICK_SEEDS, QUICK_END = 50, 3, 1000  # with --quick: enough to see that all works
FEW_ARMS = 10  # a world with fewer is soon played, and its runs differ much
COVERAGE_SEEDS = 6  # runs in which intervals are looked at
SECONDS_PER_STEP = 2e-6  # of a plain policy, about, on two cores; for the bar
SLOWER = 8  # how many times longer than the others ATS takes per decision, about; for the bar


def plan(quick: bool, share: float = 1.0) -> tuple[dict[str, list[World]], list[World]]:
    """List the worlds by their groups, and those that are played for long, with a share of the seeds."""
    table = [replace(w, seeds=round(SHARE * w.seeds), long_seeds=round(SHARE * w.long_seeds)) for w in table_worlds()]
    groups = {
        PAPER: table,
        NORMAL: normal_worlds(),
        SHOPS: shops(N_SHOPS, SHOP_SEEDS),
        RANDOM: random_worlds(N_RANDOM, RANDOM_SEEDS),
    }
    growing = growing_worlds(END, GROWTH_SEEDS)
    if quick:
        groups = {
            name: [
                replace(w, horizon=QUICK_HORIZON, seeds=QUICK_SEEDS, long_seeds=min(w.long_seeds, 2))
                for w in worlds[: None if name == PAPER else 3]
            ]
            for name, worlds in groups.items()
        }
        growing = [replace(w, horizon=QUICK_END, seeds=QUICK_SEEDS) for w in growing]
    if share < 1:
        groups = {name: [fewer_seeds(world, share) for world in worlds] for name, worlds in groups.items()}
        growing = [fewer_seeds(world, share) for world in growing]
    return groups, growing


def fewer_seeds(world: World, share: float) -> World:
    """Return the same world with a share of its seeds, but at least 4 of those it has; with few arms all are kept."""
    if world.problem.instance(0).tree.n_arms < FEW_ARMS:
        return world
    seeds, long_seeds = (min(n, max(round(share * n), 4)) for n in (world.seeds, world.long_seeds))
    return replace(world, seeds=seeds, long_seeds=long_seeds)


def cost(world: World) -> float:
    """Estimate how many seconds a world takes."""
    steps = world.horizon * (world.seeds + 9 * world.long_seeds)
    return SECONDS_PER_STEP * steps * (SLOWER + len(world.policies()) - 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and the picture beside it, in the folder images."""
    parser = argparse.ArgumentParser(description="Measure ATS beside the other policies on worlds of many kinds.")
    parser.add_argument(
        "--out", type=Path, required=True, help="the page to write; its picture goes to images beside it"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few seeds and short runs: seconds instead of about 25 minutes"
    )
    parser.add_argument("--share", type=float, default=1.0, help="play this share of the seeds, to save time")
    parser.add_argument("--part", choices=("trees", "contexts"), help="make one of the two pages")
    parser.add_argument("--jobs", type=int, default=-1, help="threads (default: all cores)")
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.part != "trees":
        make_contexts(given.out.with_name("robustness-contexts.md"), given.quick, given.jobs)
    if given.part != "contexts":
        make_trees(given.out, given.quick, given.jobs, given.share)
    return 0


def make_contexts(out: Path, quick: bool, jobs: int) -> None:
    """Write the page of the worlds with contexts."""
    worlds = context_worlds()
    if quick:
        worlds = quicker(worlds, QUICK_HORIZON, QUICK_SEEDS)
    points, coverage = [], {}
    with tasks_bar({world.name: cost(world) for world in worlds}, None) as show:
        for world in worlds:
            with show(world.name) as progress:
                points.append(measure_contexts(world, jobs=jobs, progress=progress))
            ends = (min(100, world.horizon // 2), min(world.horizon, 3000))
            coverage[world.name] = cover(world, ends, 1 if quick else COVERAGE_SEEDS)
            print(
                world.name, {name: round(float(r.mean())) for name, r in points[-1][-1].regret.items()}, file=sys.stderr
            )
    out.write_text(context_page(points, coverage), encoding="utf-8")


def make_trees(out: Path, quick: bool, jobs: int, share: float = 1.0) -> None:
    """Write the page of the worlds without contexts, and its picture."""
    groups, growing = plan(quick, share)
    worlds = [world for group in groups.values() for world in group]
    started, points = time.monotonic(), dict[str, list[Point]]()
    tasks = {world.name: cost(world) for world in worlds}
    tasks |= {f"{world.name}, long": cost(world) for world in growing}
    with tasks_bar(tasks, None) as show:
        for world in worlds:
            with show(world.name) as progress:
                points[world.name] = measure(world, jobs=jobs, progress=progress)
            took = f"{time.monotonic() - started:6.0f} s"
            print(took, world.name, *(point.to_best for point in points[world.name]), sep="  ", file=sys.stderr)
        growths = list[Growth]()
        for world in growing:
            with show(f"{world.name}, long") as progress:
                growths.append(grow(world, jobs=jobs, progress=progress))
    text = page({name: [points[w.name] for w in group] for name, group in groups.items()}, growths, out)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
