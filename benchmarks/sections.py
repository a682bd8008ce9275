"""The parts of the report: ``part(arena, options) -> Section``. A new one is a function and a line in ``SECTIONS``."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.contestants import NUMPY, OURS, READABLE, Library
from benchmarks.harness import Arena, Failed, environ, short
from benchmarks.page import Section, Spread, Target, ratio
from benchmarks.steps import Options, steps
from tools.pages.markdown import Table, figures, times

# ---------------------------------------------------------------- batches


BATCHES_TEXT = """
`update_many` on 10,000 arms in 100 clusters, and `choose_many` of TSC with 1,000 arms in 32 clusters, compared with a
Python loop of `update` and `choose`; both on the native engine.
"""


FEW = 10  # rewards of a small batch, as they come in from a queue


def batches(arena: Arena, options: Options) -> Section:
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
                seconds.append(
                    arena.ask(OURS, "benchmarks.own_jobs:batches", what=call, n=n, size=at_once, seed=round_)["seconds"]
                )
        faster = ratio(taken[1], taken[size])
        each = ((Spread.of(taken[at_once]) * 1e9).text() for at_once in taken)
        rows.append((f"{call}_many of {size:,}", *each, times(faster.median)))
        if goal is not None:
            targets.append(Target(f"{call}_many of {size:,}, against a loop of {call}", faster, goal))
    table = Table(("call", "loop, ns each", "batch, ns each", "faster"), rows)
    return Section("Many at once", BATCHES_TEXT, tables=[("", table)], targets=targets)


# ---------------------------------------------------------------- simulator


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
SIMULATOR_TEXT = """
Whole runs of 3,000 steps, including rewards and regret: `bt.simulate` on one thread against a plain NumPy loop over one
seed. Policies are built before the clock starts, and so is what all policies share: the instance and, for problems with
contexts, the contexts and the best arm's value in each. The algorithms are the same, so regret differs only by chance.
"""


def simulator(arena: Arena, options: Options) -> Section:
    section = Section("Whole runs: the simulator", SIMULATOR_TEXT)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    regrets: dict[tuple[str, str], list[float]] = defaultdict(list)
    for round_ in range(options.own_rounds):
        print(f"simulator: round {round_ + 1} of {options.own_rounds}", flush=True)
        for case in GOALS:
            for how, seeds in (("native", options.seeds), ("numpy", 1)):
                answer = arena.ask(OURS, "benchmarks.own_jobs:simulate", case=case, how=how, seed=round_, seeds=seeds)
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
    return section


# ---------------------------------------------------------------- threads


THREADS_SEEDS = 16


def threads(arena: Arena, options: Options) -> Section:
    text = f"""
