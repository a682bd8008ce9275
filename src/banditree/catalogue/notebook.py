"""Advice in a notebook: the sentences and the table, with nothing installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditree.catalogue.sentences import percent, short
from banditree.output.html import table, tag, text

if TYPE_CHECKING:
    from banditree.catalogue.advice import Advice


def advice(found: Advice) -> str:
    """The answer, what it rests on, and what would change it."""
    first, *rest = found.sentences
    rows = [
        (row.policy, short(row.regret), " to ".join(map(short, row.interval)), short(row.loss), percent(row.best))
        for row in found.table
    ]
    columns = ("policy", "regret", "95% interval", "lost per decision at the end", "best in worlds")
    return tag(
        "div",
        tag("p", tag("b", text(first))),
        *(tag("p", text(line)) for line in rest),
        tag("pre", text(found.code)),
        table(columns, rows, label="regret of each policy"),
        tag("p", text("What would change this:")),
        tag("ul", *(tag("li", text(line)) for line in found.changes)),
    )
