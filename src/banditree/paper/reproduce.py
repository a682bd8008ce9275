"""Run figures of the paper: every setting, every policy, then pictures, tables, claims and the report."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import banditree
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.paper.figures import DEFAULT, FIGURES, Figure
from banditree.paper.pictures import draw, is_drawn
from banditree.paper.report import write_report
from banditree.paper.results import FinishedFigure, Results, load_results, stem, stream
from banditree.report.html import library
from banditree.simulation.progress import ShowShare, tasks_bar
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate
from banditree.simulation.workers import n_workers

REPORT = "claims and report"


def plan(figures: Iterable[str] = (), variants: Iterable[str] = ()) -> list[tuple[Figure, str]]:
    """List what to run, in the paper's order: each figure's default, and the variants, given as ``"1f:even"``.

    Without figures, those that the variants belong to are run; without either, all of them. ``"all"`` stands for every
    variant of the figures that are run.
    """
    names, given = list(figures), list(variants)
    wanted: dict[str, set[str]] = {}
    if "all" in given:
        given.remove("all")
        names = names or list(FIGURES)
        wanted = {name: set(FIGURES[name].variants) for name in names if name in FIGURES}
    for text in given:
        name, _, variant = text.partition(":")
        if not variant:
            raise InvalidValue(f"variant {text!r} must be a figure and a name, such as 1f:even")
        wanted.setdefault(name, set()).add(variant)
    for name in (*names, *wanted):
        if name not in FIGURES:
            raise InvalidValue(f"there is no figure {name!r}; there are {', '.join(FIGURES)}")
        for variant in wanted.get(name, ()):
            if variant not in FIGURES[name].variants:
                known = ", ".join(FIGURES[name].variants)
                raise InvalidValue(f"figure {name} has no variant {variant!r}; it has {known}")
    chosen = {*names, *wanted} or set(FIGURES)
    return [
        (figure, variant)
        for name, figure in FIGURES.items()
        if name in chosen
        for variant in figure.variants
        if variant == DEFAULT or variant in wanted.get(name, ())
    ]


def reproduce(
    figures: Iterable[str] = (),
    *,
    variants: Iterable[str] = (),
    quick: bool = False,
    seeds: int | None = None,
    out: str | Path = "reproduction",
    jobs: int | None = -1,
    resume: bool = False,
    progress: bool | None = None,
) -> Path:
    """Run figures of the paper, write everything to a folder, and return the path of the report.

    Other figures in the folder are kept, and the report covers all of them. The parameters are the options of the
    command; ``progress`` says whether to show a bar, by default on terminals.
    """
    library()  # raises now, rather than after minutes of work, if the report cannot be written
    figures, variants = list(figures), list(variants)
    seeds = None if seeds is None else whole("seeds", seeds, 1, why="how many to run")
    planned = []
    for figure, variant in plan(figures, variants):
        n = 0 if figure.kind == "function" else seeds or figure.n_seeds(quick=quick)
        how = FinishedFigure(figure.name, variant, n, banditree.engine(), banditree.__version__, jobs=n_workers(jobs))
        planned.append((figure, how))
    folder = Path(out)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    results = load_results(folder)
    if not resume:
        for _, how in planned:
            results.forget(how.figure, how.variant)
    unfinished = [(figure, how) for figure, how in planned if not _is_finished(results, how)]
    costs = {_task_name(how): _expected_seconds(figure, how) for figure, how in unfinished}
    costs |= {REPORT: 5.0}
    with tasks_bar(costs, progress) as show:
        for figure, how in unfinished:
            results.forget(how.figure, how.variant)
            started = time.perf_counter()
            with show(_task_name(how)) as progress_of:
                runs = run(figure, how.variant, seeds=how.seeds, jobs=jobs, progress=progress_of)
                draw(figure, how.variant, runs, folder / stem(how.figure, how.variant))
            seconds = time.perf_counter() - started
            results.keep(replace(how, seconds=seconds, labels=tuple(runs)), runs)
        with show(REPORT):
            results.write_csv()
            return write_report(folder, results, jobs=jobs)


def run(
    figure: Figure, variant: str = DEFAULT, *, seeds: int, jobs: int | None = -1, progress: ShowShare | None = None
) -> dict[str, Runs]:
    """Run every setting of a figure; return the runs by label. ``progress`` is called with the share done."""
    runs_by_label: dict[str, Runs] = {}
    if figure.kind == "function":
        return runs_by_label
    settings = figure.settings(variant)
    n_policies, n_done = sum(len(setting.policies) for setting in settings), 0

    def show(share: float) -> None:
        if progress is not None:
            progress((n_done + share * len(policies)) / n_policies)

    checkpoints = [figure.horizon // 2, figure.horizon] if figure.kind == "sweep" else 100
    # Settings that share their instances are run in one simulation, so that instances are drawn once.
    for _, sharing in groupby(settings, key=lambda setting: (setting.stream, id(setting.problem))):
        group = list(sharing)
        # Random streams depend on a policy's name, so no two settings may share one.
        names = {
            setting.label: {f"{name} {setting.label}".strip(): name for name in setting.policies} for setting in group
        }
        policies = {
            unique: setting.policies[name] for setting in group for unique, name in names[setting.label].items()
        }
        runs = simulate(
            policies,
            group[0].problem,
            horizon=figure.horizon,
            seeds=seeds,
            rng=stream(figure.name, variant, group[0]),
            checkpoints=checkpoints,
            jobs=jobs,
            progress=False if progress is None else show,
        )
        n_done += len(policies)
        runs_by_label |= {label: runs.select(own).rename(own) for label, own in names.items()}
    return runs_by_label


def _is_finished(results: Results, how: FinishedFigure) -> bool:
    key = how.figure, how.variant
    return key in results.kept and results.kept[key].inputs == how.inputs and is_drawn(results.out / stem(*key))


def _task_name(how: FinishedFigure) -> str:
    return f"figure {stem(how.figure, how.variant)}"


def _expected_seconds(figure: Figure, how: FinishedFigure) -> float:
    """Estimate how many seconds it takes: at least one, for the picture."""
    return 1.0 + (figure.seconds * how.seeds / figure.seeds if figure.seeds else 0.0)
