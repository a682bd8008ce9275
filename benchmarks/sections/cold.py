"""Cold start: how long until the library is there, and until it has decided once."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.arena import Arena, Failed, environ
from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.findings import Plot, Section, Table, Target
from benchmarks.options import Options
from benchmarks.report.plots import draw_cold
from benchmarks.timing import Spread, ratio
from benchmarks.words import short, times

TEXT = """
Each measurement is a new Python process; the clock starts once the interpreter runs. "First decision" imports the
library, builds a policy with 100 arms, chooses once and learns once. Files are in the system's cache.
"""


def run(arena: Arena, options: Options) -> Section:
    section = Section("Cold start", TEXT)
    names = [name for name in arena.contestants if name != READABLE]
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    with TemporaryDirectory() as nowhere:
        for round_ in range(-1, options.cold_rounds):  # the first warms the caches and is not counted
            print(f"cold start: round {round_ + 1} of {options.cold_rounds}", flush=True)
            for name in list(names):
                if name in arena.peers and round_ >= max(2, options.cold_rounds // 3):
                    continue
                module = arena.contestants[name].load()
                for what, code in (("import", module.IMPORT), ("first", module.FIRST)):
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
    section.plots.append(Plot("cold.png", "milliseconds of import and first decision", partial(draw_cold, spreads)))
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
