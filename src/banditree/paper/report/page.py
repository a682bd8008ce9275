"""The page, from top to bottom."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib import metadata, resources

import banditree
from banditree.output.html import number, picture, table, tag, text
from banditree.paper.claims import NOT_JUDGED, VERDICTS, Verdict
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.pictures import draw, drawn
from banditree.paper.report.cards import badge, card, overview
from banditree.paper.report.numbers import numbers
from banditree.paper.report.theory import HORIZON, N_HIERARCHY, Theory
from banditree.paper.results import Results, stem

PAPER = 'Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021'
PACKAGES = ("banditree", "numpy", "scipy", "scikit-learn", "matplotlib")


def page(results: Results, verdicts: Sequence[Verdict], theory: Theory, *, seconds: float) -> str:
    """The whole page: no script, no request, nothing beside it. ``seconds`` is what claims and theory took."""
    style = resources.files("banditree.paper.report").joinpath("style.css").read_text(encoding="utf-8")
    body = (
        _header(verdicts),
        _claims(verdicts, {name for name, _ in results.kept}),
        _figures(results),
        _theory(theory),
        _made(results, seconds),
    )
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="icon" href="data:,">'
        f"<title>The paper, re-run</title><style>{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{tag("main", *body)}</body></html>\n'


def _header(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.verdict for verdict in verdicts)
    chips = (
        tag("li", badge(verdict), tag("b", str(counts[verdict])))
        for verdict in (*VERDICTS, NOT_JUDGED)
        if verdict in VERDICTS or counts[verdict]
    )
    links = (("claims", "Claims"), ("figures", "Figures"), ("theory", "Theory"), ("made", "How it was made"))
    return tag(
        "header",
        tag("h1", "The paper, re-run"),
        tag("p", text(PAPER), class_="lead"),
        tag("p", f"{len(verdicts)} claims of its experiments and appendix, judged by computed statistics:"),
        tag("ul", *chips, class_="chips"),
        tag("nav", *(tag("a", text(name), href=f"#{target}") for target, name in links), aria_label="Sections"),
    )


def _claims(verdicts: Sequence[Verdict], shown: set[str]) -> str:
    how = (
        "Each claim is broken into checks with thresholds that are fixed in the code. Thresholds were set before the "
        "data they judge were seen; after a first look at the data some checks and claims were added, split or made "
        "stricter, and docs/paper.md lists them. A check holds one number, with its standard error over seeds, "
        "against its threshold; it passes or fails at 99.73% confidence by Student's t (about three standard errors), "
        "and is open in between. A claim holds when all its checks pass, holds in part when some fail and a part of "
        "it is shown, does not hold when some fail and no part is shown, and otherwise cannot be decided with these "
        "seeds. Policies meet the same instances, so differences are paired by seed. What is a part of a claim by "
        "itself stands beside each check. The margin is that of the weakest check, in standard errors; plus is the "
        "paper's side."
    )
    cards = (card(verdict, shown) for verdict in verdicts)
    return tag("section", tag("h2", "Claims"), tag("p", text(how)), overview(verdicts), *cards, id="claims")


def _figures(results: Results) -> str:
    shown = dict.fromkeys(name for name, _ in results.kept)
    absent = [name for name in FIGURES if name not in shown]
    parts = [_figure(results, FIGURES[name]) for name in shown]
    if absent:
        parts.append(tag("p", f"Not run: {text(', '.join(absent))}.", class_="note"))
    intro = (
        "Bars and bands are one standard deviation over seeds, as in the paper; the tables give the standard error too."
    )
    return tag("section", tag("h2", "Figures"), tag("p", intro), *parts, id="figures")


def _figure(results: Results, figure: Figure) -> str:
    variants = [variant for variant in figure.variants if (figure.name, variant) in results]
    others = [
        tag(
            "details",
            tag("summary", f"Another reading: {text(figure.variants[variant])} ({text(variant)})"),
            _shown(results, figure, variant),
        )
        for variant in variants
        if variant != DEFAULT
    ]
    own = [_shown(results, figure, DEFAULT)] if DEFAULT in variants else []
    readings = tag("ul", *(tag("li", text(reading)) for reading in figure.readings), class_="readings")
    return tag(
        "article", tag("h3", text(figure.title)), *own, tag("h4", "Readings chosen"), readings, *others,
        id=f"figure-{figure.name}", class_="figure",
    )  # fmt: skip


def _shown(results: Results, figure: Figure, variant: str) -> str:
    runs, how = results.runs(figure.name, variant), results.kept[figure.name, variant]
    path = results.out / stem(figure.name, variant)
    if not drawn(path):
        draw(figure, variant, runs, path)
    settings = f"T = {figure.horizon:,}, {how.seeds} seeds, {how.seconds:.1f} s." if runs else ""
    alt = f"{figure.title}. {figure.caption}"
    caption = tag("figcaption", text(f"{figure.caption} {settings}".strip()))
    shown = tag("figure", picture(path.parent / f"{path.name}.png", alt=alt), caption)
    if not runs:
        return shown
    problem = next(iter(runs.values())).problem
    several = f" and {len(runs) - 1} more settings" if len(runs) > 1 else ""
    about = tag("p", "Problem: ", tag("code", text(problem)), text(several), class_="note")
    return shown + about + numbers(figure.name, runs)


def _theory(theory: Theory) -> str:
    alt = "Regret of TS and TSC over time on one instance, with the bounds of Theorems 3 and 5 and of Lai and Robbins."
    about = (
        "The bounds are computed on the first instance of the defaults of figures 1a to 1e: N = 100, K = 10, A* = 10, "
        f"w* = 0.1, d = 0.1. TS and TSC ran on that instance up to T = {HORIZON:,} with {theory.seeds} seeds. Bounds "
        "multiply log T and leave out what grows more slowly, so the curves may cross them; it is the growth that "
        "they bound."
    )
    rows = [(where, what, number(value)) for where, what, value in theory.coefficients]
    growth = [(name, number(early), number(late), number(slope)) for name, early, late, slope in theory.growth]
    levels = [(str(depth), *map(number, forms)) for depth, *forms in theory.levels]
    return tag(
        "section",
        tag("h2", "Theory"),
        tag("p", text(about)),
        tag(
            "figure",
            picture(theory.picture, alt=alt),
            tag("figcaption", "Regret on a logarithmic time axis, and the bounds."),
        ),
        table(("from", "what", "number"), rows, label="Bounds", words=2),
        tag("h3", "Growth measured"),
        table(
            ("policy", f"regret at {HORIZON // 10:,}", f"at {HORIZON:,}", "growth over log T"),
            growth,
            label="Growth measured",
        ),
        tag("h3", "Theorem 7, level by level"),
        tag(
            "p", f"The balanced binary tree of figure 1f with N = {N_HIERARCHY}: the bound on regret of HTS over log T."
        ),
        table(("depth L", "divergence", "Pinsker", "as printed"), levels, label="Theorem 7"),
        id="theory",
    )


def _made(results: Results, seconds: float) -> str:
    versions = [(name, version) for name in PACKAGES if (version := _version(name))]
    versions += [("Python", platform.python_version()), ("engine", banditree.engine()), ("machine", platform.machine())]
    runs = [
        (how.figure, how.variant, str(how.seeds or "–"), f"{how.seconds:.1f}", how.engine, str(how.jobs))
        for how in results.kept.values()
    ]
    figures = sum(how.seconds for how in results.kept.values())
    took = (
        f"The figures took {figures:,.0f} s of wall time, the claims and the theory {seconds:,.0f} s: "
        f"{figures + seconds:,.0f} s in all."
    )
    again = (
        "Every line can be run again: `banditree reproduce 2b`, with `--seeds 500` for more seeds and `--variant "
        "1f:even` for another reading. Numbers depend on the seeds alone, not on the machine's cores or on what else "
        "is run."
    )
    return tag(
        "section",
        tag("h2", "How it was made"),
        tag("p", _code(again)),
        tag("p", took),
        table(("figure", "variant", "seeds", "seconds", "engine", "workers"), runs, label="Runs", words=2),
        table(("software", "version"), versions, label="Versions", words=2),
        id="made",
    )


def _code(words: str) -> str:
    """Text with `code` in it."""
    parts = words.split("`")
    return "".join(tag("code", text(part)) if i % 2 else text(part) for i, part in enumerate(parts))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
