"""The commands for a catalogue: inspect, simulate, advise, and example, which writes one to try them on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from banditree import plots
from banditree.catalogue.advice import advise, plan_advice
from banditree.catalogue.inspection import inspect
from banditree.catalogue.simulation import plan_simulation, simulate
from banditree.cli.exits import check_outputs, exit_on_error
from banditree.cli.options import (
    SIMULATION,
    Arm,
    AsJson,
    Horizon,
    HtmlFile,
    Items,
    Jobs,
    Levels,
    MaxBytes,
    Mean,
    Output,
    Plays,
    Policies,
    Quick,
    Quiet,
    Reward,
    RewardMean,
    RewardSd,
    Rng,
    Successes,
    Weight,
    at_least,
    option,
    read_items,
)
from banditree.errors import Interrupted, InvalidValue
from banditree.errors.checks import choice, split_names
from banditree.plots import files
from banditree.problems.real import CAMPAIGNS, LOGS, write_example, write_example_log

WORLDS = "Worlds to simulate{}. Default: by size, 8 to 200."


def inspect_command(
    *,
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
    rng: Rng = 0,
    html: HtmlFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the tree of a catalogue and how much its categories explain.

    Example: banditree inspect items.csv --arm item --path category,subcategory --plays plays --successes clicks
    """
    with exit_on_error():
        output = Output(html, as_json, quiet)
        output.check(items)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        catalogue = read_items(items, arm, path, max_bytes, columns)
        inspection = inspect(catalogue, rng=rng)
        output.show(inspection)
        output.write_page(inspection, items)


def simulate_command(
    *,
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
    horizon: Horizon,
    policy: Policies = None,
    seeds: Annotated[int | None, option("--seeds", "N", WORLDS.format(""), SIMULATION, parser=at_least(1))] = None,
    quick: Quick = False,
    rng: Rng = 0,
    jobs: Jobs = -1,
    plot: Annotated[
        Path | None, option("--plot", "FILE", "Write the regret curves as a picture: png, svg or pdf.")
    ] = None,
    save: Annotated[
        Path | None, option("--save", "FILE", "Write every run as a CSV file; after Ctrl-C, those that are finished.")
    ] = None,
    html: HtmlFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate policies on a catalogue: regret, and traffic by category.

    Given counts, each seed draws true means that are consistent with them; given means, those are used.

    Example: banditree simulate items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        output = Output(html, as_json, quiet)
        output.check(items, save, plot, curves=True)
        if plot is not None:
            files.check(plot)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        catalogue = read_items(items, arm, path, max_bytes, columns)
        names = split_names("--policy", policy) or None
        asked: dict[str, Any] = {"horizon": horizon, "policies": names, "seeds": seeds, "quick": quick}
        output.announce(plan_simulation(catalogue, **asked), jobs, could_be_quick=seeds is None and not quick)
        try:
            simulation = simulate(catalogue, **asked, rng=rng, jobs=jobs, progress=output.progress)
        except Interrupted as stopped:  # keep the finished runs
            if save is not None and stopped.runs is not None:
                stopped.runs.save(save)
                output.wrote(save)
            raise
        output.show(simulation)
        if save is not None:
            simulation.runs.save(save)
            output.wrote(save)
        if plot is not None:
            files.write(plots.regret(simulation.runs, ax=plots.sheet()), plot)
            output.wrote(plot)
        output.write_page(simulation, items)
        if plot is None and html is None and not output.silent:
            typer.echo("\nCurves: add --plot regret.png")


def advise_command(
    *,
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
    horizon: Horizon,
    policy: Policies = None,
    seeds: Annotated[
        int | None, option("--seeds", "N", WORLDS.format(", at least 4"), SIMULATION, parser=at_least(4))
    ] = None,
    quick: Quick = False,
    rng: Rng = 0,
    jobs: Jobs = -1,
    html: HtmlFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say which policy to run on a catalogue, and what its categories are worth.

    With --quiet, print only the policy's name. Whether knowing who asks pays off is a question to a log: evaluate.

    Example: banditree advise items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        output = Output(html, as_json, quiet)
        output.check(items, curves=True)
        columns = {"plays": plays, "successes": successes, "mean": mean, "weight": weight}
        columns |= {"reward_mean": reward_mean, "reward_sd": reward_sd, "reward": reward}
        catalogue = read_items(items, arm, path, max_bytes, columns)
        names = split_names("--policy", policy) or None
        asked: dict[str, Any] = {"horizon": horizon, "policies": names, "seeds": seeds, "quick": quick}
        output.announce(plan_advice(catalogue, **asked), jobs, could_be_quick=seeds is None and not quick)
        advice = advise(catalogue, **asked, rng=rng, jobs=jobs, progress=output.progress)
        output.show(advice)
        output.write_page(advice, items)


def example_command(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")] = Path("items.csv"),
    campaign: Annotated[str, option("--campaign", "NAME", "all (80 items), men (34) or women (46).")] = "all",
    log: Annotated[
        str | None,
        option("--log", "NAME", "Write a log instead of items: random or thompson, the policy that wrote it."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a real catalogue to try the commands on: items of a fashion shop, from the Open Bandit Dataset.

    With --log, write 10,000 decisions about these items instead, for the command evaluate.
    """
    with exit_on_error():
        check_outputs(file)
        if log is not None:
            if campaign != "all":
                raise InvalidValue("--campaign is of items; the logs are of all of them")
            write_example_log(file, policy=choice("--log", log, tuple(LOGS)))
            if not quiet:
                options = "--arm item --reward click --propensity propensity --time timestamp"
                more = "--items items.csv --path category,subcategory"
                typer.echo(f"Wrote {file}. Try: banditree evaluate {file} {options} {more}")
            return
        write_example(file, campaign=choice("--campaign", campaign, CAMPAIGNS))
        if not quiet:
            options = f"{file} --arm item --path category,subcategory --plays plays --successes clicks"
            typer.echo(f"Wrote {file}. Try: banditree inspect {options}")
