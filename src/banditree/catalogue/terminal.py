"""Show inspections, simulations and advice in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from banditree.catalogue import sentences
from banditree.catalogue.advice import Advice
from banditree.catalogue.grid import Grid
from banditree.catalogue.inspection import Inspection
from banditree.catalogue.sentences import chance, extent, holds_best, path, percent, short, to
from banditree.catalogue.simulation import Simulation
from banditree.report.tables import Table
from banditree.report.words import count, visible

EXTREMES = 5  # best and worst clusters shown per level


def show(console: Console, parts: Iterable[Any]) -> None:
    console.print(Group(*parts))


def inspection(found: Inspection) -> list[Any]:
    """Show the tree, sizes, quality, clusters, and arms that look misplaced."""
    notes = [_text(f"Note: {note}.", style="yellow") for note in found.catalogue.notes]
    tree = _text(str(found.catalogue.tree))
    parts: list[Any] = [_text(repr(found.catalogue), style="bold"), *notes, "", tree, ""]
    if found.catalogue.tree.depth:
        parts += [_title("What each level of categories explains"), _levels(found), ""]
    parts += [_title("Quality for a bandit"), *_lines([*sentences.measures(found), sentences.dominance(found)]), ""]
    for level in found.levels["level"]:
        rows = [row for row in found.clusters if row.level == level]
        parts += [_title(f"Categories of level {level}, best and worst"), _clusters(rows, found.worlds), ""]
    parts.append(_title("Arms that look misplaced"))
    if len(found.misplaced):
        parts.append(_misplaced(found.misplaced))
    else:
        parts.append(_text("None that the data reveal."))
    return parts


def _levels(found: Inspection) -> Grid:
    table = Grid("level", "categories", "arms in each", "share of variance", "95% interval", "by chance")
    for row in found.levels:
        sizes = f"{row.smallest} to {row.largest}, median {row.median:g}"
        share, interval = percent(row.share), extent(row.interval, percent)
        table.add_row(str(row.level), f"{row.clusters:,}", sizes, share, interval, percent(row.by_chance))
    table.add_row("arms", f"{found.catalogue.tree.n_arms:,}", "", percent(found.within.value), "", "")
    return table


def _clusters(rows: list[Any], worlds: int) -> Grid:
    table = Grid("category", "arms", "plays", "mean of its arms", "95% interval", "holds the best arm")
    for i, row in enumerate(rows):
        if EXTREMES <= i < len(rows) - EXTREMES:
            if i == EXTREMES:
                table.add_row(f"... {len(rows) - 2 * EXTREMES:,} more", "", "", "", "", "")
            continue
        mean, held = short(row.mean), holds_best(row.best, worlds)
        table.add_row(path(row.path), f"{row.arms:,}", short(row.plays), mean, extent(row.interval), held)
    return table


def _misplaced(misplaced: Table, most: int = 10) -> Grid:
    columns = ("arm", "is in", "its rate", "others there", "would fit", "rate there", "probability")
    table = Grid(*columns, names=(0, 1, 4))
    for row in misplaced[:most]:
        here, there = (short(row.rate), short(row.cluster_rate)), short(row.fits_rate)
        table.add_row(row.arm, path(row.path), *here, path(row.fits), there, chance(row.probability))
    if len(misplaced) > most:
        table.add_row(f"... {len(misplaced) - most:,} more", *[""] * 6)
    return table


def simulation(found: Simulation) -> list[Any]:
    """Show regret, and traffic by category."""
    runs = found.runs
    known = "the means given" if found.catalogue.means is not None else "worlds consistent with the data"
    parts: list[Any] = [
        _text(
            f"{count(found.horizon, 'decision')}, {count(len(runs.seeds), 'seed')}, in {known}. "
            f"{sentences.start(found.catalogue)}",
            style="bold",
        ),
        "",
        _title("Regret: reward lost by not knowing the best arm"),
    ]
    return [*parts, regret(found), "", _title("Traffic by category"), traffic(found.traffic)]


def regret(found: Simulation) -> Grid:
    """Tabulate the regret of every policy, the best first."""
    table = Grid("policy", "regret", "95% interval", "standard deviation")
    for row in found.runs.table():
        table.add_row(row.policy, short(row.mean), to(row.interval), short(row.sd))
    return table


def traffic(shares: Table, most: int = 15) -> Grid:
    policies = shares.columns[2:]
    table = Grid("category", "arms", *policies)
    for row in shares[:most]:
        table.add_row(row.cluster, f"{row.arms:,}", *(percent(row[name]) for name in policies))
    if len(shares) > most:
        table.add_row(f"... {len(shares) - most:,} more", "", *[""] * len(policies))
    return table


def advice(found: Advice) -> list[Any]:
    """Show the answer first, then what it is based on."""
    first, *rest = found.sentences
    table = Grid("policy", "regret", "95% interval", "lost per decision at the end", "best in")
    for row in found.table:
        best = f"{percent(row.best)} of worlds"
        table.add_row(row.policy, short(row.regret), to(row.interval), short(row.loss), best)
    parts: list[Any] = [_text(first, style="bold green" if found.verdict == "tree" else "bold"), *_lines(rest)]
    parts += [
        _text(f"In Python: {found.code}", style="cyan"),
        "",
        _title(f"Regret after {count(found.horizon, 'decision')}"),
        table,
    ]
    parts += ["", _title("What each level of categories explains"), _levels(found.inspection), ""]
    return [*parts, _title("What would change this"), *_lines(found.changes)]


def _title(text: str) -> Text:
    return _text(text, style="bold blue")


def _lines(lines: Iterable[str]) -> list[Any]:
    return [_text(line) for line in lines]


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text, lines=True), style=style)
