"""Make a self-contained web page of evaluations, with pictures: no scripts, no external fonts, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources

import numpy as np

from banditree import plots
from banditree.ope.evaluation import Evaluation
from banditree.ope.verdict import Judgement
from banditree.output import html
from banditree.output.html import number, tag, text
from banditree.output.words import count

MISSING = 20  # arms named, at most

STYLE = """
img { width: 100%; max-width: 760px; height: auto; background: #ffffff; border-radius: 6px; }
figure { margin: 12px 0; }
figcaption { color: var(--soft); font-size: 0.875rem; }
th.word, td.word { text-align: left; }
"""


def page(
    evaluations: Mapping[str, Evaluation],
    verdict: str,
    *,
    title: str,
    judgements: Mapping[str, Judgement] | None = None,
) -> str:
    """Make the page: the verdict, all policies next to the logging policy, and pictures for each of them."""
    style = (resources.files("banditree.catalogue") / "templates" / "page.css").read_text(encoding="utf-8") + STYLE
    one = next(iter(evaluations.values()))
    notes = list(dict.fromkeys(note for found in evaluations.values() for note in found.notes))
    body = [
        tag(
            "header",
            tag("p", text(f"{title} · {count(one.rows, 'row')}"), class_="small"),
            tag("h1", text(verdict)),
        ),
        _policies(evaluations, judgements) if len(evaluations) > 1 else "",
        *(_one(name, found, (judgements or {}).get(name)) for name, found in evaluations.items()),
        _section("Notes", tag("ul", *(tag("li", text(note)) for note in notes))) if notes else "",
    ]
    head = [
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        tag("title", text(title)),
        f"<style>{style}</style>",
    ]
    inside = f"<head>{''.join(head)}</head><body>{tag('main', *body)}</body>"
    return f'<!doctype html><html lang="en">{inside}</html>\n'


def _policies(evaluations: Mapping[str, Evaluation], judgements: Mapping[str, Judgement] | None) -> str:
    """Show all policies next to the logging policy, by their trusted estimates."""
    best_first = sorted(evaluations, key=lambda name: -evaluations[name].trusted.value)
    trusted = {name: evaluations[name].trusted for name in best_first}
    logging = evaluations[best_first[0]].logging
    answers = {name: judgements[name].answer if judgements else evaluations[name].answer for name in best_first}
    rows = [
        (name, answers[name], number(e.value), _between(e.interval), number(e.ess), e.estimator.label)
        for name, e in trusted.items()
    ]
    rows.append(("logging policy", "", number(logging.value), _between(logging.interval), number(logging.ess), ""))
    columns = ("policy", "against the logging policy", "value", "95% interval", "effective rows", "by")
    drawn = plots.intervals(
        list(trusted),
        [e.value for e in trusted.values()],
        [e.se for e in trusted.values()],
        reference=(logging.value, logging.se),
        ax=plots.sheet(height=1.2 + 0.35 * len(trusted)),
    )
    caption = (
        "What each policy would have earned per decision. The line and its band show what the logging policy earned."
    )
    table = html.table(columns, rows, label="policies", words=2)
    return _section("Policies", table, _figure(drawn, caption, alt="Intervals of all policies"))


def _one(name: str, found: Evaluation, judgement: Judgement | None) -> str:
    """Show one target: its estimates, its weights and its support."""
    estimates = list(found)
    logging = found.logging
    rows = [
        (e.estimator.name, e.estimator.setting, number(e.value), number(e.se), _between(e.interval), number(e.ess))
        for e in estimates
    ]
    columns = ("estimator", "setting", "value", "standard error", "95% interval", "effective rows")
    drawn = plots.intervals(
        [e.estimator.label for e in estimates],
        [e.value for e in estimates],
        [e.se for e in estimates],
        reference=(logging.value, logging.se),
        faint=[not e.estimator.holds for e in estimates],
        ax=plots.sheet(height=1.2 + 0.3 * len(estimates)),
    )
    rows_of = found.inputs
    target = np.bincount(rows_of.target.kind, minlength=len(rows_of.target.table)) @ rows_of.target.table / found.rows
    shown = np.bincount(rows_of.places, minlength=rows_of.tree.n_arms) / found.rows
    ess = found.trusted.ess
    weigh = f"Largest weight {number(found.largest_weight)}; the rows are worth {number(ess)} of equal weight."
    never = f"{100 * found.unsupported:.3g}% of the target is on arms that the log never shows"
    if found.missing:
        never += ": " + ", ".join(map(str, found.missing[:MISSING])) + (", ..." if len(found.missing) > MISSING else "")
    every = " ".join(
        ["All estimates of its reward per decision.", *(f"Open circles: {each}." for each in found.caveat)]
    )
    names = [str(arm) for arm in rows_of.tree.arms]
    return _section(
        name,
        tag("p", text(judgement.sentence)) if judgement else "",
        html.table(columns, rows, label=f"estimates for {name}", words=2),
        _figure(drawn, every, alt=f"Intervals of the estimates for {name}"),
        _figure(plots.weights(rows_of.weights, ax=plots.sheet()), weigh, alt=f"How the weights of {name} add up"),
        _figure(plots.support(names, target, shown, ax=plots.sheet()), f"{never}.", alt=f"Support of {name}"),
    )


def _figure(ax: object, caption: str, *, alt: str) -> str:
    return tag("figure", html.image(plots.data(ax, "svg"), kind="svg+xml", alt=alt), tag("figcaption", text(caption)))


def _section(title: str, *content: str) -> str:
    return tag("section", tag("h2", text(title)), *content)


def _between(interval: Iterable[float]) -> str:
    low, high = map(number, interval)
    return "–" if low == "–" else f"{low} to {high}"
