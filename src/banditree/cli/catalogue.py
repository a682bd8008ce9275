"""The commands for a catalogue: inspect, simulate, advise, and example, which writes one to try them on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from banditree import plots
from banditree.catalogue import terminal
from banditree.catalogue.advice import advise
from banditree.catalogue.example import write_example
from banditree.catalogue.inspection import inspect
from banditree.catalogue.simulation import simulate
from banditree.cli.exits import can_write_unicode, check_outputs, exit_on_error
from banditree.cli.flags import Command
from banditree.cli.options import (
    Arm,
    Horizon,
    Html,
    Items,
    Jobs,
    Json,
    Levels,
    MaxBytes,
    Mean,
    Plays,
    Policies,
    Quiet,
    Reward,
    RewardMean,
    RewardSd,
    Rng,
    Seeds,
    Successes,
    Weight,
    Worlds,
    read_items,
    simulation_options,
)
from banditree.errors import Interrupted
from banditree.ope.example import write_example_log
from banditree.output import pages
from banditree.output.files import write_whole
from banditree.output.words import UNSEEN, visible
from banditree.plots import files


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("inspect", cls=Command)(inspect_command)
    app.command("simulate", cls=Command)(simulate_command)
    app.command("advise", cls=Command)(advise_command)
    app.command("example", cls=Command)(example_command)


def inspect_command(
    items: Items,
    arm: Arm,
    path: Levels,
    plays: Plays = None,
    successes: Successes = None,
    mean: Mean = None,
    weight: Weight = None,
    reward_mean: RewardMean = None,
    reward_sd: RewardSd = None,
    reward: Reward = None,
    max_bytes: MaxBytes = None,
    html: Html = None,
    rng: Rng = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the tree of a catalogue and how much its categories explain.

    Example: banditree inspect items.csv --arm item --path category,subcategory --plays plays --successes clicks
    """
    with exit_on_error():
        _check_page(html, items)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        found = inspect(read_items(items, arm, path, max_bytes, **columns), rng=rng)
        _print(found, as_json, str(found) if quiet else terminal.inspection(found))
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
    reward_mean: RewardMean = None,
    reward_sd: RewardSd = None,
    reward: Reward = None,
    max_bytes: MaxBytes = None,
    policy: Policies = None,
    seeds: Seeds = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the regret curves as a picture: png, svg or pdf.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every run as a CSV file; after Ctrl-C, those that are finished."),
    ] = None,
    html: Html = None,
    rng: Rng = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate policies on a catalogue: regret, and traffic by category.

    Given counts, each seed draws true means that are consistent with them; given means, those are used.

    Example: banditree simulate items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        check_outputs(save, plot, html, source=items)
        _check_page(html, items, curves=True)
        if plot is not None:
            files.check(plot)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        catalogue = read_items(items, arm, path, max_bytes, **columns)
        silent = quiet or as_json
        try:
            found = simulate(catalogue, horizon=horizon, **simulation_options(policy, seeds, rng, jobs, quiet))
        except Interrupted as stopped:  # keep the finished runs
            if save is not None and stopped.runs is not None:
                stopped.runs.save(save)
                _written(save, silent)
            raise
        _print(found, as_json, [terminal.regret(found)] if quiet else terminal.simulation(found))
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
    reward_mean: RewardMean = None,
    reward_sd: RewardSd = None,
    reward: Reward = None,
    max_bytes: MaxBytes = None,
    policy: Policies = None,
    seeds: Worlds = None,
    html: Html = None,
    rng: Rng = 0,
    jobs: Jobs = -1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which policy to run on a catalogue, what it saves, and what would change the answer.

    With --quiet, print only the policy's name.

    Example: banditree advise items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        _check_page(html, items, curves=True)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        catalogue = read_items(items, arm, path, max_bytes, **columns)
        found = advise(catalogue, horizon=horizon, **simulation_options(policy, seeds, rng, jobs, quiet))
        _print(found, as_json, found.name if quiet else terminal.advice(found))
        _write_page(found, html, items, quiet or as_json)


def example_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")] = Path("items.csv"),
    campaign: Annotated[str, typer.Option(metavar="NAME", help="all (80 items), men (34) or women (46).")] = "all",
    log: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Write a log instead of items: random or thompson, the policy that wrote it."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a real catalogue to try the commands on: items of a fashion shop, from the Open Bandit Dataset.

    With --log, write 10,000 decisions about these items instead, for the command evaluate.
    """
    with exit_on_error():
        check_outputs(file)
        if log is not None:
            write_example_log(file, policy=log)
            if not quiet:
                options = "--arm item --reward click --propensity propensity --time timestamp"
                more = "--items items.csv --path category,subcategory"
                typer.echo(f"Wrote {file}. Try: banditree evaluate {file} {options} {more}")
            return
        write_example(file, campaign=campaign)
        if not quiet:
            options = f"{file} --arm item --path category,subcategory --plays plays --successes clicks"
            typer.echo(f"Wrote {file}. Try: banditree inspect {options}")


def _print(found: Any, as_json: bool, shown: str | list[Any]) -> None:
    """Print JSON, a string as it is, or parts laid out for the terminal."""
    if as_json:
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=not can_write_unicode(sys.stdout))
        typer.echo(UNSEEN.sub(lambda mark: f"\\u{ord(mark[0]):04x}" if mark[0] != "\n" else "\n", text))
    elif isinstance(shown, str):
        typer.echo(visible(shown, lines=True))
    else:
        terminal.show(Console(highlight=False), shown)


def _check_page(html: Path | None, items: Path, *, curves: bool = False) -> None:
    """Check before the work starts that a page can be written."""
    if html is not None:
        check_outputs(html, source=items)
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
