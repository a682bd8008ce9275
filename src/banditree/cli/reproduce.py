"""The command ``banditree reproduce``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from banditree.cli.exits import STOPPED, exit_on_error, exit_with
from banditree.cli.options import option
from banditree.paper.figures import FIGURES
from banditree.paper.reproduce import reproduce
from banditree.paper.results import load_results


def reproduce_command(
    *,
    figures: Annotated[list[str] | None, typer.Argument(metavar="FIGURE", help="Figures to run. Default: all.")] = None,
    show_list: Annotated[bool, option("--list", None, "Show the figures and their variants, and stop.")] = False,
    quick: Annotated[bool, option("--quick", None, "A tenth of the paper's seeds, at least 5.")] = False,
    seeds: Annotated[int | None, option("--seeds", "N", "Seeds. Default: as many as in the paper.", min=1)] = None,
    out: Annotated[Path, option("--out", "DIR", "Folder to write to.")] = Path("reproduction"),
    jobs: Annotated[int, option("--jobs", "N", "Workers; -1 for all cores. Results do not depend on it.")] = -1,
    resume: Annotated[bool, option("--resume", None, "Skip figures that are already finished in the folder.")] = False,
    variant: Annotated[
        list[str] | None,
        option("--variant", "FIG:NAME", "Also run a variant of a figure: 1f:even, or all. May be repeated."),
    ] = None,
) -> None:
    """Run the figures of the paper: pictures, results.csv, claims.json and report.html.

    Example: banditree reproduce 2b 2c --quick --out reproduction
    """
    names, variants = figures or [], variant or []
    if show_list:
        Console().print(_list_figures())
        return
    with exit_on_error():
        try:
            path = reproduce(names, variants=variants, quick=quick, seeds=seeds, out=out, jobs=jobs, resume=resume)
            typer.echo(path)
        except KeyboardInterrupt:
            kept = len(load_results(out).kept)
            again = ["banditree", "reproduce", *names, *(part for text in variants for part in ("--variant", text))]
            again += ["--quick"] * quick + (["--seeds", str(seeds)] if seeds else []) + ["--out", str(out)]
            again += (["--jobs", str(jobs)] if jobs != -1 else []) + ["--resume"]
            finished = f"{kept} figure{'s are' if kept != 1 else ' is'} finished and kept in {out}"
            exit_with(f"Stopped: {finished}. Continue with: {shlex.join(again)}", STOPPED)


def _list_figures() -> Table:
    table = Table(title="Figures of the paper")
    table.add_column("figure", no_wrap=True)
    for column in ("what", "T", "seeds", "variants"):
        table.add_column(column)
    for name, figure in FIGURES.items():
        runs = (f"{figure.horizon:,}", str(figure.seeds)) if figure.horizon else ("", "")
        variants = "\n".join(f"{variant}: {meaning}" for variant, meaning in figure.options.items())
        table.add_row(name, figure.title.removeprefix(f"Figure {name}: "), *runs, variants)
    return table
