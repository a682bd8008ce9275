"""Results in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from banditree.catalogue import sentences
from banditree.catalogue.advice import Advice
from banditree.catalogue.inspection import Inspection
from banditree.catalogue.sentences import chance, holds_best, path, percent, short
from banditree.catalogue.simulation import Simulation
from banditree.output.tables import Table
from banditree.output.words import count

EXTREMES = 5  # best and worst clusters shown a level


def show(console: Console, parts: Iterable[Any]) -> None:
    console.print(Group(*parts))


def inspection(found: Inspection) -> list[Any]:
    """Tree, sizes, quality, clusters, arms in the wrong place."""
    notes = [Text(f"Note: {note}.", style="yellow") for note in found.catalogue.notes]
    parts: list[Any] = [Text(repr(found.catalogue), style="bold"), *notes, "", Text(str(found.catalogue.tree)), ""]
    if found.catalogue.tree.depth:
        parts += [_title("What each level of categories explains"), _levels(found), ""]
    parts += [_title("Quality for a bandit"), *_lines(_quality(found)), ""]
    for level in found.levels["level"]:
        rows = [row for row in found.clusters if row.level == level]
        parts += [_title(f"Categories of level {level}, best and worst"), _clusters(rows, found.worlds), ""]
    parts.append(_title("Arms that look misplaced"))
    if len(found.misplaced):
        parts.append(_misplaced(found.misplaced))
    else:
        parts.append(Text("None that the data can show."))
    return parts


def _quality(found: Inspection) -> list[str]:
    unit = "" if found.worlds == 1 else f" (median and 95% interval over {found.worlds} worlds that the counts allow)"
    return [
        f"Width of the best top category, w*: {sentences.between(found.width)}{unit}.",
        f"Distance to the nearest other one, d: {sentences.between(found.distance)}; gamma, the average of w*/d: "
        f"{sentences.between(found.gamma)}.",
        sentences.dominance(found),
    ]


def _levels(found: Inspection) -> RichTable:
    table = _grid("level", "categories", "arms in each", "share of variance", "95% interval", "by chance")
    for row in found.levels:
        low, high = row.interval
        sizes = f"{row.smallest} to {row.largest}, median {row.median:g}"
        extent = "" if low == high else f"{percent(low)} to {percent(high)}"
        table.add_row(str(row.level), f"{row.clusters:,}", sizes, percent(row.share), extent, percent(row.by_chance))
    table.add_row("arms", f"{found.catalogue.tree.n_arms:,}", "", percent(found.within.value), "", "")
    return table


def _clusters(rows: list[Any], worlds: int) -> RichTable:
    table = _grid("category", "arms", "plays", "mean of its arms", "95% interval", "holds the best arm")
    for i, row in enumerate(rows):
        if EXTREMES <= i < len(rows) - EXTREMES:
            if i == EXTREMES:
                table.add_row(f"... {len(rows) - 2 * EXTREMES:,} more", "", "", "", "", "")
            continue
        low, high = row.interval
        extent = "" if low == high else f"{short(low)} to {short(high)}"
        name = Text(path(row.path))
        held = holds_best(row.best, worlds)
        table.add_row(name, f"{row.arms:,}", short(row.plays), short(row.mean), extent, held)
    return table


def _misplaced(misplaced: Table, most: int = 10) -> RichTable:
    table = _grid("arm", "is in", "its rate", "others there", "would fit", "rate there", "probability")
    for row in misplaced[:most]:
        names = Text(str(row.arm)), Text(path(row.path))
        table.add_row(
            *names,
            short(row.rate),
            short(row.cluster_rate),
            Text(path(row.fits)),
            short(row.fits_rate),
            chance(row.probability),
        )
    if len(misplaced) > most:
        table.add_row(f"... {len(misplaced) - most:,} more", *[""] * 6)
    return table


def simulation(found: Simulation) -> list[Any]:
    """Regret, and where the plays went."""
    runs = found.runs
    known = "the means given" if found.catalogue.means is not None else "worlds that the counts allow"
    parts: list[Any] = [
        Text(
            f"{count(found.horizon, 'decision')}, {count(len(runs.seeds), 'seed')}, in {known}; "
            "every policy starts from nothing.",
            style="bold",
        ),
        "",
        _title("Regret: rewards lost to not knowing the best arm"),
    ]
    table = _grid("policy", "regret", "95% interval", "standard deviation")
    for row in runs.table():
        low, high = row.interval
        table.add_row(row.policy, short(row.mean), f"{short(low)} to {short(high)}", short(row.sd))
    return [*parts, table, "", _title("Traffic by category"), traffic(found.traffic)]


def traffic(shares: Table, most: int = 15) -> RichTable:
    policies = shares.columns[2:]
    table = _grid("category", "arms", *policies)
    for row in shares[:most]:
        table.add_row(Text(str(row.cluster)), f"{row.arms:,}", *(percent(row[name]) for name in policies))
    if len(shares) > most:
        table.add_row(f"... {len(shares) - most:,} more", "", *[""] * len(policies))
    return table


def advice(found: Advice) -> list[Any]:
    """The answer first, then what it rests on."""
    first, *rest = found.sentences
    table = _grid("policy", "regret", "95% interval", "best in")
    for row in found.table:
        low, high = row.interval
        table.add_row(row.policy, short(row.regret), f"{short(low)} to {short(high)}", f"{percent(row.best)} of worlds")
    parts: list[Any] = [Text(first, style="bold green" if found.verdict == "tree" else "bold"), *_lines(rest)]
    parts += [
        Text(f"In Python: {found.code}", style="cyan"),
        "",
        _title(f"Regret after {count(found.horizon, 'decision')}"),
        table,
    ]
    parts += ["", _title("What each level of categories explains"), _levels(found.inspection), ""]
    return [*parts, _title("What would change this"), *_lines(found.changes)]


def _title(text: str) -> Text:
    return Text(text, style="bold blue")


def _lines(lines: Iterable[str]) -> list[Any]:
    return [Text(line) for line in lines]


def _grid(*columns: str) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table
