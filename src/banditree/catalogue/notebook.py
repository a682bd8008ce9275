"""Show advice in a notebook: sentences and a table, without any extra installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditree.catalogue.sentences import percent, short, to
from banditree.output.html import tag, text
from banditree.output.notebook import grid

if TYPE_CHECKING:
    from banditree.catalogue.advice import Advice


def advice(found: Advice) -> str:
    """Write the answer, the table behind it, and what would change it as HTML."""
    first, *rest = found.sentences
    rows = [
        (row.policy, short(row.regret), to(row.interval), short(row.loss), percent(row.best)) for row in found.table
    ]
    columns = ("policy", "regret", "95% interval", "lost per decision at the end", "best in worlds")
    return tag(
        "div",
        tag("p", tag("b", text(first))),
        *(tag("p", text(line)) for line in rest),
        tag("pre", text(found.code)),
        grid(columns, rows, [True, False, False, False, False]),
        tag("p", text("What would change this:")),
        tag("ul", *(tag("li", text(line)) for line in found.changes)),
    )
