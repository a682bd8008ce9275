"""The commands for a catalogue of one's own: inspect, simulate, advise, and an example to try them on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from banditree import plots
from banditree.catalogue import render
from banditree.catalogue.advice import advise
from banditree.catalogue.example import write_example
from banditree.catalogue.inspection import inspect
from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import read_catalogue
from banditree.catalogue.simulation import simulate
from banditree.cli.outcomes import carries_all, check_places, mistakes
from banditree.errors import Interrupted, InvalidValue
from banditree.output import pages
from banditree.output.files import write_whole
from banditree.plots import files

Items = Annotated[Path, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, an item a row.")]
Arm = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the items.", show_default=False)]
Levels = Annotated[
    list[str],
    typer.Option(
        "--path", metavar="COLUMNS", help="Columns of the categories, coarse to fine: a,b,c.", show_default=False
    ),
]
Plays = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of past plays (views, impressions).")]
Successes = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of past successes (clicks, sales).")]
Mean = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of known means, instead of counts.")]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of weights, to average repeated means.")]
Horizon = Annotated[int, typer.Option(min=1, metavar="T", help="How many decisions will be made.", show_default=False)]
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="NAMES", help="Policies to try: TS,TSC,HTS:2,UCT. Default: flat and every depth."),
]
Seeds = Annotated[int | None, typer.Option(min=1, metavar="N", help="Worlds to simulate. Default: by size, 8 to 100.")]
Rng = Annotated[
    int, typer.Option(min=0, metavar="N", help="Where random numbers start; the same number, the same result.")
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores. Results do not depend on it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as one web page.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, and only the essential lines.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("inspect")(inspect_command)
    app.command("simulate")(simulate_command)
    app.command("advise")(advise_command)
    app.command("example")(example_command)


def inspect_command(
    items: Items,
    arm: Arm,
    path: Levels,
    plays: Plays = None,
    successes: Successes = None,
    mean: Mean = None,
    weight: Weight = None,
    html: Html = None,
    rng: Rng = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the tree of a catalogue and how much its categories tell about rewards.

    Example: banditree inspect items.csv --arm item --path category,subcategory --plays plays --successes clicks
    """
    with mistakes():
        _check_page(html, items)
        found = inspect(_read(items, arm, path, plays, successes, mean, weight), rng=rng)
        _print(found, as_json, str(found) if quiet else render.inspection(found))
        _write_page(found, html, items, quiet or as_json)


def simulate_command(
    items: Items,
    arm: Arm,
    path: Levels,
    horizon: Horizon,
    plays: Plays = None,
    successes: Successes = None,
    mean: Mean = None,
    weight: Weight = None,
    policy: Policies = None,
    seeds: Seeds = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the regret curves as a picture: png, svg or pdf.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every run as a CSV file; after Ctrl-C, the finished ones."),
    ] = None,
    html: Html = None,
    rng: Rng = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run policies on a catalogue as the world: regret, and traffic by category.

    Given counts, each seed draws true means that the counts allow; given means, those are the world.

    Example: banditree simulate items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with mistakes():
        check_places(save, plot, html, source=items)
        _check_page(html, items, curves=True)
        if plot is not None:
            files.check(plot)
        catalogue = _read(items, arm, path, plays, successes, mean, weight)
        silent = quiet or as_json
        try:
            found = simulate(catalogue, horizon=horizon, **_how(policy, seeds, rng, jobs, quiet))
        except Interrupted as stopped:  # what is finished is not lost
            if save is not None and stopped.runs is not None:
                stopped.runs.save(save)
                _written(save, silent)
            raise
        _print(found, as_json, str(found.runs.table()) if quiet else render.simulation(found))
        if save is not None:
            found.runs.save(save)
            _written(save, silent)
        if plot is not None:
            files.write(plots.regret(found.runs, ax=plots.sheet()), plot)
            _written(plot, silent)
        _write_page(found, html, items, silent)
        if plot is None and html is None and not silent:
            typer.echo("\nCurves: add --plot regret.png")


def advise_command(
    items: Items,
    arm: Arm,
    path: Levels,
    horizon: Horizon,
    plays: Plays = None,
    successes: Successes = None,
    mean: Mean = None,
    weight: Weight = None,
    policy: Policies = None,
    seeds: Annotated[
        int | None, typer.Option(min=4, metavar="N", help="Worlds to simulate. Default: by size, 8 to 100.")
    ] = None,
    html: Html = None,
    rng: Rng = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which policy to run on a catalogue, what it saves, and what would change the answer.

    With --quiet the policy's name alone is printed.

    Example: banditree advise items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with mistakes():
        _check_page(html, items, curves=True)
        catalogue = _read(items, arm, path, plays, successes, mean, weight)
        found = advise(catalogue, horizon=horizon, **_how(policy, seeds, rng, jobs, quiet))
        _print(found, as_json, found.name if quiet else render.advice(found))
        _write_page(found, html, items, quiet or as_json)


def example_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")] = Path("items.csv"),
    campaign: Annotated[str, typer.Option(metavar="NAME", help="all (80 items), men (34) or women (46).")] = "all",
    quiet: Quiet = False,
) -> None:
    """Write a real catalogue to try the commands on: items of a fashion shop, from the Open Bandit Dataset."""
    with mistakes():
        check_places(file)
        write_example(file, campaign=campaign)
        if not quiet:
            options = f"{file} --arm item --path category,subcategory --plays plays --successes clicks"
            typer.echo(f"Wrote {file}. Try: banditree inspect {options}")


def _how(policy: list[str] | None, seeds: int | None, rng: int, jobs: int, quiet: bool) -> dict[str, Any]:
    """What the commands that simulate pass on."""
    policies = _split("--policy", policy or []) or None
    return {"policies": policies, "seeds": seeds, "rng": rng, "jobs": jobs, "progress": False if quiet else None}


def _read(
    items: Path,
    arm: str,
    path: list[str],
    plays: str | None,
    successes: str | None,
    mean: str | None,
    weight: str | None,
) -> Catalogue:
    counts = [f"--{name}" for name, value in (("plays", plays), ("successes", successes)) if value is not None]
    if len(counts) + (mean is not None) == 0 or len(counts) == 1 or (counts and mean is not None):
        raise typer.BadParameter("give --plays and --successes, or --mean")
    return read_catalogue(
        items, arm=arm, path=_split("--path", path), plays=plays, successes=successes, mean=mean, weight=weight
    )


def _split(option: str, given: list[str]) -> list[str]:
    """The names in "a,b,c", of an option that may be repeated."""
    found = []
    for text in given:
        names = [part.strip() for part in text.split(",") if part.strip()]
        if not names:
            raise InvalidValue(f"{option} {text!r} names nothing; give names with commas between them, as a,b,c")
        found += names
    return found


def _print(found: Any, as_json: bool, shown: str | list[Any]) -> None:
    """JSON, a line or two as they are, or parts that fit the terminal."""
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=not carries_all(sys.stdout)))
    elif isinstance(shown, str):
        typer.echo(shown)
    else:
        render.show(Console(highlight=False), shown)


def _check_page(html: Path | None, items: Path, *, curves: bool = False) -> None:
    """Refuse, before the work that it is for, a page that cannot be written."""
    if html is not None:
        check_places(html, source=items)
        pages.library()
        if curves:
            plots.style.library()


def _write_page(found: Any, html: Path | None, items: Path, silent: bool) -> None:
    if html is not None:
        write_whole(html, [found.to_html(title=items.name).encode()])
        _written(html, silent)


def _written(file: Path, silent: bool) -> None:
    if not silent:
        typer.echo(f"Wrote {file}", err=True)
