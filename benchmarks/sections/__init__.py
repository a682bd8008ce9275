"""The parts of the report, one file each: ``run(arena, options) -> Section``. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.arena import Arena
from benchmarks.findings import Section
from benchmarks.options import Options
from benchmarks.sections import batches, cold, growth, memory, simulator, steps, threads

SECTIONS: dict[str, Callable[[Arena, Options], Section]] = {
    "steps": steps.run,
    "batches": batches.run,
    "simulator": simulator.run,
    "threads": threads.run,
    "growth": growth.run,
    "cold": cold.run,
    "memory": memory.run,
}
