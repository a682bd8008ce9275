"""The command ``banditree serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree.cli import options
from banditree.cli.exits import exit_on_error
from banditree.cli.flags import Command
from banditree.errors import InvalidValue


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("serve", cls=Command)(serve_command)


def _option(text: str, metavar: str | None = None, name: str | None = None, **limits: Any) -> Any:
    names = [] if name is None else [name]
    return typer.Option(*names, help=text, metavar=metavar, show_default=False, **limits)


def serve_command(
    ctx: typer.Context,
    items: Annotated[
        Path | None, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ] = None,
    arm: Annotated[
        str | None, _option("Column of the items; the values of several, a,b, are joined.", "COLUMNS")
    ] = None,
    path: Annotated[
        list[str] | None, _option("Columns of the categories, coarse to fine: a,b,c.", "COLUMNS", "--path")
    ] = None,
    config: Annotated[
        Path | None, _option("Serve several experiments, from a TOML file, instead of ITEMS.", "FILE")
    ] = None,
    policy: Annotated[
        str, _option("The policy: ATS, TSC, TS, HTS:2, ... Default: ATS; LinATS with --context.", "NAME")
    ] = "",
    store: Annotated[
        str, typer.Option(metavar="STORE", help="The log: a file, or postgresql://... for several processes.")
    ] = "decisions.db",
    update_catalogue: Annotated[
        bool, typer.Option("--update-catalogue", help="Bring the items into a store that holds others.")
    ] = False,
    keep_catalogue: Annotated[
        bool, typer.Option("--keep-catalogue", help="Go on with the store's items, whatever ITEMS holds.")
    ] = False,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; others than the default need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on; 0 for a free one.")
    ] = 8000,
    token: Annotated[
        str | None, _option("Bearer token that may do everything. Default: BANDITREE_TOKEN, if set.", "TOKEN")
    ] = None,
    tokens: Annotated[
        Path | None, _option('File of tokens with roles, one per line: "decide SECRET", read or admin.', "FILE")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        _option("Another name that the service goes by; * for any. May be repeated.", "HOST", "--allow-host"),
    ] = None,
    explore: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of decisions made at random.")
    ] = 0.0,
    half_life: Annotated[float | None, _option("Number of rewards after which evidence counts half.", "N")] = None,
    reward_window: Annotated[
        str | None, _option("How long a reward may take: 90 (seconds), 30m, 2h, 1d.", "TIME")
    ] = None,
    default_reward: Annotated[
        float | None, _option("Reward of a decision whose window passes without one.", "R")
    ] = None,
    learn_late: Annotated[bool, typer.Option("--learn-late", help="Learn from rewards after the window too.")] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Decide and log, but leave the choice to the caller, and learn from it.")
    ] = False,
    control: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of units that the control policy decides for.")
    ] = 0.0,
    control_policy: Annotated[
        str, typer.Option(metavar="NAME", help="Policy of the control group: random, item:ID, or any policy.")
    ] = "random",
    learn_control: Annotated[
        bool, typer.Option("--learn-control", help="Learn from the control group's rewards too.")
    ] = False,
    context: Annotated[
        str | None,
        _option("What requests tell: device=phone|tablet,age=18..90,returning=bool, or a JSON file.", "FEATURES"),
    ] = None,
    dim: Annotated[int | None, _option("Length of contexts that are lists of numbers.", "N", min=1)] = None,
    rewards: Annotated[
        str, typer.Option(metavar="KIND", help="What rewards are: rates, from 0 to 1, or real: any numbers.")
    ] = "rates",
    reward_sd: Annotated[
        float | None, _option("Standard deviation of real rewards, if it is known; else it is learned.", "SD")
    ] = None,
    plays: Annotated[str | None, _option("Column of past plays to start from.", "COLUMN")] = None,
    successes: Annotated[str | None, _option("Column of past successes to start from.", "COLUMN")] = None,
    weight: Annotated[float, typer.Option(metavar="W", help="What a past play counts, compared with a new one.")] = 1.0,
    log: Annotated[Path | None, _option("A past log to start from, one row per decision.", "FILE")] = None,
    log_arm: Annotated[str | None, _option("Column of the log: what was shown.", "COLUMN")] = None,
    log_reward: Annotated[str | None, _option("Column of the log: what it earned.", "COLUMN")] = None,
    log_context: Annotated[
        list[str] | None, _option("Columns of the log: contexts.", "COLUMNS", "--log-context")
    ] = None,
    keep: Annotated[
        str | None, _option("How long events stay in the store, such as 90d; needs --archive.", "TIME")
    ] = None,
    archive: Annotated[
        Path | None, _option("Folder for Parquet files of events that are older than --keep.", "FOLDER")
    ] = None,
    sticky: Annotated[str | None, _option("How long a unit keeps its arm: 30m.", "TIME")] = None,
    stop_at: Annotated[
        float | None, _option("Reward per decision still to gain below which the report says that it is done.", "R")
    ] = None,
) -> None:
    """Serve decisions over HTTP, with a live page and a log of every decision.

    Decisions and rewards are stored before they are answered.

    Started again on the same store, it continues where it stopped.

    Example: banditree serve items.csv --arm item --path category,subcategory
    """
    with exit_on_error():
        if update_catalogue and keep_catalogue:
            raise InvalidValue("give --update-catalogue or --keep-catalogue, not both")
        catalogue = "update" if update_catalogue else "keep" if keep_catalogue else "refuse"
        from banditree.service.archive import Archive
        from banditree.service.config import OPTIONS, make_plan, read_config, seconds
        from banditree.service.events import MAIN
        from banditree.service.guard import Access
        from banditree.service.serve import serve

        if config is not None:
            if items is not None:
                raise InvalidValue("give ITEMS or --config, not both")
            plans = read_config(config, catalogue)
        else:
            if items is None or arm is None:
                raise InvalidValue("give a file of items with --arm and --path, or --config")
            given = {name: value for name, value in ctx.params.items() if name in OPTIONS and value is not None}
            given |= {"arm": ",".join(options.split_names("--arm", [arm]))}
            given |= {"path": options.split_names("--path", path or [])}
            given |= {"log_context": options.split_names("--log-context", log_context or [])}
            plans = [make_plan(MAIN, given, Path(), catalogue)]
        access = Access.of(
            token if token is not None else os.environ.get("BANDITREE_TOKEN") or None,
            None if tokens is None else str(tokens),
            tuple(allow_host or ()),
        )
        if (keep is None) != (archive is None):
            raise InvalidValue("--keep and --archive go together: how long events stay, and where they go then")
        old = None if keep is None or archive is None else Archive(seconds(keep, "--keep"), archive)
        serve(plans, store=store, host=host, port=port, access=access, archive=old)
