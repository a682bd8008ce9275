"""The page `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.arena import Arena
from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.findings import Section
from benchmarks.report import markdown

INTRO = """# Benchmarks

`make bench` writes this page in one run. Contestants take turns, round after round, each in its own process on one
thread, so that other load on the machine affects all of them alike. Compare ratios, not microseconds, with your own
machine. Each peer runs in its own environment, in the version that PyPI offers.
"""
HOW = """## Run it yourself

```
make bench                                       # everything, about twenty minutes; rewrites this page
.venv/bin/python -m benchmarks --quick --no-peers   # a minute: the same cases, shortened
.venv/bin/python -m benchmarks --only steps,cold    # some parts
.venv/bin/python -m benchmarks --help
```

A short or partial run prints its tables and writes to `build/benchmarks`, not here. A contestant is one small file in
`benchmarks/contestants`; corrections from the authors of a library are welcome.
"""


def write(folder: Path, arena: Arena, sections: Sequence[Section], *, pictures: str = "benchmarks") -> tuple[Path, str]:
    """Draw the pictures and write the page below ``folder``; gives its path and text."""
    (folder / pictures).mkdir(parents=True, exist_ok=True)
    parts = [INTRO, f"Measured on: {machine.describe()}.\n", _headline(sections), _wins(arena, sections)]
    parts += [_contestants(arena.versions, arena.failures)]
    for section in sections:
        parts.append(_section(section, pictures))
        for plot in section.plots:
            plot.draw(folder / pictures / plot.name)
    text = "\n".join([*parts, HOW])
    path = folder / "benchmarks.md"
    path.write_text(text, encoding="utf-8")
    return path, text


def _headline(sections: Sequence[Section]) -> str:
    found = [target for section in sections for target in section.targets]
    if not found:
        return ""
    met = sum(target.met for target in found)
    return f"## Targets\n\n{met} of {len(found)} met.\n\n{markdown.targets(found)}\n"


def _wins(arena: Arena, sections: Sequence[Section]) -> str:
    if not arena.peers:
        return ""
    wins = [f"- {win}" for section in sections for win in section.peer_wins]
    rule = "Faster, smaller, or with less regret by more than two standard errors (two of our sd for a single run).\n\n"
    return "## Where a peer wins\n\n" + rule + ("\n".join(wins) if wins else "Nowhere in this run.") + "\n"


def _contestants(versions: Mapping[str, str], failures: Mapping[str, str]) -> str:
    names = [name for name in versions if name != READABLE]
    lines = ["## Contestants\n", ", ".join(f"{_short(name)} {versions[name]}" for name in names) + ".\n"]
    if failures:
        lines += ["Not everything ran:\n", *(f"- {who}: {why}" for who, why in failures.items()), ""]
    return "\n".join(lines)


def _short(name: str) -> str:
    return {OURS: "banditree (native and readable engine)", NUMPY: "NumPy (plain loops)"}.get(name, name)


def _section(section: Section, pictures: str) -> str:
    lines = [f"## {section.title}\n", section.text.strip() + "\n"]
    for heading, content in section.tables:
        lines += [f"### {heading}\n"] if heading else []
        lines += [markdown.table(content), ""]
    for note in section.notes:
        lines += [note, ""]
    for plot in section.plots:
        lines += [f"![{plot.shows}]({pictures}/{plot.name})", ""]
    return "\n".join(lines)
