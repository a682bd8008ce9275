"""The report of a reproduction: figures, claims, theory, what goes beyond the paper, how it was made.

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
from math import isinf, isnan, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import banditree
from banditree import TS, TSC, plots, problems, theory
from banditree.base import words
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
from banditree.paper import beyond
from banditree.paper.claims import Finding, Verdict, judge, write_claims
from banditree.paper.claims.checks import FAILS, HOLDS, NOT_JUDGED, OPEN, PART, VERDICTS, needed_errors
from banditree.paper.claims.claim import parameter
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
    "Each claim is broken into checks with thresholds that are fixed in the code. Thresholds were set before the "
    "data they judge were seen; after a first look at the data some checks and claims were added, split or made "
    "stricter, and docs/notes/claims.md lists them. A check compares one number, with its standard error over seeds, "
    "with its threshold; it passes or fails at 99.73% confidence by Student's t (about three standard errors), "
    "and is open in between. A claim holds when all its checks pass, holds in part when some fail and a part of "
    "it is shown, does not hold when some fail and no part is shown, and otherwise cannot be decided with these "
    "seeds. Policies meet the same instances, so differences are paired by seed. The table of checks says which are a "
    "part of the claim by themselves. The margin is that of the weakest check, in standard errors; plus is the "
    "paper's side."
)
BEYOND = (
    "ATS, adaptive Thompson sampling, is not in the paper. It learns how far to trust the tree, so that there is no "
    "depth to choose. Here it meets the instances of every figure, with the same seeds as the paper's algorithms; it "
    "uses the whole tree, where they are told how much of it to use. Where there are contexts it is LinATS, its twin "
    "that takes them."
)
SIGNS = {HOLDS: "✓", PART: "◐", FAILS: "✗", OPEN: "?", NOT_JUDGED: UNKNOWN}
KINDS = {HOLDS: "holds", PART: "part", FAILS: "fails", OPEN: "open", NOT_JUDGED: "none"}
HORIZON = 30_000  # of the theory part: ten times that of the figures, so that growth can be seen
N_HIERARCHY = 64  # arms of the tree on which Theorem 7 is computed
number = partial(words.number, digits=4)
table = partial(Grid, most=None)  # all rows, on a page


def write_report(
    out: str | Path, results: Results | None = None, verdicts: Sequence[Verdict] | None = None, *, jobs: int | None = -1
) -> Path:
    """Judge the claims, write ``report.html``, ``claims.json`` and ``claims.md`` to ``out``; return the page's path.

    By default ``results`` are those of the folder, and ``verdicts`` are computed from them. What has to be simulated
    runs on ``jobs`` workers.
    """
    started = time.perf_counter()
    folder = Path(out)
    results = load_results(folder) if results is None else results
    if not results.kept:
        raise InvalidValue(f"{folder} has no finished figure; run `banditree reproduce --out {folder}` first")
    verdicts = judge(results, jobs=jobs) if verdicts is None else verdicts
    write_claims(list(verdicts), folder)
    write_whole(folder / "claims.md", [claims_table(verdicts).encode()])
    bounds = theory_section(results, jobs=jobs)
    document = Report(results, verdicts, bounds, seconds=time.perf_counter() - started).document()
    write_whole(folder / "report.html", [html.page(document).encode()])
    return folder / "report.html"


@dataclass(frozen=True)
class Report:
    """What a reproduction found. ``seconds`` is the time that the claims and the theory took."""

    results: Results
    verdicts: Sequence[Verdict]
    theory: Section
    seconds: float

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.results.kept))

    @property
    def _judged(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.finding is not None]

    def document(self) -> Document:
        """Return the whole page."""
        counts = Counter(verdict.verdict for verdict in self._judged)
        n_judged, claims = len(self._judged), count(len(self.verdicts), "claim")
        scope = f"{claims} of its experiments and appendix, judged by computed statistics:"
        if n_judged < len(self.verdicts):
            scope = f"{n_judged} of {claims} of its experiments and appendix can be judged from these figures"
            scope += ":" if n_judged else "."
        chips: list[Inline] = []
        for verdict in VERDICTS if n_judged else ():
            chips += [badge(verdict), f" {counts[verdict]}   "]
        parts: list[Part] = [PAPER, scope, *([tuple(chips)] if chips else [])]
        parts += [self._figures(), self._claims(), self.theory, *self._beyond(), self._made()]
        return Document("The paper, re-run", parts, has_contents=True)

    # Figures

    def _figures(self) -> Section:
        parts: list[Part] = [
            "Bars and bands are one standard deviation over seeds, as in the paper; the tables give the standard error "
            "too."
        ]
        parts += [self._figure(FIGURES[name]) for name in self._names]
        absent = [name for name in FIGURES if name not in self._names]
        parts += [Note(f"Not run: {', '.join(absent)}.")] if absent else []
        return Section("Figures", parts, anchor="figures")

    def _figure(self, figure: Figure) -> Section:
        variants = [variant for variant in figure.variants if (figure.name, variant) in self.results]
        about = [verdict for verdict in self._judged if figure.name in verdict.claim.figures]
        claims = [(badge(verdict.verdict), " ", Link(verdict.claim.title, f"claim-{verdict.id}")) for verdict in about]
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
        columns: Columns = {
            "claim": lambda verdict: Link(verdict.claim.title, f"claim-{verdict.id}"),
            "verdict": lambda verdict: badge(verdict.verdict),
            "margin": lambda verdict: margin(verdict.margin),
            "figures": lambda verdict: ", ".join(verdict.claim.figures),
        }
        parts: list[Part] = []
        if self._judged:
            parts.append(Grid.of(self._judged, columns, names=(0, 1, 3), label="All claims", most=None))
        waiting = self._describe_missing()
        parts += [Note(waiting)] if waiting else []
        parts.append(Section("How a claim is judged", [HOW_JUDGED], is_folded=True))
        return Section("Claims", [*parts, *map(self._card, self._judged)], anchor="claims")

    def _describe_missing(self) -> str:
        """Say what else could be judged: claims about these figures by name, the others by number."""
        verdicts = [verdict for verdict in self.verdicts if verdict.finding is None]
        near = [verdict for verdict in verdicts if set(self._names) & set(verdict.claim.figures)]
        lines = [f"“{verdict.claim.title}” is not judged: it needs runs of {verdict.missing} too." for verdict in near]
        if others := len(verdicts) - len(near):
            what = count(others, "claim is", "claims are")
            lines.append(f"{what} about other figures; banditree reproduce without a name runs all of them.")
        return " ".join(lines)

    def _card(self, verdict: Verdict) -> Section:
        claim, finding = verdict.claim, verdict.finding
        assert finding is not None
        figures: list[Inline] = ["Figure " if len(claim.figures) == 1 else "Figures "]
        for i, name in enumerate(claim.figures):
            figures += [", "] if i else []
            figures.append(Link(name, f"figure-{name}") if name in self._names else name)
        parts: list[Part] = [verdict.sentence, Quote(claim.quote, tuple(figures)), Note(describe_margin(verdict))]
        for name, other in verdict.variants.items():
            differs = "differs: " if other.verdict != finding.verdict else ""
            words = f" {differs}{other.sentence} Margin {margin(other.margin)}."
            parts.append((f"Reading {name!r}: ", badge(other.verdict), words))
        numbers = [(name, number(value)) for name, value in finding.numbers.items()]
        details: list[Part] = [
            claim.statistic,
            tabulate_checks(finding),
            Grid(("number", "value"), numbers, label="Numbers"),
            Note(("In the files it is called ", Code(claim.id), ".")),
        ]
        parts.append(Section("What decides, and the numbers", details, is_folded=True))
        return Section(claim.title, parts, anchor=f"claim-{claim.id}", badge=badge(verdict.verdict), is_card=True)

    # The rest

    def _beyond(self) -> list[Section]:
        ours = load_results(self.results.out / beyond.FOLDER)
        joined = beyond.join_figures(self.results, ours)
        if not joined:
            return []
        seconds = sum(how.seconds for how in ours.kept.values())
        comparisons = [row for name, runs in joined.items() for row in beyond.compare(name, runs)]
        columns: Columns = {
            "figure": lambda row: row.figure,
            "setting": lambda row: row.setting or UNKNOWN,
            "best of the paper's": lambda row: row.best,
            "ours": lambda row: row.policy,
            "its regret": lambda row: number(row.best_regret),
            "regret of ours": lambda row: number(row.regret),
            "ratio ± se": lambda row: f"{row.ratio:.2f} ± {row.se:.2f}",
        }
        label = "ATS beside the paper's algorithms"
        numbers = Grid.of(comparisons, columns, names=range(4), label=label, most=None)
        parts: list[Part] = [
            BEYOND,
            f"{beyond.summarise(comparisons)} The runs of ATS took {seconds:,.0f} s. "
            "The best of the paper's algorithms is chosen for each setting by these same seeds, which favours it.",
        ]
        for name, runs in joined.items():
            title = beyond.FIGURES[name].title
            drawn = beyond.draw(name, runs, self.results.out)
            parts.append(Picture(drawn.read_bytes, Link(title, f"figure-{name}"), title))
        parts.append(Section("Numbers", [numbers], is_folded=True))
        return [Section("Beyond the paper", parts, anchor="beyond")]

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


def describe_margin(verdict: Verdict) -> str:
    """Say how far the weakest check is from its threshold, and what that is based on."""
    finding = verdict.finding
    assert finding is not None
    if isinf(finding.margin):
        lines = ["Decided by counting"]
    else:
        side = "the paper's side" if finding.margin >= 0 else "the other side"
        lines = [
            f"The weakest check is {abs(finding.margin):.1f} standard errors on {side} of its threshold, where "
            f"{needed_errors(finding.seeds):.1f} decide"
        ]
    lines += [f"{finding.seeds} seeds", f"T = {finding.horizon:,}"]
    if verdict.half is not None:
        lines.append(f"at half of T it {'also ' if verdict.half == verdict.verdict else ''}{verdict.half}")
    return "; ".join(lines) + "."


def tabulate_checks(finding: Finding) -> Grid:
    """Return one row per check."""
    columns: Columns = {
        "check": lambda check: check.what,
        "result": lambda check: {"yes": "passes", "no": "fails", "open": "open"}[check.result],
        "passes when": lambda check: "shown" if check.proof else "not refuted",
        "a part by itself": lambda check: "yes" if check.core else "no",
        "number ± se": lambda check: f"{number(check.estimate.value)} ± {number(check.estimate.se)}",
        "threshold": lambda check: f"{'>' if check.above else '<'} {number(check.threshold)}",
        "margin": lambda check: margin(check.margin),
    }
    return Grid.of(finding.checks, columns, names=range(4), label="Checks", most=None)


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
    """Return mean regret and its standard error: one row per number of arms, one column per depth."""
    cells: dict[int, dict[int, str]] = {}
    for setting, of_setting in runs.items():
        row = of_setting.table()[0]
        n_arms, depth = int(parameter(setting, "n_arms")), int(parameter(setting, "depth"))
        cells.setdefault(n_arms, {})[depth] = f"{number(row.mean)} ± {number(row.se)}"
    depths = range(max(max(by_depth) for by_depth in cells.values()) + 1)
    rows = [(str(n), *(by_depth.get(depth, "") for depth in depths)) for n, by_depth in cells.items()]
    return table(("N", *(f"L = {depth}" for depth in depths)), rows, label=label)


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


def _bounds(tree: Tree, means: NDArray[np.float64]) -> Grid:
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


# ---------------------------------------------------------------- the claims as a Markdown table


CLAIM_COLUMNS = (
    "claim", "the paper says", "verdict", "margin", "seeds", "the numbers say", "other readings", "run it again"
)  # fmt: skip


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """Return one row per claim: the quote, the verdict, what the numbers say, and the command that repeats it."""
    lines = [f"| {' | '.join(CLAIM_COLUMNS)} |", "|---" * len(CLAIM_COLUMNS) + "|"]
    for verdict in verdicts:
        claim = verdict.claim
        cells = (
            f"{claim.title} (`{claim.id}`)",
            claim.quote,
            f"**{verdict.verdict}**",
            margin(verdict.margin),
            "–" if verdict.finding is None else str(verdict.finding.seeds),
            verdict.sentence,
            "; ".join(f"{name}: {finding.verdict}" for name, finding in verdict.variants.items()) or "–",
            f"`{again(verdict)}`",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def again(verdict: Verdict) -> str:
    """Return the command that gives this verdict, with its seeds if they are not the paper's, and its readings."""
    claim, finding = verdict.claim, verdict.finding
    command = f"banditree reproduce {' '.join(claim.figures)}"
    seeds = {FIGURES[name].seeds for name in claim.figures}
    if finding is not None and not claim.of_instances and finding.seeds not in seeds:
        command += f" --seeds {finding.seeds}"
    return f"{command} --variant all" if verdict.variants else command


def margin(value: float | None) -> str:
    """Format a margin, in standard errors on the paper's side of the threshold; a count has none.

    >>> margin(12.345), margin(-3.2), margin(None), margin(float("inf"))
    ('+12.3', '-3.2', '–', 'count')
    """
    if value is None or isnan(value):
        return "–"
    return "count" if isinf(value) else f"{value:+.1f}"
