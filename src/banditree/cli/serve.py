"""The command ``banditree serve``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree.cli.exits import exit_on_error
from banditree.errors import InvalidValue
from banditree.service.events import MAIN
from banditree.service.settings import RANDOM, RATES, Settings, Source

EXPERIMENT, SERVICE = "Experiment", "Service"  # boxes of the help


def serve_command(
    *,
    items: Annotated[
        Path | None, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="COLUMNS",
            help="Column of the items; the values of several, a,b, are joined.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="COLUMNS",
            help="Columns of the categories, coarse to fine: a,b,c.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    plays: Annotated[
        str | None,
        typer.Option(
            "--plays", metavar="COLUMN", help="Column of past plays to start from.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    successes: Annotated[
        str | None,
        typer.Option(
            "--successes", metavar="COLUMN", help="Column of past successes to start from.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    weight: Annotated[
        float,
        typer.Option(
            "--weight",
            metavar="W",
            help="What a past play counts, compared with a new one.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = 1.0,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="FILE", help="A past log to start from, one row per decision.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    log_arm: Annotated[
        str | None,
        typer.Option(
            "--log-arm", metavar="COLUMN", help="Column of the log: what was shown.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    log_reward: Annotated[
        str | None,
        typer.Option(
            "--log-reward", metavar="COLUMN", help="Column of the log: what it earned.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    log_context: Annotated[
        list[str] | None,
        typer.Option(
            "--log-context", metavar="COLUMNS", help="Columns of the log: contexts.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="The policy: ATS, TSC, TS, HTS:2, ... Default: ATS; LinATS with --context.",
            rich_help_panel=EXPERIMENT,
            show_default=False,
        ),
    ] = "",
    explore: Annotated[
        float,
        typer.Option(
            "--explore", metavar="SHARE", help="Share of decisions made at random.", rich_help_panel=EXPERIMENT
        ),
    ] = 0.0,
    half_life: Annotated[
        float | None,
        typer.Option(
            "--half-life",
            metavar="N",
            help="Number of rewards after which evidence counts half.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            "--dim", metavar="N", help="Length of contexts that are lists of numbers.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    rewards: Annotated[
        str,
        typer.Option(
            "--rewards",
            metavar="KIND",
            help="What rewards are: rates, from 0 to 1, or real: any numbers.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = RATES,
    reward_sd: Annotated[
        float | None,
        typer.Option(
            "--reward-sd",
            metavar="SD",
            help="Standard deviation of real rewards, if it is known; else learned.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    reward_window: Annotated[
        str | None,
        typer.Option(
            "--reward-window",
            metavar="TIME",
            help="How long a reward may take: 90 (seconds), 30m, 2h, 1d.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    default_reward: Annotated[
        float | None,
        typer.Option(
            "--default-reward",
            metavar="R",
            help="Reward of a decision whose window passes without one.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    learn_late: Annotated[
        bool, typer.Option("--learn-late", help="Learn from rewards after the window too.", rich_help_panel=EXPERIMENT)
    ] = False,
    exposure: Annotated[
        bool,
        typer.Option(
            "--exposure",
            help="Only decisions that are reported as seen count, or earn default rewards.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = False,
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Decide and log, but leave the choice to the caller, and learn from it.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = False,
    control: Annotated[
        float,
        typer.Option(
            "--control",
            metavar="SHARE",
            help="Share of units that the control policy decides for.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = 0.0,
    control_policy: Annotated[
        str,
        typer.Option(
            "--control-policy",
            metavar="NAME",
            help="Policy of the control group: random, item:ID, or any policy.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = RANDOM,
    learn_control: Annotated[
        bool,
        typer.Option("--learn-control", help="Learn from the control group's rewards too.", rich_help_panel=EXPERIMENT),
    ] = False,
    sticky: Annotated[
        str | None,
        typer.Option(
            "--sticky", metavar="TIME", help="How long a unit keeps its arm: 30m.", rich_help_panel=EXPERIMENT
        ),
    ] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(
            "--stop-at",
            metavar="R",
            help="Reward per decision still to gain below which the report says done.",
            rich_help_panel=EXPERIMENT,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Serve several experiments, from a TOML file, instead of ITEMS.",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="STORE",
            help="The log: a file, or postgresql://... for several processes.",
            rich_help_panel=SERVICE,
        ),
    ] = "decisions.db",
    update_catalogue: Annotated[
        bool,
        typer.Option(
            "--update-catalogue", help="Bring the items into a store that holds others.", rich_help_panel=SERVICE
        ),
    ] = False,
    keep_catalogue: Annotated[
        bool,
        typer.Option(
            "--keep-catalogue", help="Go on with the store's items, whatever ITEMS holds.", rich_help_panel=SERVICE
        ),
    ] = False,
    update_settings: Annotated[
        bool,
        typer.Option(
            "--update-settings", help="Change the settings of a store that has others.", rich_help_panel=SERVICE
        ),
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Address to listen on; others than the default need a token.",
            rich_help_panel=SERVICE,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="PORT",
            help="Port to listen on; 0 for a free one.",
            rich_help_panel=SERVICE,
            min=0,
            max=65535,
        ),
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            help="Bearer token that may do everything.",
            rich_help_panel=SERVICE,
            envvar="BANDITREE_TOKEN",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help='File of tokens with roles, a line each: "decide SECRET", read or admin.',
            rich_help_panel=SERVICE,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST",
            help="Another name that the service goes by; * for any. May be repeated.",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="FEATURES",
            help="What requests tell: device=phone|tablet,age=18..90,returning=bool, or a JSON file.",
            rich_help_panel=SERVICE,
        ),
    ] = None,
) -> None:
    """Serve decisions over HTTP, with a live page and a log of every decision.

    Decisions and rewards are stored before they are answered.

    Started again on the same store, it continues where it stopped.

    Example: banditree serve items.csv --arm item --path category,subcategory
    """
    with exit_on_error():
        experiment: dict[str, Any] = {
            "arm": arm,
            "path": path,
            "plays": plays,
            "successes": successes,
            "weight": weight,
            "log": log,
            "log_arm": log_arm,
            "log_reward": log_reward,
            "log_context": log_context,
            "policy": policy,
            "explore": explore,
            "half_life": half_life,
            "dim": dim,
            "rewards": rewards,
            "reward_sd": reward_sd,
            "reward_window": reward_window,
            "default_reward": default_reward,
            "learn_late": learn_late,
            "exposure": exposure,
            "shadow": shadow,
            "control": control,
            "control_policy": control_policy,
            "learn_control": learn_control,
            "sticky": sticky,
            "stop_at": stop_at,
            "context": context,
        }
        if update_catalogue and keep_catalogue:
            raise InvalidValue("give --update-catalogue or --keep-catalogue, not both")
        catalogue = "update" if update_catalogue else "keep" if keep_catalogue else "refuse"
        from banditree.service.serve import Access, make_plan, read_config, serve

        given = {name: value for name, value in experiment.items() if value is not None}
        if config is not None:
            if items is not None:
                raise InvalidValue("give ITEMS or --config, not both")
            _refuse_beside_config(experiment)
            plans = read_config(config, catalogue, updates_settings=update_settings)
        elif items is None or not arm:
            raise InvalidValue("give a file of items with --arm and --path, or --config")
        else:
            given |= {"items": items, "context": context}
            plans = [make_plan(MAIN, given, Path(), catalogue, updates_settings=update_settings)]
        access = Access.of(token, tokens, allow_host or ())
        serve(plans, store=store, host=host, port=port, access=access)


def _refuse_beside_config(experiment: dict[str, Any]) -> None:
    """Refuse options of one experiment beside a file that has those of all."""
    defaults = {part.name: part.default for kind in (Source, Settings) for part in fields(kind)}
    given = [name for name, value in experiment.items() if value is not None and value != defaults.get(name)]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InvalidValue(f"{options} would be ignored beside --config; write it into the file instead")


def archive_command(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The log: a file, or postgresql://...")],
    before: Annotated[
        str, typer.Option(metavar="DATE", help="Archive events from before this time: 2026-08-01, in UTC.")
    ],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the Parquet file of these events.")],
) -> None:
    """Move old events of a service's store into a Parquet file, while no service uses the store.

    The events are replaced by what they fold to, so that the service goes on as before.

    Safe to run again after any interruption.

    Example: banditree archive decisions.db --before 2026-08-01 --to old
    """
    with exit_on_error():
        from banditree.service.archive import archive

        typer.echo(archive(store, before, to))
