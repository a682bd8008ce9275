"""The commands ``banditree serve`` and ``banditree archive``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree.cli.exits import exit_on_error
from banditree.errors import InvalidValue
from banditree.service.events import MAIN
from banditree.service.settings import RANDOM, RATES, Settings, Source

OF_EXPERIMENT = {part.name: part for kind in (Source, Settings) for part in fields(kind) if part.metadata}
FEATURES = "What requests tell: device=phone|tablet,age=18..90,returning=bool, or a JSON file."
Names = list[str] | None


def _experiment(flag: str) -> object:
    """Describe an option as the field of `Settings` or `Source` does that it is for."""
    part = OF_EXPERIMENT[flag[2:].replace("-", "_")]
    return typer.Option(flag, rich_help_panel="Experiment", show_default=part.default != "", **part.metadata)


def _service(flag: str, metavar: str | None, text: str, **more: Any) -> object:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel="Service", **more)


def serve_command(
    *,
    items: Annotated[
        Path | None, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ] = None,
    arm: Annotated[Names, _experiment("--arm")] = None,
    path: Annotated[Names, _experiment("--path")] = None,
    plays: Annotated[str | None, _experiment("--plays")] = None,
    successes: Annotated[str | None, _experiment("--successes")] = None,
    weight: Annotated[float, _experiment("--weight")] = 1.0,
    log: Annotated[Path | None, _experiment("--log")] = None,
    log_arm: Annotated[str | None, _experiment("--log-arm")] = None,
    log_reward: Annotated[str | None, _experiment("--log-reward")] = None,
    log_context: Annotated[Names, _experiment("--log-context")] = None,
    policy: Annotated[str, _experiment("--policy")] = "",
    explore: Annotated[float, _experiment("--explore")] = 0.0,
    half_life: Annotated[float | None, _experiment("--half-life")] = None,
    context: Annotated[
        str | None, typer.Option("--context", metavar="FEATURES", help=FEATURES, rich_help_panel="Experiment")
    ] = None,
    dim: Annotated[int | None, _experiment("--dim")] = None,
    rewards: Annotated[str, _experiment("--rewards")] = RATES,
    reward_sd: Annotated[float | None, _experiment("--reward-sd")] = None,
    reward_window: Annotated[str | None, _experiment("--reward-window")] = None,
    default_reward: Annotated[float | None, _experiment("--default-reward")] = None,
    learn_late: Annotated[bool, _experiment("--learn-late")] = False,
    exposure: Annotated[bool, _experiment("--exposure")] = False,
    shadow: Annotated[bool, _experiment("--shadow")] = False,
    control: Annotated[float, _experiment("--control")] = 0.0,
    control_policy: Annotated[str, _experiment("--control-policy")] = RANDOM,
    learn_control: Annotated[bool, _experiment("--learn-control")] = False,
    sticky: Annotated[str | None, _experiment("--sticky")] = None,
    stop_at: Annotated[float | None, _experiment("--stop-at")] = None,
    config: Annotated[
        Path | None, _service("--config", "FILE", "Serve several experiments, from a TOML file, instead of ITEMS.")
    ] = None,
    store: Annotated[
        str, _service("--store", "STORE", "The log: a file, or postgresql://... for several processes.")
    ] = "decisions.db",
    update_catalogue: Annotated[
        bool, _service("--update-catalogue", None, "Bring the items into a store that holds others.")
    ] = False,
    keep_catalogue: Annotated[
        bool, _service("--keep-catalogue", None, "Go on with the store's items, whatever ITEMS holds.")
    ] = False,
    update_settings: Annotated[
        bool, _service("--update-settings", None, "Change the settings of a store that has others.")
    ] = False,
    host: Annotated[
        str, _service("--host", "HOST", "Address to listen on; others than the default need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, _service("--port", "PORT", "Port to listen on; 0 for a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, _service("--token", "TOKEN", "Bearer token that may do everything.", envvar="BANDITREE_TOKEN")
    ] = None,
    tokens: Annotated[
        Path | None,
        _service("--tokens", "FILE", 'File of tokens with roles, a line each: "decide SECRET", read or admin.'),
    ] = None,
    allow_host: Annotated[
        Names, _service("--allow-host", "HOST", "Another name that the service goes by; * for any. May be repeated.")
    ] = None,
) -> None:
    """Serve decisions over HTTP, with a live page and a log of every decision.

    Decisions and rewards are stored before they are answered.

    Started again on the same store, it continues where it stopped.

    Example: banditree serve items.csv --arm item --path category,subcategory
    """
    given = {name: value for name, value in locals().items() if name in (*OF_EXPERIMENT, "context")}
    with exit_on_error():
        if update_catalogue and keep_catalogue:
            raise InvalidValue("give --update-catalogue or --keep-catalogue, not both")
        catalogue = "update" if update_catalogue else "keep" if keep_catalogue else "refuse"
        from banditree.service.serve import Access, make_plan, read_config, serve

        if config is not None:
            if items is not None:
                raise InvalidValue("give ITEMS or --config, not both")
            _refuse_beside_config(given)
            plans = read_config(config, catalogue, updates_settings=update_settings)
        elif items is None or not arm:
            raise InvalidValue("give a file of items with --arm and --path, or --config")
        else:
            options = {name: value for name, value in given.items() if value is not None} | {"items": items}
            plans = [make_plan(MAIN, options, Path(), catalogue, updates_settings=update_settings)]
        access = Access.of(token, tokens, allow_host or ())
        serve(plans, store=store, host=host, port=port, access=access)


def _refuse_beside_config(given: dict[str, object]) -> None:
    """Refuse options of one experiment beside a file that has those of all."""
    defaults = {name: part.default for name, part in OF_EXPERIMENT.items()}
    ignored = [name for name, value in given.items() if value is not None and value != defaults.get(name)]
    if ignored:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in ignored)
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
