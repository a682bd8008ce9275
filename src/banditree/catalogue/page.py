"""The advice as one web page that needs nothing else: no scripts, no fonts, no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from banditree.catalogue import sentences
from banditree.catalogue.advice import Advice
from banditree.catalogue.curves import curves
from banditree.catalogue.inspection import Inspection
from banditree.catalogue.outline import outline
from banditree.catalogue.sentences import chance, holds_best, path, percent, short
from banditree.output.html import text
from banditree.output.tables import Table

MOST = 30  # rows of a table


def page(advice: Advice, *, title: str = "catalogue") -> str:
    """The whole page as HTML."""
    style = (resources.files("banditree.catalogue") / "page.css").read_text(encoding="utf-8")
    found = advice.inspection
    first, *rest = advice.sentences
    names = list(advice.table["policy"])
    body = [
        f"<header><p class='small'>{text(title)} · {advice.horizon:,} decisions</p>"
        f"<h1>{text(first)}</h1>{_paragraphs(rest)}<pre><code>{text(advice.code)}</code></pre></header>",
        _section("Regret", _regret(advice) + curves(advice.runs, names), _note(advice)),
        _section("What would change this", _list(advice.changes)),
        _section("What the categories explain", _levels(found) + _paragraphs(_quality(found))),
        _section("Categories", _clusters(found), "The mean of a category's arms, with its 95% interval."),
        _section("Arms that look misplaced", _misplaced(found.misplaced)) if len(found.misplaced) else "",
        _section("Traffic by category", _traffic(advice), "The share of each policy's decisions."),
        _section("The tree", outline(found.catalogue, _means(found))),
        _section("Notes on the table", _list(found.catalogue.notes)) if found.catalogue.notes else "",
    ]
    head = (
        f"<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{text(title)}: {text(advice.name)}</title><style>{style}</style>"
    )
    return f"<!doctype html><html lang='en'><head>{head}</head><body><main>{''.join(body)}</main></body></html>\n"


def _note(advice: Advice) -> str:
    worlds = len(advice.runs.seeds)
    means = advice.inspection.catalogue.means is not None
    where = "on the means given" if means else f"in {worlds} worlds that the counts allow, two in each"
    return (
        f"Rewards lost to not knowing the best arm, in {2 * worlds} runs of each policy {where}; lower is better. "
        "Every policy starts from nothing. Bands reach two standard errors to either side."
    )


def _regret(advice: Advice) -> str:
    most = max(advice.table["regret"]) or 1.0
    rows = [
        (
            text(row.policy),
            f"<span class='bar' style='width:{100 * row.regret / most:.1f}%'></span>",
            short(row.regret),
            f"{short(row.interval[0])} to {short(row.interval[1])}",
            percent(row.best),
        )
        for row in advice.table
    ]
    return _table(("policy", "", "regret", "95% interval", "best in worlds"), rows, wide=1)


def _levels(found: Inspection) -> str:
    rows = []
    for row in found.levels:
        low, high = row.interval
        bar = f"<span class='bar' style='width:{100 * row.share:.1f}%'></span>"
        extent = "" if low == high else f"{percent(low)} to {percent(high)}"
        rows.append((f"level {row.level}", bar, percent(row.share), extent, percent(row.by_chance)))
    inside = found.within.value
    bar = f"<span class='bar weak' style='width:{100 * inside:.1f}%'></span>"
    rows.append(("arms", bar, percent(inside), "", ""))
    return _table(("", "", "share of variance", "95% interval", "by chance"), rows, wide=1)


def _quality(found: Inspection) -> list[str]:
    measures = (
        f"Width of the best top category w* {sentences.between(found.width)}, distance to the nearest other one d "
        f"{sentences.between(found.distance)}, gamma {sentences.between(found.gamma)}."
    )
    return [sentences.dominance(found), measures]


def _clusters(found: Inspection) -> str:
    top = [row for row in found.clusters if row.level == 1]
    low = min((row.interval[0] for row in top), default=0.0)
    high = max((row.interval[1] for row in top), default=1.0)
    scale = 100 / (high - low) if high > low else 0.0
    rows = []
    for row in top[:MOST]:
        left, right = ((end - low) * scale for end in row.interval)
        place = (row.mean - low) * scale
        mark = f"<span class='range' style='left:{left:.1f}%;width:{max(right - left, 0.5):.1f}%'></span>"
        mark = f"<span class='axis'>{mark}<span class='dot' style='left:{place:.1f}%'></span></span>"
        held = holds_best(row.best, found.worlds)
        rows.append((text(path(row.path)), mark, short(row.mean), f"{row.arms:,}", held))
    return _table(("category", "", "mean", "arms", "holds the best arm"), rows, wide=1, more=len(top) - MOST)


def _misplaced(misplaced: Table) -> str:
    rows = [
        (text(row.arm), text(path(row.path)), short(row.rate), text(path(row.fits)), chance(row.probability))
        for row in misplaced[:MOST]
    ]
    return _table(("arm", "is in", "its rate", "would fit", "probability"), rows, more=len(misplaced) - MOST)


def _traffic(advice: Advice) -> str:
    names = advice.traffic.columns[2:]
    rows = [(text(row.cluster), *(percent(row[name]) for name in names)) for row in advice.traffic[:MOST]]
    return _table(("category", *map(text, names)), rows, more=len(advice.traffic) - MOST)


def _means(found: Inspection) -> dict[tuple[Any, ...], float]:
    return {row.path: row.mean for row in found.clusters}


def _section(title: str, content: str, note: str = "") -> str:
    return f"<section><h2>{title}</h2>{_paragraphs([note]) if note else ''}{content}</section>"


def _table(columns: tuple[str, ...], rows: Sequence[Sequence[str]], *, wide: int | None = None, more: int = 0) -> str:
    head = "".join(f"<th{' class=wide' if i == wide else ''}>{column}</th>" for i, column in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{' class=wide' if i == wide else ''}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    rest = f"<p class='small'>... and {more:,} more</p>" if more > 0 else ""
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{rest}"


def _paragraphs(lines: Any) -> str:
    return "".join(f"<p>{text(line)}</p>" for line in lines)


def _list(lines: Any) -> str:
    return "<ul>" + "".join(f"<li>{text(line)}</li>" for line in lines) + "</ul>"
