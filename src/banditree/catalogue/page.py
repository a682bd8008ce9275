"""Make self-contained web pages of inspections, simulations and advice from the templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from banditree.catalogue import sentences
from banditree.catalogue.outline import outline
from banditree.catalogue.sentences import chance, holds_best, path, percent, short
from banditree.output.pages import markup, render
from banditree.report.tables import Row
from banditree.report.words import count

if TYPE_CHECKING:
    from banditree.catalogue.advice import Advice
    from banditree.catalogue.inspection import Inspection
    from banditree.catalogue.simulation import Simulation
    from banditree.simulation.runs import Runs

MOST = 30  # rows shown of a table
LOST = "Reward lost by not knowing the best arm"


def advice_page(advice: Advice, *, title: str) -> str:
    """Make the page of an advice: the answer first, then everything behind it."""
    runs, found = advice.runs, advice.inspection
    worlds, each = len(runs.seeds), next(iter(runs.replicates.values())).shape[1]
    start = sentences.start(found.catalogue)
    where = f"in {count(worlds, 'world')} consistent with the data, {each} in each"
    where = "on the means given" if found.catalogue.means is not None else where
    return _page(
        "advice.html",
        title=title,
        subject=advice.name,
        advice=advice,
        about=f"{LOST}, in {worlds * each} runs of each policy {where}; lower is better. {start}",
        worst=max(advice.table["regret"]) or 1.0,
        picture=_curves(runs),
        **_inspected(found),
    )


def inspection_page(found: Inspection, *, title: str) -> str:
    """Make the page of an inspection: how much the categories explain."""
    return _page("inspection.html", title=title, subject=repr(found.catalogue), **_inspected(found))


def simulation_page(simulation: Simulation, *, title: str) -> str:
    """Make the page of a simulation: regret, and traffic by category."""
    runs = simulation.runs
    table = runs.table()
    known = "on the means given" if simulation.catalogue.means is not None else "in worlds consistent with the data"
    return _page(
        "simulation.html",
        title=title,
        subject=f"{count(simulation.horizon, 'decision')}, {count(len(runs.seeds), 'seed')}",
        simulation=simulation,
        about=f"{LOST}, {known}; lower is better. {sentences.start(simulation.catalogue)}",
        table=table,
        worst=max(table["mean"]) or 1.0,
        picture=_curves(runs),
    )


def _page(template: str, **values: Any) -> str:
    words: dict[str, Callable[..., Any]] = {
        "chance": chance,
        "clusters_of": _clusters_of,
        "holds_best": holds_best,
        "path": path,
        "percent": percent,
        "short": short,
    }
    return render("banditree.catalogue", template, words, most=MOST, **values)


def _inspected(found: Inspection) -> dict[str, Any]:
    means = {row.path: row.mean for row in found.clusters}
    return {
        "found": found,
        "quality": [sentences.dominance(found), *sentences.measures(found)],
        "branch": outline(found.catalogue, means),
    }


def _clusters_of(found: Inspection, level: int) -> list[Row]:
    """List the categories of a level, with their intervals and means on a common scale from 0 to 100."""
    rows = [row for row in found.clusters if row.level == level]
    low = min((row.interval[0] for row in rows), default=0.0)
    high = max((row.interval[1] for row in rows), default=1.0)
    scale = 100 / (high - low) if high > low else 0.0
    for row in rows:
        left, right = ((end - low) * scale for end in row.interval)
        row.update(left=left, width=max(right - left, 0.5), dot=(row.mean - low) * scale)
    return rows


def _curves(runs: Runs) -> Any:
    """Draw the regret curves as SVG."""
    from banditree import plots
    from banditree.plots import files

    ax = plots.regret(runs, ax=plots.sheet(width=4.8, height=4.4), legend="below")
    return markup(files.svg(ax))
