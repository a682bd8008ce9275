"""The commands for a catalogue: inspect, simulate, advise, and example, which writes one to try them on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree import plots
from banditree.base.result import Result
from banditree.catalogue.advice import advise, plan_advice
from banditree.catalogue.contexts import advise_contexts, inspect_contexts, plan_contexts, simulate_contexts
from banditree.catalogue.inspection import inspect
from banditree.catalogue.simulation import Simulation, plan_simulation, simulate
from banditree.cli.exits import check_outputs, exit_on_error
from banditree.cli.options import Output, Quiet, Rng, Simulated, Source, group_options, option, whole
from banditree.errors import Interrupted, InvalidValue
from banditree.errors.checks import choice
from banditree.plots import files
from banditree.problems.real import CAMPAIGNS, LOGS, write_example, write_example_log
from banditree.simulation.runs import Runs


@group_options
def inspect_command(*, source: Source, rng: Rng = 0, output: Output) -> None:
    """Show the tree of a catalogue and how much its categories explain.

    With --context, for a log with one row per event: how much of the rewards' variance is visitor, category, item, and
    visitor and item together.

    Example: banditree inspect items.csv --arm item --path category,subcategory --plays plays --successes clicks
    """
    with exit_on_error():
        output.check(source.items)
        if source.context:
            log, model = source.fit()
            inspection: Result = inspect_contexts(log, model.tree, rng=rng)
        else:
            inspection = inspect(source.read(), rng=rng)
        output.show(inspection)
        output.write_page(inspection, source.items)


@group_options
def simulate_command(
    *,
    source: Source,
    simulated: Simulated,
    seeds: int | None = option(None, "N", "Worlds to simulate. Default: by size, 8 to 100.", parser=whole(1)),
    plot: Path | None = option(None, "FILE", "Write the regret curves as a picture: png, svg or pdf."),
    save: Path | None = option(None, "FILE", "Write every run as a CSV file; after Ctrl-C, those that are finished."),
    output: Output,
) -> None:
    """Simulate policies on a catalogue: regret, and traffic by category.

    Given counts, each seed draws true means that are consistent with them; given means, those are used. With
    --context, for a log with one row per event, worlds come from a mixed model of it.

    Example: banditree simulate items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        output.check(source.items, save, plot, curves=True)
        if plot is not None:
            files.check(plot)
        size: dict[str, Any] = {"seeds": seeds, **simulated.size(has_contexts=bool(source.context))}
        how: dict[str, Any] = {"rng": simulated.rng, "jobs": simulated.jobs, "progress": output.progress}
        if source.context:
            model = source.fit()[1]
            plan = plan_contexts(model, **size)
            call: Callable[..., Simulation | Runs] = partial(simulate_contexts, model, **size, **how)
        else:
            catalogue = source.read()
            plan = plan_simulation(catalogue, **size)
            call = partial(simulate, catalogue, **size, **how)
        output.announce(plan, simulated.jobs, could_be_quick=seeds is None and not simulated.quick)
        try:
            simulation = call()
        except Interrupted as stopped:  # keep the finished runs
            if save is not None and stopped.runs is not None:
                stopped.runs.save(save)
                output.wrote(save)
            raise
        output.show(simulation)
        runs = simulation if isinstance(simulation, Runs) else simulation.runs
        if save is not None:
            runs.save(save)
            output.wrote(save)
        if plot is not None:
            files.write(plots.regret(runs, ax=plots.sheet()), plot)
            output.wrote(plot)
        output.write_page(simulation, source.items)
        if plot is None and output.html is None and not output.silent:
            typer.echo("\nCurves: add --plot regret.png")


@group_options
def advise_command(
    *,
    source: Source,
    simulated: Simulated,
    seeds: int | None = option(
        None, "N", "Worlds to simulate, at least 4. Default: by size, 8 to 100.", parser=whole(4)
    ),
    output: Output,
) -> None:
    """Say which policy to run on a catalogue, what it saves, and what would change the answer.

    With --context, for a log with one row per event: whether it pays to know who asks, and to use the categories.

    With --quiet, print only the policy's name.

    Example: banditree advise items.csv --arm item --path category --plays plays --successes clicks --horizon 100000
    """
    with exit_on_error():
        output.check(source.items, curves=True)
        size: dict[str, Any] = {"seeds": seeds, **simulated.size(has_contexts=bool(source.context))}
        how: dict[str, Any] = {"rng": simulated.rng, "jobs": simulated.jobs, "progress": output.progress}
        if source.context:
            log, model = source.fit()
            plan = plan_contexts(model, **size)
            call: Callable[..., Result] = partial(advise_contexts, log, model.tree, model=model, **size, **how)
        else:
            catalogue = source.read()
            plan = plan_advice(catalogue, **size)
            call = partial(advise, catalogue, **size, **how)
        output.announce(plan, simulated.jobs, could_be_quick=not simulated.quick)
        advice = call()
        output.show(advice)
        output.write_page(advice, source.items)


@group_options
def example_command(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")] = Path("items.csv"),
    campaign: str = option("all", "NAME", "all (80 items), men (34) or women (46)."),
    log: str | None = option(
        None, "NAME", "Write a log instead of items: random or thompson, the policy that wrote it."
    ),
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
