"""Memory per arm."""

from __future__ import annotations

from benchmarks.arena import Arena, Failed
from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.findings import Section, Table, Target
from benchmarks.options import Options
from benchmarks.timing import Spread
from benchmarks.words import figures

TEXT = """
How much memory a process gains per arm when a policy is built and makes one decision. The arrays of banditree hold the
tree and the beliefs; the rest is Python objects: the names of the arms, and the table that looks them up.
"""


def run(arena: Arena, options: Options) -> Section:
    section = Section("Memory", TEXT)
    inside = arena.fresh(OURS, "arrays", n_arms=options.largest)
    rows = []
    found: dict[tuple[str, int], float] = {}  # bytes per arm
    for name in arena.contestants:
        if name in (READABLE, NUMPY):
            continue
        for n_arms in (options.peer_arms, options.largest) if name == OURS else (options.peer_arms,):
            try:
                answer = arena.fresh(name, "memory", n_arms=n_arms)
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
