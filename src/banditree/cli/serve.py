"""The command ``banditree serve``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from banditree.cli.exits import exit_on_error
from banditree.cli.options import group_options
from banditree.errors import InvalidValue
from banditree.service.events import MAIN
from banditree.service.settings import Settings, Source, seconds

WRITTEN = {"COLUMNS": list[str] | None, "TIME": str | None}  # how options are written that are read later


def _option(text: str, metavar: str | None = None, name: str | None = None, **limits: Any) -> Any:
    names = [] if name is None else [name]
    return typer.Option(*names, help=text, metavar=metavar, show_default=False, **limits)


def _options() -> Iterator[tuple[str, Any, Any]]:
    """Make an option of every field of `Source` and `Settings` that they describe as one."""
    for kind in (Source, Settings):
        types = get_type_hints(kind)
        for part in fields(kind):
            if part.metadata:
                default = None if part.default == () else part.default
                option = typer.Option(f"--{part.name.replace('_', '-')}", show_default=default != "", **part.metadata)
                written = WRITTEN.get(part.metadata["metavar"], types[part.name])
                yield part.name, Annotated[written, option], field(default=default)


Experiment = make_dataclass("Experiment", _options(), kw_only=True)


@group_options
def serve_command(
    *,
    items: Annotated[
        Path | None, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ] = None,
    experiment: Experiment,  # type: ignore[valid-type]
    config: Annotated[
        Path | None, _option("Serve several experiments, from a TOML file, instead of ITEMS.", "FILE")
    ] = None,
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
        str | None, _option("Bearer token that may do everything.", "TOKEN", envvar="BANDITREE_TOKEN")
    ] = None,
    tokens: Annotated[
        Path | None, _option('File of tokens with roles, one per line: "decide SECRET", read or admin.', "FILE")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        _option("Another name that the service goes by; * for any. May be repeated.", "HOST", "--allow-host"),
    ] = None,
    keep: Annotated[
        str | None, _option("How long events stay in the store, such as 90d; needs --archive.", "TIME")
    ] = None,
    archive: Annotated[
        Path | None, _option("Folder for Parquet files of events that are older than --keep.", "FOLDER")
    ] = None,
    context: Annotated[
        str | None,
        _option("What requests tell: device=phone|tablet,age=18..90,returning=bool, or a JSON file.", "FEATURES"),
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
        from banditree.service.serve import Access, Archive, make_plan, read_config, serve

        given = {name: value for name, value in vars(experiment).items() if value is not None}
        if config is not None:
            if items is not None:
                raise InvalidValue("give ITEMS or --config, not both")
            plans = read_config(config, catalogue)
        elif items is None or not given.get("arm"):
            raise InvalidValue("give a file of items with --arm and --path, or --config")
        else:
            given |= {"items": items} | ({} if context is None else {"context": context})
            plans = [make_plan(MAIN, given, Path(), catalogue)]
        access = Access.of(token, tokens, allow_host or ())
        if (keep is None) != (archive is None):
            raise InvalidValue("--keep and --archive go together: how long events stay, and where they go then")
        old = None if keep is None or archive is None else Archive(seconds(keep, "--keep"), archive)
        serve(plans, store=store, host=host, port=port, access=access, archive=old)
