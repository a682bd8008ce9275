"""A claim on the page: the quotation, the verdict, the numbers behind it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from banditree.output.html import number, table, tag, text
from banditree.paper.claims import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, Finding, Verdict
from banditree.paper.claims.checks import needed
from banditree.paper.report.markdown import margin

# A word, a sign and a colour each, so that none of them has to carry the verdict alone.
SIGNS = {
    HOLDS: ("✓", "holds"),
    PART: ("◐", "part"),
    FAILS: ("✗", "fails"),
    OPEN: ("?", "open"),
    NOT_JUDGED: ("–", "none"),
}


def badge(verdict: str) -> str:
    """The verdict as a coloured label."""
    sign, name = SIGNS[verdict]
    return tag("span", tag("span", sign, aria_hidden="true"), f" {text(verdict)}", class_=f"badge {name}")


def overview(verdicts: Sequence[Verdict]) -> str:
    """All claims at a glance."""
    rows = (
        tag(
            "tr",
            tag("td", tag("a", text(verdict.id), href=f"#claim-{verdict.id}"), class_="word"),
            tag("td", badge(verdict.verdict), class_="word"),
            tag("td", margin(verdict.margin), class_="number"),
            tag("td", text(", ".join(verdict.claim.figures)), class_="word"),
        )
        for verdict in verdicts
    )
    names = (("claim", "word"), ("verdict", "word"), ("margin", "number"), ("figures", "word"))
    head = tag("tr", *(tag("th", name, class_=kind, scope="col") for name, kind in names))
    inside = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label="All claims")


def card(verdict: Verdict, shown: Container[str]) -> str:
    """One claim; ``shown`` are the figures that the page has."""
    claim, found = verdict.claim, verdict.finding
    links = ", ".join(
        tag("a", text(name), href=f"#figure-{name}") if name in shown else text(name) for name in claim.figures
    )
    parts = [
        tag("h3", tag("code", text(claim.id)), " ", badge(verdict.verdict)),
        tag(
            "blockquote",
            f"“{text(claim.quote)}”",
            tag("footer", f"Figure {links}" if len(claim.figures) == 1 else f"Figures {links}"),
        ),
        tag("p", text(verdict.sentence), class_="sentence"),
    ]
    if found is not None:
        parts.append(_facts(verdict, found))
        parts += [_variant(name, each, found) for name, each in verdict.variants.items()]
    parts.append(tag("details", tag("summary", "What decides, and the numbers"), _detail(verdict)))
    return tag("article", *parts, id=f"claim-{claim.id}", class_="claim")


def _facts(verdict: Verdict, found: Finding) -> str:
    facts = [
        f"margin {margin(found.margin)}",
        f"needed {needed(found.seeds):.1f}",
        f"{found.seeds} seeds",
        f"T = {found.horizon:,}",
    ]
    if verdict.half is not None:
        facts.append(f"at half of T it {'also ' if verdict.half == verdict.verdict else ''}{verdict.half}")
    return tag("p", text(" · ".join(facts)), class_="facts")


def _variant(name: str, each: Finding, default: Finding) -> str:
    differs = "" if each.verdict == default.verdict else "differs: "
    said = f" {differs}{each.sentence} Margin {margin(each.margin)}."
    return tag("p", tag("b", f"Reading {text(repr(name))}: "), badge(each.verdict), text(said), class_="variant")


def _detail(verdict: Verdict) -> str:
    decides = tag("p", text(verdict.claim.statistic))
    if verdict.finding is None:
        return decides
    return decides + _checks(verdict.finding) + _numbers(verdict.finding)


def _checks(found: Finding) -> str:
    rows = [
        (
            check.what,
            {"yes": "passes", "no": "fails", "open": "open"}[check.result],
            "shown" if check.proof else "not refuted",
            "yes" if check.core else "no",
            f"{number(check.estimate.value)} ± {number(check.estimate.se)}",
            f"{'>' if check.above else '<'} {number(check.threshold)}",
            margin(check.margin),
        )
        for check in found.checks
    ]
    columns = ("check", "result", "passes when", "a part by itself", "number ± se", "threshold", "margin")
    return table(columns, rows, label="Checks", words=4)


def _numbers(found: Finding) -> str:
    rows = [(name, number(value)) for name, value in found.numbers.items()]
    return table(("number", "value"), rows, label="Numbers")
