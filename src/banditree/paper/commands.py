"""The command ``banditree reproduce``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from banditree.errors import BanditreeError
from banditree.paper.figures import FIGURES
from banditree.paper.reproduce import reproduce
from banditree.paper.results import load_results

MISTAKE, STOPPED = 2, 130  # exit codes: the user's mistake, Ctrl-C


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("reproduce")(reproduce_command)


def reproduce_command(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE", help="Figures to run; all of them by default.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Show the figures and their variants, and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the paper's seeds.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Seeds. Default: as many as the paper.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1: all cores. Numbers do not depend on it.")] = -1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what is finished in the folder, and go on.")] = False,
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="FIG:NAME", help="Another reading as well: 1f:even, or all. May be repeated."),
    ] = None,
) -> None:
    """Run the figures of the paper: pictures, results.csv, claims.json and report.html.

    Example: banditree reproduce 2b 2c --quick --out reproduction
    """
    names, variants = figures or [], variant or []
    if show_list:
        Console().print(_listed())
        return
    try:
        typer.echo(reproduce(names, variants=variants, quick=quick, seeds=seeds, out=out, jobs=jobs, resume=resume))
    except (BanditreeError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(MISTAKE) from None
    except KeyboardInterrupt:
        kept = len(load_results(out).kept)
        again = ["banditree", "reproduce", *names, *(part for text in variants for part in ("--variant", text))]
        again += ["--quick"] * quick + (["--seeds", str(seeds)] if seeds else []) + ["--out", str(out), "--resume"]
        finished = f"{kept} figure{'s are' if kept != 1 else ' is'} finished and kept in {out}"
        typer.echo(f"Stopped: {finished}. Go on with: {shlex.join(again)}", err=True)
        raise typer.Exit(STOPPED) from None


def _listed() -> Table:
    table = Table(title="Figures of the paper")
    table.add_column("figure", no_wrap=True)
    for column in ("what", "T", "seeds", "variants"):
        table.add_column(column)
    for name, figure in FIGURES.items():
        runs = (f"{figure.horizon:,}", str(figure.seeds)) if figure.horizon else ("", "")
        table.add_row(name, figure.title.removeprefix(f"Figure {name}: "), *runs, ", ".join(figure.options))
    return table
