"""Fill in the template of the page, from top to bottom."""

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
from banditree.paper import beyond
from banditree.paper.claims import VERDICTS, Verdict
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.pictures import draw, is_drawn
from banditree.paper.report.cards import SIGNS, behind, checks, facts
from banditree.paper.report.markdown import margin
from banditree.paper.report.numbers import Grid, numbers
from banditree.paper.report.theory import HORIZON, N_HIERARCHY, Theory
from banditree.paper.results import Results, stem
from banditree.report.words import count

PAPER = (
    'Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021 '
    "(arXiv 2109.01656, doi 10.24963/ijcai.2021/305)"
)
PACKAGES = ("banditree", "numpy", "scipy", "scikit-learn", "matplotlib")
HOW_JUDGED = (
    "Each claim is broken into checks with thresholds that are fixed in the code. Thresholds were set before the "
    "data they judge were seen; after a first look at the data some checks and claims were added, split or made "
    "stricter, and docs/paper.md lists them. A check compares one number, with its standard error over seeds, "
    "with its threshold; it passes or fails at 99.73% confidence by Student's t (about three standard errors), "
    "and is open in between. A claim holds when all its checks pass, holds in part when some fail and a part of "
    "it is shown, does not hold when some fail and no part is shown, and otherwise cannot be decided with these "
    "seeds. Policies meet the same instances, so differences are paired by seed. The table of checks says which are a "
    "part of the claim by themselves. The margin is that of the weakest check, in standard errors; plus is the "
    "paper's side."
)


@dataclass(frozen=True)
class ShownRun:
    """A figure as it was run: its picture, the caption and the numbers."""

    picture: Path
    caption: str
    problem: str = ""
    more: str = ""  # the number of other settings, in words
    numbers: Grid | None = None


@dataclass(frozen=True)
class ShownFigure:
    """A figure on the page, with the judged claims about it."""

    figure: Figure
    run: ShownRun | None  # with the default readings
    others: dict[str, ShownRun] = field(default_factory=dict)  # {variant: its run}
    verdicts: Sequence[Verdict] = ()


def page(results: Results, verdicts: Sequence[Verdict], theory: Theory, *, seconds: float) -> str:
    """Return the page: one file without scripts or requests. ``seconds`` is the time that claims and theory took."""
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
        **_made(results, seconds),
    )


def data_uri(path: Path) -> str:
    """Return a PNG file as a data URI."""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _scope(n_judged: int, n_claims: int) -> str:
    if n_judged == n_claims:
        return f"{count(n_claims, 'claim')} of its experiments and appendix, judged by computed statistics:"
    about = f"{n_judged} of {count(n_claims, 'claim')} of its experiments and appendix can be judged from these figures"
    return f"{about}{':' if n_judged else '.'}"


def _waiting(verdicts: Sequence[Verdict], shown: set[str]) -> str:
    """Say what else could be judged: claims about these figures by name, the others by number."""
    near = [verdict for verdict in verdicts if shown & set(verdict.claim.figures)]
    said = [f"“{verdict.claim.title}” is not judged: it needs runs of {verdict.missing} too." for verdict in near]
    if others := len(verdicts) - len(near):
        what = count(others, "claim is", "claims are")
        said.append(f"{what} about other figures; banditree reproduce without a name runs all of them.")
    return " ".join(said)


def _shown(results: Results, figure: Figure, judged: Sequence[Verdict]) -> ShownFigure:
    variants = [variant for variant in figure.variants if (figure.name, variant) in results]
    runs = {variant: _run(results, figure, variant) for variant in variants}
    default = runs.pop(DEFAULT, None)
    return ShownFigure(figure, default, runs, [each for each in judged if figure.name in each.claim.figures])


def _run(results: Results, figure: Figure, variant: str) -> ShownRun:
    runs, how = results.runs(figure.name, variant), results.kept[figure.name, variant]
    path = results.out / stem(figure.name, variant)
    if not is_drawn(path):
        draw(figure, variant, runs, path)
    picture = path.parent / f"{path.name}.png"
    if not runs:
        return ShownRun(picture, figure.caption)
    return ShownRun(
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
    found = beyond.load_joined(results.out, results)
    if not found:
        return None
    rows = [row for name, runs in found.items() for row in beyond.compare(name, runs)]
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
        f"{beyond.summarise(rows)} The runs of ATS took {beyond.total_seconds(results.out):,.0f} s.",
        Grid(columns, cells, "ATS beside the paper's algorithms", words=4),
        {name: beyond.draw(name, runs, results.out) for name, runs in found.items()},
        {name: beyond.FIGURES[name].title for name in found},
    )


def _about(theory: Theory) -> str:
    return (
        "The bounds are computed on the first instance of the defaults of figures 1a to 1e: N = 100, K = 10, A* = 10, "
        f"w* = 0.1, d = 0.1. TS and TSC ran on that instance up to T = {HORIZON:,} with {theory.seeds} seeds. Bounds "
        "multiply log T and leave out terms that grow more slowly, so the curves may cross them; they bound the growth."
    )


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
