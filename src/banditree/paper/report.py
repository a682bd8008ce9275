"""The report of a reproduction: figures, claims, theory, how it was made.

`write_report` writes report.html, claims.json and claims.md.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import groupby
from math import log
from pathlib import Path

import numpy as np

import banditree
from banditree import TS, TSC, plots, problems, theory
from banditree.base import words
from banditree.base.arrays import Floats
from banditree.base.document import (
    Badge,
    Bullets,
    Code,
    Columns,
    Document,
    Grid,
    Inline,
    Link,
    Note,
    Part,
    Picture,
    Quote,
    Section,
)
from banditree.base.files import write_whole
from banditree.base.words import UNKNOWN, count
from banditree.errors import InvalidValue
from banditree.paper.claim_table import CLAIMS, FAILS, HOLDS, OPEN, VERDICTS, Verdict, describe, judge, write_claims
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.pictures import draw, is_drawn
from banditree.paper.results import Results, load_results, stem
from banditree.report import html
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from banditree.tree import Tree

PAPER = (
    'Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021 '
    "(arXiv 2109.01656, doi 10.24963/ijcai.2021/305)"
)
PACKAGES = ("banditree", "numpy", "scipy", "scikit-learn", "matplotlib")
HOW_JUDGED = (
    "A claim is a row: in a figure, a statistic of a is below, or above, a margin times that of b. The difference has "
    "a standard error over seeds: policies meet the same instances, so it is paired by seed, and ratios and fits go by "
    "the jackknife. A claim holds, or does not hold, where the seeds show it with 99.73% confidence by Student's t "
    "(about three standard errors), and cannot be decided in between; more seeds decide more. Plus is the paper's "
    'side. A claim about instances counts instances in place of seeds, and "all" means that all seeds agree exactly.'
)
OURS = (
    "ATS, adaptive Thompson sampling, and LinATS where there are contexts, are not in the paper. They learn how far to "
    "trust the tree, so that there is no depth to choose, and meet the same instances as the paper's algorithms."
)
SIGNS = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}
KINDS = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}
HORIZON = 30_000  # of the theory part: ten times that of the figures, so that growth can be seen
N_HIERARCHY = 64  # arms of the tree on which Theorem 7 is computed
number = partial(words.number, digits=4)
table = partial(Grid, most=None)  # all rows, on a page


def write_report(
    out: str | Path, results: Results | None = None, verdicts: Sequence[Verdict] | None = None, *, jobs: int | None = -1
) -> Path:
    """Judge the claims, write ``report.html``, ``claims.json`` and ``claims.md`` to ``out``; return the page's path.

    By default ``results`` are those of the folder, and ``verdicts`` are computed from them. Simulations
    run on ``jobs`` workers.
    """
    started = time.perf_counter()
    folder = Path(out)
    results = load_results(folder) if results is None else results
    if not results.kept:
        raise InvalidValue(f"{folder} has no finished figure; run `banditree reproduce --out {folder}` first")
    verdicts = judge(results) if verdicts is None else verdicts
    write_claims(verdicts, folder)
    bounds = theory_section(results, jobs=jobs)
    document = Report(results, verdicts, bounds, seconds=time.perf_counter() - started).document()
    write_whole(folder / "report.html", [html.page(document).encode()])
    return folder / "report.html"


@dataclass(frozen=True)
class Report:
    """The results of a reproduction. ``seconds`` is the time that the claims and the theory took."""

    results: Results
    verdicts: Sequence[Verdict]
    theory: Section
    seconds: float

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.results.kept))

    def document(self) -> Document:
        """Return the whole page."""
        counts = Counter(verdict.verdict for verdict in self.verdicts)
        n_judged, claims = len(self.verdicts), count(len(CLAIMS), "claim")
        scope = f"{claims} of its experiments and appendix, judged by computed statistics:"
        if n_judged < len(CLAIMS):
            scope = f"{n_judged} of {claims} of its experiments and appendix can be judged from these figures"
            scope += ":" if n_judged else "."
        chips: list[Inline] = []
        for verdict in VERDICTS if n_judged else ():
            chips += [badge(verdict), f" {counts[verdict]}   "]
        parts: list[Part] = [PAPER, scope, *([tuple(chips)] if chips else [])]
        parts += [self._figures(), self._claims(), self.theory, self._made()]
        return Document("The paper, re-run", parts, has_contents=True)

    # Figures

    def _figures(self) -> Section:
        parts: list[Part] = [
            "Bars and bands are one standard deviation over seeds, as in the paper; the tables give the standard error "
            "too.",
            OURS,
        ]
        parts += [self._figure(FIGURES[name]) for name in self._names]
        absent = [name for name in FIGURES if name not in self._names]
        parts += [Note(f"Not run: {', '.join(absent)}.")] if absent else []
        return Section("Figures", parts, anchor="figures")

    def _figure(self, figure: Figure) -> Section:
        variants = [variant for variant in figure.variants if (figure.name, variant) in self.results]
        about = [verdict for verdict in self.verdicts if figure.name in verdict.claim.figures]
        claims: list[Part] = []
        if about:
            claims = [claims_grid(about, f"Claims of figure {figure.name}")]
        readings = Section("How the paper was read", [Bullets(figure.readings)], is_folded=True)
        parts: list[Part] = [*claims, readings]
        if DEFAULT in variants:
            numbers = self._numbers(figure, DEFAULT)
            folded = [Section("Numbers", numbers, is_folded=True)] if numbers else []
            parts = [self._picture(figure, DEFAULT), *claims, *folded, readings]
        for variant in variants:
            if variant != DEFAULT:
                title = f"Another reading: {figure.variants[variant]} ({variant})"
                other = [self._picture(figure, variant), *self._numbers(figure, variant)]
                parts.append(Section(title, other, is_folded=True))
        return Section(figure.title, parts, anchor=f"figure-{figure.name}", is_card=True)

    def _picture(self, figure: Figure, variant: str) -> Picture:
        runs, how = self.results.runs(figure.name, variant), self.results.kept[figure.name, variant]
        path = self.results.out / stem(figure.name, variant)
        if not is_drawn(path):
            draw(figure, variant, runs, path)
        caption = figure.caption
        if runs:
            caption += f" T = {figure.horizon:,}, {how.seeds} seeds, {how.seconds:.1f} s."
        return Picture((path.parent / f"{path.name}.png").read_bytes, caption, f"{figure.title}. {figure.caption}")

    def _numbers(self, figure: Figure, variant: str) -> list[Part]:
        runs = self.results.runs(figure.name, variant)
        if not runs:
            return []
        more = f" and {len(runs) - 1} more settings" if len(runs) > 1 else ""
        problem = Code(next(iter(runs.values())).problem)
        return [Note(("Problem: ", problem, more)), tabulate_figure(figure.name, runs)]

    # Claims

    def _claims(self) -> Section:
        """Return every sentence of the paper with the claims that it makes."""
        parts: list[Part] = [Section("How a claim is judged", [HOW_JUDGED], is_folded=True)]
        for quote, group in groupby(self.verdicts, key=lambda verdict: verdict.claim.quote):
            parts += [Quote(quote), claims_grid(list(group), quote)]
        if left := len(CLAIMS) - len(self.verdicts):
            what = count(left, "claim is", "claims are")
            parts.append(Note(f"{what} about other figures; banditree reproduce without a name runs all of them."))
        return Section("Claims", parts, anchor="claims")

    # The rest

    def _made(self) -> Section:
        versions = [(name, version) for name in PACKAGES if (version := installed_version(name))]
        versions += [("Python", platform.python_version()), ("engine", banditree.engine())]
        versions.append(("machine", platform.machine()))
        kept = self.results.kept.values()
        seconds = sum(how.seconds for how in kept)
        columns: Columns = {
            "figure": lambda how: how.figure,
            "variant": lambda how: how.variant,
            "seeds": lambda how: str(how.seeds or UNKNOWN),
            "seconds": lambda how: f"{how.seconds:.1f}",
            "engine": lambda how: how.engine,
            "workers": lambda how: str(how.jobs),
        }
        parts: list[Part] = [
            (
                "Everything can be run again: ",
                Code("banditree reproduce 2b"),
                ", with ",
                Code("--seeds 500"),
                " for more seeds and ",
                Code("--variant 1f:even"),
                " for another reading. Numbers depend on the seeds alone, not on the machine's cores or on what else "
                "is run.",
            ),
            f"The figures took {seconds:,.0f} s of wall time, the claims and the theory {self.seconds:,.0f} s: "
            f"{seconds + self.seconds:,.0f} s in all.",
            Grid.of(kept, columns, names=(0, 1, 4), label="Runs", most=None),
            Grid(("software", "version"), versions, names=(0, 1), label="Versions"),
        ]
        return Section("How it was made", parts, anchor="made")


def badge(verdict: str) -> Badge:
    """Show a verdict; the sign says it too, so that it never depends on the colour alone."""
    return Badge(verdict, SIGNS[verdict], KINDS[verdict])


def claims_grid(verdicts: Sequence[Verdict], label: str) -> Grid:
    """Return one row per claim."""
    columns: Columns = {
        "figure": lambda verdict: Link(verdict.claim.figure, f"figure-{verdict.claim.figure}"),
        "statistic": lambda verdict: verdict.claim.statistic,
        "claim": lambda verdict: f"{verdict.claim}",
        "a": lambda verdict: describe(verdict)[0],
        "b": lambda verdict: describe(verdict)[1],
        "standard errors": lambda verdict: describe(verdict)[2],
        "seeds": lambda verdict: describe(verdict)[3],
        "verdict": lambda verdict: badge(verdict.verdict),
    }
    return Grid.of(verdicts, columns, names=(0, 1, 2, 7), label=label, most=None)


def tabulate_figure(figure: str, runs: Mapping[str, Runs]) -> Grid:
    """Return regret at T over seeds: one row per policy, or one per setting if there are several."""
    label = f"Numbers of figure {figure}"
    if list(runs) == [""]:
        columns: tuple[str, ...] = ("policy", "regret at T", "sd", "se", "belief draws per step", "µs per step")
        rows = [
            (row.policy, *map(number, (row.mean, row.sd, row.se, row.evaluations, row.microseconds)))
            for row in runs[""].table()
        ]
        return table(columns, rows, label=label)
    if all("depth=" in setting for setting in runs):
        return _tabulate_depths(label, runs)
    policies = next(iter(runs.values())).policies
    columns = ("setting", *(f"{name} {what}" for name in policies for what in ("regret at T", "sd", "se")))
    rows = []
    for setting, of_setting in runs.items():
        by_policy = {row.policy: row for row in of_setting.table()}
        cells = (number(by_policy[name][what]) for name in policies for what in ("mean", "sd", "se"))
        rows.append((setting.replace("=", " = "), *cells))
    return table(columns, rows, label=label)


def _tabulate_depths(label: str, runs: Mapping[str, Runs]) -> Grid:
    """Return mean regret and its standard error: one row per number of arms, one column per depth, and ATS."""
    cells: dict[str, dict[str, str]] = {}
    for setting, of_setting in runs.items():
        n_arms, depth = (part.partition("=")[2] for part in setting.split())
        for row in of_setting.table():
            column = f"L = {depth}" if row.policy == "HTS" else str(row.policy)
            cells.setdefault(n_arms, {})[column] = f"{number(row.mean)} ± {number(row.se)}"
    columns = list(cells[n_arms])  # the last and largest N has every depth
    rows = [(n, *(by_column.get(column, "") for column in columns)) for n, by_column in cells.items()]
    return table(("N", *columns), rows, label=label)


def installed_version(name: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


# ---------------------------------------------------------------- theory: bounds, and regret measured beside them


def theory_section(results: Results, *, jobs: int | None = -1) -> Section:
    """Compute the bounds on one instance of figures 1a to 1e, and the regret of TS and TSC on it.

    There are as many seeds as figure 1a has, ten if that was not run.
    """
    drawn = problems.strong_dominance().instance(0)
    assert drawn.means is not None
    seeds = results.kept["1a", DEFAULT].seeds if "1a" in results else 10
    times = np.unique(np.geomspace(1, HORIZON, 80).astype(int)).tolist()
    runs = simulate(
        [TS, TSC],
        problems.bernoulli(drawn.tree, drawn.means),
        horizon=HORIZON,
        seeds=seeds,
        rng=0,
        checkpoints=[*times, HORIZON // 10],
        jobs=jobs,
        progress=False,
    )
    title = "TS and TSC on one instance, and the bounds"
    axes = plots.regret(runs, bounds=True, log_time=True, ax=plots.sheet(), title=title)
    picture, _ = plots.save(axes, results.out / "theory")
    about = (
        "The bounds are computed on the first instance of the defaults of figures 1a to 1e: N = 100, K = 10, A* = 10, "
        f"w* = 0.1, d = 0.1. TS and TSC ran on that instance up to T = {HORIZON:,} with {seeds} seeds. Bounds multiply "
        "log T and leave out terms that grow more slowly, so the curves may cross them; they bound the growth."
    )
    alt = "Regret of TS and TSC over time on one instance, with the bounds of Theorems 3 and 5 and of Lai and Robbins"
    level = f"The balanced binary tree of figure 1f with N = {N_HIERARCHY}: the bound on regret of HTS over log T."
    parts: list[Part] = [
        about,
        Picture(picture.read_bytes, "Regret on a logarithmic time axis, and the bounds.", alt),
        _bounds(drawn.tree, drawn.means),
        Section("Growth measured", [_growth(runs)]),
        Section("Theorem 7, level by level", [level, _levels()]),
    ]
    return Section("Theory", parts, anchor="theory")


def _bounds(tree: Tree, means: Floats) -> Grid:
    quality, plays = theory.quality(tree, means), theory.cluster_plays(tree, means)
    upper = theory.tsc_minimax(tree, means, horizon=HORIZON)
    rows = [
        ("definition", "width of the best cluster, w*", quality.width),
        ("definition", "least distance to it, d", min(quality.distance.values())),
        ("definition", "mean of w*/d_C, γ", quality.gamma),
        ("Theorem 1", "plays of an arm by TS, over log T + log log T, at most", max(theory.arm_plays(means).values())),
        ("Theorem 2", "plays of a cluster by TSC, over log T + log log T", max(plays.values())),
        ("Theorem 3", "regret of TSC over log T, at most", theory.tsc_upper(tree, means)),
        ("Theorem 3", "... after Pinsker's inequality", theory.tsc_upper(tree, means, form="pinsker")),
        ("Theorem 4", f"√((A* + K(1 + γ)) T log T) at T = {HORIZON:,}", upper),
        ("Theorem 5", "regret of any good policy over log T, at least", theory.lower(tree, means)),
        ("Theorem 6", f"√((A* + K) T) at T = {HORIZON:,}", theory.minimax_lower(tree, means, horizon=HORIZON)),
        ("Lai and Robbins", "regret of TS over log T", theory.lai_robbins(means)),
    ]
    return Grid(
        ("from", "what", "number"),
        [(*what, words.number(value)) for *what, value in rows],
        names=(0, 1),
        label="Bounds",
    )


def _levels() -> Grid:
    """Compute the bound of Theorem 7 for every depth, in its three forms."""
    instance = problems.hierarchical_dominance(N_HIERARCHY).instance(0)
    assert instance.means is not None
    upper = partial(theory.hts_upper, instance.tree, instance.means)
    rows = [
        (str(depth), *(words.number(upper(depth=depth, form=form)) for form in ("kl", "pinsker", "printed")))
        for depth in range(instance.tree.depth + 1)
    ]
    return Grid(("depth L", "divergence", "Pinsker", "as printed"), rows, label="Theorem 7")


def _growth(runs: Runs) -> Grid:
    """Measure the growth of regret from T/10 to T."""
    before = int(np.flatnonzero(runs.times == HORIZON // 10)[0])
    rows = []
    for name, regret in runs.regret.items():
        early, late = float(regret[:, before].mean()), float(regret[:, -1].mean())
        rows.append((name, *map(words.number, (early, late, (late - early) / log(10)))))
    columns = ("policy", f"regret at {HORIZON // 10:,}", f"at {HORIZON:,}", "growth over log T")
    return Grid(columns, rows, label="Growth measured")