Wall time of one `bt.simulate` call with `jobs=1` and with `jobs=2`: TSC, 1,000 arms in 32 clusters,
{THREADS_SEEDS} seeds of {options.thread_horizon:,} steps.
"""
    section = Section("Two threads", text)
    taken: dict[int, list[float]] = defaultdict(list)
    for round_ in range(options.own_rounds):
        for jobs in (1, 2):
            answer = arena.ask(
                OURS,
                "benchmarks.own_jobs:threads",
                jobs=jobs,
                seeds=THREADS_SEEDS,
                horizon=options.thread_horizon,
                seed=round_,
            )
            taken[jobs].append(answer["seconds"])
    faster = ratio(taken[1], taken[2])
    row = (Spread.of(taken[1]).text(), Spread.of(taken[2]).text(), times(faster.median))
    section.tables.append(("", Table(("one thread, s", "two threads, s", "faster"), [row], left=0)))
    section.targets.append(Target("two threads, against one", faster, 1.7))
    return section


# ---------------------------------------------------------------- growth


GROWTH_SEEDS = 5  # fewer for a million arms, where a policy takes a second to build
POLICIES = {"TS": "TS, flat", "TSC": "TSC, √N clusters", "HTS": "HTS, fan-out 16"}
GROWTH_TEXT = """
Runs of 3,000 steps in `bt.simulate` on one thread, microseconds per step; building the tree and the policy is not
counted. Means are sorted from best to worst, so that neighbours are alike. "Evaluations" is the number of children that
the walk compares per step.
"""


def growth(arena: Arena, options: Options) -> Section:
    section = Section("Growth with the number of arms", GROWTH_TEXT)
    sizes = [n for n in (100, 1000, 10_000, 100_000, 1_000_000) if n <= options.largest]
    seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
    evaluations: dict[tuple[str, int], float] = {}
    wanted = [(policy, n) for n in sizes for policy in POLICIES] + [("category", 50), ("category", 5000)]
    for round_ in range(options.growth_rounds):
        print(f"growth: round {round_ + 1} of {options.growth_rounds}", flush=True)
        for policy, n in wanted:
            seeds = GROWTH_SEEDS if n < 1_000_000 else 2
            answer = arena.ask(OURS, "benchmarks.own_jobs:growth", policy=policy, n_arms=n, seed=round_, seeds=seeds)
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
    return section


# ---------------------------------------------------------------- cold


COLD_TEXT = """
Each measurement is a new Python process; the clock starts once the interpreter runs. "First decision" imports the
library, builds a policy with 100 arms, chooses once and learns once. Files are in the system's cache.
"""


def cold(arena: Arena, options: Options) -> Section:
    section = Section("Cold start", COLD_TEXT)
    names = [name for name in arena.contestants if name != READABLE]
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    with TemporaryDirectory() as nowhere:
        for round_ in range(-1, options.cold_rounds):  # the first warms the caches and is not counted
            print(f"cold start: round {round_ + 1} of {options.cold_rounds}", flush=True)
            for name in list(names):
                if name in arena.peers and round_ >= max(2, options.cold_rounds // 3):
                    continue
                library: Library = arena.contestants[name].load()
                for what, code in (("import", library.imports), ("first", library.first)):
                    try:
                        seconds = _time(arena.python[name], code, nowhere)
                    except Failed as error:
                        arena.failures[f"{name}, cold start"] = str(error)
                        names.remove(name)
                        break
                    if round_ >= 0:
                        taken[name, what].append(seconds)
    gone = [name for name in (OURS, NUMPY) if name not in names]
    if gone:  # nothing to compare with; what the other parts measured is still worth a page
        section.notes.append(f"No comparison: {gone[0]} failed, see above.")
        return section
    import_ratio = ratio(taken[OURS, "import"], taken[NUMPY, "import"])
    section.targets.append(Target("import banditree, against import numpy", import_ratio, 1.5, at_most=True))
    spreads = {name: [Spread.of(taken[name, what]) * 1e3 for what in ("import", "first")] for name in names}
    rows = [
        (
            name,
            arena.versions[name],
            *(spread.text() for spread in both),
            times(both[1].median / spreads[OURS][1].median),
        )
        for name, both in spreads.items()
    ]
    header = ("contestant", "version", "import, ms", "first decision, ms", "times ours")
    section.tables.append(("", Table(header, rows, left=2)))
    for name in arena.peers:
        if name in spreads and spreads[name][1].median < spreads[OURS][1].median:
            theirs, ours = spreads[name][1].text(), spreads[OURS][1].text()
            section.peer_wins.append(f"{name} decides sooner after a cold start: {theirs} ms against {ours}.")
    return section


def _time(python: str, code: str, folder: str) -> float:
    timed = f"from time import perf_counter as _now\n_begin = _now()\n{code}\nprint()\nprint(_now() - _begin)"
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", timed],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=folder,
            env=environ({}),
        )
    except subprocess.TimeoutExpired:
        raise Failed("no decision within 120 s") from None
    if done.returncode:
        raise Failed(short((done.stderr.strip().splitlines() or ["no message"])[-1]))
    return float(done.stdout.strip().splitlines()[-1])


# ---------------------------------------------------------------- memory


MEMORY_TEXT = """
How much memory a process gains per arm when a policy is built and makes one decision. The arrays of banditree hold the
tree and the beliefs; the rest is Python objects: the names of the arms, and the table that looks them up.
"""


def memory(arena: Arena, options: Options) -> Section:
    section = Section("Memory", MEMORY_TEXT)
    inside = arena.fresh(OURS, "benchmarks.own_jobs:arrays", n_arms=options.largest)
    rows = []
    found: dict[tuple[str, int], float] = {}  # bytes per arm
    for name in arena.contestants:
        if name in (READABLE, NUMPY):
            continue
        for n_arms in (options.peer_arms, options.largest) if name == OURS else (options.peer_arms,):
            try:
                answer = arena.fresh(name, "benchmarks.jobs:memory", n_arms=n_arms)
            except Failed as error:
                arena.failures[f"{name}, memory of {n_arms:,} arms"] = str(error)
                continue
            found[name, n_arms] = answer["bytes"]
            rows.append((name, answer["algorithm"], f"{n_arms:,}", figures(answer["bytes"])))
    section.tables.append(("", Table(("contestant", "algorithm", "arms", "bytes per arm"), rows, left=2)))
    section.notes.append(
        f"Inside the arrays of banditree, TSC with {options.largest:,} arms: {inside['tree']:.1f} bytes per arm for "
        f"the tree and {inside['beliefs']:.1f} for the Beta beliefs. Built in {inside['grow']:.2f} s (tree) and "
        f"{inside['policy']:.2f} s (policy)."
    )
    ours = found.get((OURS, options.peer_arms), 0.0)
    for name in arena.peers:
        theirs = found.get((name, options.peer_arms), ours)
        if theirs < ours:
            section.peer_wins.append(
                f"{name} takes less memory with {options.peer_arms:,} arms: {figures(theirs)} bytes per arm against "
                f"{figures(ours)}."
            )
    total = inside["tree"] + inside["beliefs"]
    measured = Spread.of([total])
    section.targets.append(
        Target("bytes per arm inside the arrays, tree and beliefs", measured, 50.0, at_most=True, unit="")
    )
    return section


# ---------------------------------------------------------------- decisions, logs, the service


DECIDED = {"TSC": (100, 10_000), "ATS": (100, 1000, 10_000), "LinATS": (100, 1000)}
DECIDE_TEXT = """
A choice, and a decision with its exact probability: the first one after a reward, and the following ones, in CPU time.
The policy has seen 3,000 rewards of arms in sqrt N clusters, clicked at rates of their own.
"""


def decide(arena: Arena, options: Options) -> Section:
    section = Section("Decisions with their probability", DECIDE_TEXT)
    rows = []
    for policy, sizes in DECIDED.items():
        for n_arms in sizes:
            if n_arms > options.largest:
                continue
            found = [
                arena.ask(OURS, "benchmarks.own_jobs:decide", policy=policy, n_arms=n_arms, seed=round_)
                for round_ in range(max(3, options.own_rounds // 3))
            ]
            spreads = [Spread.of([one[what] for one in found]) * 1e6 for what in ("choose", "first", "next")]
            rows.append((f"{policy}, {n_arms:,} arms", *(spread.text() for spread in spreads)))
    header = ("policy", "choose, µs", "decide after a reward, µs", "decide again, µs")
    section.tables.append(("", Table(header, rows)))
    return section


LOGS_TEXT = """
A log in memory, 100 arms in 10 clusters: read, learned by ATS, and a policy evaluated by all estimators.
"""


def logs(arena: Arena, options: Options) -> Section:
    section = Section("Logs", LOGS_TEXT)
    rows = []
    for n in (options.log_rows // 10, options.log_rows):
        found = [arena.ask(OURS, "benchmarks.own_jobs:logs", rows=n, seed=round_) for round_ in range(3)]
        spreads = [Spread.of([one[what] for one in found]) for what in ("read", "learn", "evaluate")]
        rows.append((f"{n:,}", *(spread.text() for spread in spreads)))
    section.tables.append(("", Table(("rows", "read, s", "learn, s", "evaluate, s"), rows)))
    return section


LAKE_TEXT = """
A log that DuckDB keeps, 100 arms in 10 clusters: rows are made up on the way, so that no disk has a part in it. ATS
learns it in one pass, and is evaluated by all estimators in another, on all cores. Memory is the process's highest.
"""
GIB, ROWS_PER_ARM = 2.0**30, 1000


def lake(arena: Arena, options: Options) -> Section:
    section = Section("Logs larger than memory", LAKE_TEXT)
    rows, n, bytes_ = [], 1_000_000, 0.0
    while n <= ROWS_PER_ARM * options.largest:
        try:
            found = arena.fresh(OURS, "benchmarks.own_jobs:lake", rows=n)
        except Failed as error:
            arena.failures[f"a lazy log of {n:,} rows"] = str(error)
            break
        bytes_ = found["memory"]
        rows.append((f"{n:,}", figures(found["learn"]), figures(found["evaluate"]), figures(bytes_ / GIB)))
        n *= 10
    section.tables.append(("", Table(("rows", "learn, s", "evaluate, s", "memory, GiB"), rows)))
    if rows:
        memory_of_all = Spread.of([bytes_ / GIB])
        section.targets.append(
            Target(f"GiB to learn and evaluate {rows[-1][0]} rows", memory_of_all, 2.0, at_most=True, unit="")
        )
    return section


SERVICE_TEXT = """
`banditree serve` under load from 32 connections, beside a bare FastAPI endpoint that returns a constant; `Local`
decides in the application's process. All take turns and are compared round by round.
"""


def served(arena: Arena, options: Options) -> Section:
    from benchmarks import service

    section = Section("The service", SERVICE_TEXT)
    with TemporaryDirectory() as folder:
        section.tables.append(("", service.decisions(Path(folder), options.loaded)))
        section.notes += service.local(Path(folder), options.loaded)
    return section


# ---------------------------------------------------------------- many arms


MANY_TEXT = """
How long it takes to build large trees, to change one arm of many, and to ask about all of them. A change copies the
tree, and decisions go on meanwhile. Every arm was tried three times on average, at random; the clusters are of about
the square root of the number of arms.
"""


def many(arena: Arena, options: Options) -> Section:
    section = Section("Many arms", MANY_TEXT)
    n, tenth, rows = options.largest, options.largest // 10, []

    def measure(shown: str, n_arms: int, job: str, **how: str) -> None:
        found = [arena.fresh(OURS, f"benchmarks.own_jobs:{job}", n_arms=n_arms, **how)["seconds"] for _ in range(3)]
        rows.append((shown, f"{n_arms:,}", (Spread.of(found) * 1000).text()))

    measure("Tree.from_labels", n, "build", how="labels")
    measure("Tree of nested mappings, binary", n, "build", how="nested")
    measure("Tree.from_linkage, binary", n, "build", how="linkage")
    for what, call in (("add", "add_arms"), ("move", "move_arms"), ("remove", "remove_arms")):
        measure(f"TSC.{call} of one arm", n, "change", what=what, policy="TSC")
    for policy in ("TSC", "ATS"):
        measure(f"{policy}.table()", 2 * tenth, "change", what="table", policy=policy)
    for size in (tenth, n):
        measure("ATS.choose()", size, "change", what="choose", policy="ATS")
        measure("ATS.decide()", size, "change", what="decide", policy="ATS")
    section.tables.append(("", Table(("what", "arms", "milliseconds"), rows, left=1)))
    return section


SECTIONS: dict[str, Callable[[Arena, Options], Section]] = {
    "steps": steps,
    "batches": batches,
    "simulator": simulator,
    "threads": threads,
    "growth": growth,
    "cold": cold,
    "memory": memory,
    "decide": decide,
    "logs": logs,
    "lake": lake,
    "service": served,
    "many": many,
}
