"""Make a self-contained web page of evaluations, with pictures: no scripts, no external fonts, no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditree import plots
from banditree.ope.evaluation import Estimate, Evaluation
from banditree.ope.verdict import Judgement
from banditree.output.html import number
from banditree.output.pages import render
from banditree.report.words import count

MISSING = 20  # arms named, at most


class Picture(NamedTuple):
    """A picture with its caption."""

    data: str  # SVG in base64
    caption: str
    alt: str


class Section(NamedTuple):
    """A part of the page: a table and pictures."""

    title: str
    sentence: str
    label: str  # of the table, for screen readers
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: Sequence[Picture]


def page(
    evaluations: Mapping[str, Evaluation],
    verdict: str,
    *,
    title: str,
    judgements: Mapping[str, Judgement] | None = None,
) -> str:
    """Make the page: the verdict, all policies next to the logging policy, and pictures for each of them."""
    judged = judgements or {}
    sections = [_one(name, found, judged.get(name)) for name, found in evaluations.items()]
    if len(evaluations) > 1:
        sections.insert(0, _policies(evaluations, judged))
    return render(
        "banditree.ope",
        "evaluation.html",
        title=title,
        rows=count(next(iter(evaluations.values())).rows, "row"),
        verdict=verdict,
        sections=sections,
        notes=list(dict.fromkeys(note for found in evaluations.values() for note in found.notes)),
    )


def _policies(evaluations: Mapping[str, Evaluation], judgements: Mapping[str, Judgement]) -> Section:
    """Show all policies next to the logging policy, by their trusted estimates."""
    best_first = sorted(evaluations, key=lambda name: -evaluations[name].trusted.value)
    trusted = {name: evaluations[name].trusted for name in best_first}
    logging = evaluations[best_first[0]].logging
    answers = {name: judgements.get(name, evaluations[name]).answer for name in best_first}
    rows = [
        (name, answers[name], number(e.value), _between(e.interval), number(e.ess), e.estimator.label)
        for name, e in trusted.items()
    ]
    rows.append(("logging policy", "", number(logging.value), _between(logging.interval), number(logging.ess), ""))
    columns = ("policy", "against the logging policy", "value", "95% interval", "effective rows", "by")
    drawn = _intervals(list(trusted), list(trusted.values()), logging, height=0.35)
    caption = (
        "What each policy would have earned per decision. The line and its band show what the logging policy earned."
    )
    pictures = [_picture(drawn, caption, alt="Intervals of all policies")]
    return Section("Policies", "", "policies", columns, rows, pictures)


def _one(name: str, found: Evaluation, judgement: Judgement | None) -> Section:
    """Show one target: its estimates, its weights and its support."""
    rows = [
        (e.estimator.name, e.estimator.setting, number(e.value), number(e.se), _between(e.interval), number(e.ess))
        for e in found
    ]
    columns = ("estimator", "setting", "value", "standard error", "95% interval", "effective rows")
    labels, faint = [e.estimator.label for e in found], [not e.estimator.valid_interval for e in found]
    drawn = _intervals(labels, found.estimates, found.logging, height=0.3, faint=faint)
    inputs = found.inputs
    shown = np.bincount(inputs.places, minlength=inputs.tree.n_arms) / found.rows
    names = [str(arm) for arm in inputs.tree.arms]
    worth = number(found.trusted.ess)
    weigh = f"Largest weight {number(found.largest_weight)}; the rows are worth {worth} of equal weight."
    never = f"{100 * found.unsupported:.3g}% of the target is on arms that the log never shows"
    if found.missing:
        never += ": " + ", ".join(map(str, found.missing[:MISSING])) + (", ..." if len(found.missing) > MISSING else "")
    every = ["All estimates of its reward per decision.", *(f"Open circles: {each}." for each in found.caveat)]
    pictures = [
        _picture(drawn, " ".join(every), alt=f"Intervals of the estimates for {name}"),
        _picture(plots.weights(inputs.weights, ax=plots.sheet()), weigh, alt=f"How the weights of {name} add up"),
        _picture(
            plots.support(names, inputs.target.mean(), shown, ax=plots.sheet()), f"{never}.", alt=f"Support of {name}"
        ),
    ]
    sentence = judgement.sentence if judgement else ""
    return Section(name, sentence, f"estimates for {name}", columns, rows, pictures)


def _intervals(
    names: Sequence[str], estimates: Sequence[Estimate], logging: Estimate, *, height: float, **options: Any
) -> Any:
    """Draw the intervals of estimates below each other, with what the logging policy earned as a band."""
    values, errors = [e.value for e in estimates], [e.se for e in estimates]
    ax = plots.sheet(height=1.2 + height * len(names))
    return plots.intervals(names, values, errors, reference=(logging.value, logging.se), ax=ax, **options)


def _picture(ax: Any, caption: str, *, alt: str) -> Picture:
    return Picture(b64encode(plots.data(ax, "svg")).decode(), caption, alt)


def _between(interval: Iterable[float]) -> str:
    low, high = map(number, interval)
    return "–" if low == "–" else f"{low} to {high}"
