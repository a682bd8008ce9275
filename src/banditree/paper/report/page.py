"""The page: what goes into its template, from top to bottom."""

from __future__ import annotations

import base64
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import banditree
from banditree.output.html import number
from banditree.output.pages import render
from banditree.output.words import count
from banditree.paper import beyond
from banditree.paper.claims import VERDICTS, Verdict
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.pictures import draw, drawn
from banditree.paper.report.cards import SIGNS, behind, checks, facts
from banditree.paper.report.grid import Grid
from banditree.paper.report.markdown import margin
from banditree.paper.report.numbers import numbers
from banditree.paper.report.theory import HORIZON, N_HIERARCHY, Theory
from banditree.paper.results import Results, stem

PAPER = (
    'Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021 '
    "(arXiv 2109.01656, doi 10.24963/ijcai.2021/305)"
)
PACKAGES = ("banditree", "numpy", "scipy", "scikit-learn", "matplotlib")
HOW_JUDGED = (
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


@dataclass(frozen=True)
class Run:
    """A figure as it was run: its picture, the words below it and the numbers behind it."""

    picture: Path
    caption: str
    problem: str = ""
    more: str = ""  # how many more settings than the problem's there are
    numbers: Grid | None = None


@dataclass(frozen=True)
class Shown:
    """A figure on the page, with the claims about it that are judged."""

    figure: Figure
    run: Run | None  # with the readings chosen here
    others: dict[str, Run] = field(default_factory=dict)  # {variant: its run}
    verdicts: Sequence[Verdict] = ()


def page(results: Results, verdicts: Sequence[Verdict], theory: Theory, *, seconds: float) -> str:
    """The whole page: no script, no request, nothing beside it. ``seconds`` is what claims and theory took."""
    judged = [verdict for verdict in verdicts if verdict.finding is not None]
    figures = [_shown(results, FIGURES[name], judged) for name in dict.fromkeys(name for name, _ in results.kept)]
    shown = {each.figure.name for each in figures}
    counts = Counter(verdict.verdict for verdict in judged)
    return render(
        "banditree.paper.report",
        "report.html",
        {"checks_of": checks, "data_uri": data_uri, "facts": facts, "margin": margin, "numbers_behind": behind},
        paper=PAPER,
        scope=_scope(len(judged), len(verdicts)),
        counts=[(verdict, counts[verdict]) for verdict in VERDICTS] if judged else [],
        signs=SIGNS,
        figures=figures,
        shown=shown,
        absent=[name for name in FIGURES if name not in shown],
        judged=judged,
        waiting=_waiting([verdict for verdict in verdicts if verdict.finding is None], shown),
        how_judged=HOW_JUDGED,
        theory=theory,
        about_theory=_about(theory),
        n_hierarchy=N_HIERARCHY,
        beyond=_beyond(results),
        **_theory(theory),
        **_made(results, seconds),
    )


def data_uri(path: Path) -> str:
    """A PNG file as an address that carries it."""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _scope(n_judged: int, n_claims: int) -> str:
    if n_judged == n_claims:
        return f"{count(n_claims, 'claim')} of its experiments and appendix, judged by computed statistics:"
    about = f"{n_judged} of {count(n_claims, 'claim')} of its experiments and appendix can be judged from these figures"
    return f"{about}{':' if n_judged else '.'}"


def _waiting(verdicts: Sequence[Verdict], shown: set[str]) -> str:
    """What else could be judged: claims about these figures by name, all others by number."""
    near = [verdict for verdict in verdicts if shown & set(verdict.claim.figures)]
    said = [f"“{verdict.claim.title}” is not judged: it needs runs of {verdict.missing} too." for verdict in near]
    if others := len(verdicts) - len(near):
        what = count(others, "claim is", "claims are")
        said.append(f"{what} about other figures; banditree reproduce without a name runs all of them.")
    return " ".join(said)


def _shown(results: Results, figure: Figure, judged: Sequence[Verdict]) -> Shown:
    variants = [variant for variant in figure.variants if (figure.name, variant) in results]
    runs = {variant: _run(results, figure, variant) for variant in variants}
    own = runs.pop(DEFAULT, None)
    return Shown(figure, own, runs, [verdict for verdict in judged if figure.name in verdict.claim.figures])


def _run(results: Results, figure: Figure, variant: str) -> Run:
    runs, how = results.runs(figure.name, variant), results.kept[figure.name, variant]
    path = results.out / stem(figure.name, variant)
    if not drawn(path):
        draw(figure, variant, runs, path)
    picture = path.parent / f"{path.name}.png"
    if not runs:
        return Run(picture, figure.caption)
    return Run(
        picture,
        f"{figure.caption} T = {figure.horizon:,}, {how.seeds} seeds, {how.seconds:.1f} s.",
        problem=next(iter(runs.values())).problem,
        more=f" and {len(runs) - 1} more settings" if len(runs) > 1 else "",
        numbers=numbers(figure.name, runs),
    )


@dataclass(frozen=True)
class Beyond:
    """The section on ATS: what was found in words, a table and a picture per figure."""

    said: str
    table: Grid
    pictures: dict[str, Path]
    captions: dict[str, str]


def _beyond(results: Results) -> Beyond | None:
    found = beyond.kept(results.out, results)
    if not found:
        return None
    rows = [row for name, runs in found.items() for row in beyond.compared(name, runs)]
    cells = [
        (
            row.figure,
            row.setting or "–",
            row.best,
            row.policy,
            *map(number, (row.best_regret, row.regret)),
            f"{row.ratio:.2f} ± {row.se:.2f}",
        )
        for row in rows
    ]
    columns = ("figure", "setting", "best of the paper's", "ATS", "regret of the best", "regret of ATS", "ratio ± se")
    return Beyond(
        f"{beyond.said(rows)} The runs of ATS took {beyond.seconds(results.out):,.0f} s.",
        Grid(columns, cells, "ATS beside the paper's algorithms", words=4),
        {name: beyond.draw(name, runs, results.out) for name, runs in found.items()},
        {name: beyond.FIGURES[name].title for name in found},
    )


def _about(theory: Theory) -> str:
    return (
        "The bounds are computed on the first instance of the defaults of figures 1a to 1e: N = 100, K = 10, A* = 10, "
        f"w* = 0.1, d = 0.1. TS and TSC ran on that instance up to T = {HORIZON:,} with {theory.seeds} seeds. Bounds "
        "multiply log T and leave out what grows more slowly, so the curves may cross them; it is the growth that "
        "they bound."
    )


def _theory(theory: Theory) -> dict[str, Grid]:
    bounds = [(where, what, number(value)) for where, what, value in theory.coefficients]
    growth = [(name, number(early), number(late), number(slope)) for name, early, late, slope in theory.growth]
    measured = ("policy", f"regret at {HORIZON // 10:,}", f"at {HORIZON:,}", "growth over log T")
    levels = [(str(depth), *map(number, forms)) for depth, *forms in theory.levels]
    return {
        "bounds": Grid(("from", "what", "number"), bounds, "Bounds", words=2),
        "growth": Grid(measured, growth, "Growth measured"),
        "levels": Grid(("depth L", "divergence", "Pinsker", "as printed"), levels, "Theorem 7"),
    }


def _made(results: Results, seconds: float) -> dict[str, Grid | str]:
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
    return {
        "took": took,
        "made": Grid(("figure", "variant", "seeds", "seconds", "engine", "workers"), runs, "Runs", words=2),
        "versions": Grid(("software", "version"), versions, "Versions", words=2),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
