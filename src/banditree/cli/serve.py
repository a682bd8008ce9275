"""The command ``banditree serve``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from banditree.cli.exits import exit_on_error
from banditree.cli.options import group_options, option
from banditree.errors import InvalidValue
from banditree.service.events import MAIN
from banditree.service.settings import Settings, Source, seconds

WRITTEN = {"COLUMNS": list[str] | None, "TIME": str | None}  # how options are written that are read later


def _options() -> Iterator[tuple[str, Any, Any]]:
    """Make an option of every field of `Source` and `Settings` that they describe as one."""
    for kind in (Source, Settings):
        types = get_type_hints(kind)
        for part in fields(kind):
            if part.metadata:
                default = None if part.default == () else part.default
                described = field(default=default, metadata={**part.metadata, "show_default": default != ""})
                yield part.name, WRITTEN.get(part.metadata["metavar"], types[part.name]), described


Experiment = make_dataclass("Experiment", _options(), kw_only=True, namespace={"title": "Experiment"})


@dataclass(kw_only=True)
class Serving:
    """What to serve, where, and to whom."""

    title: ClassVar = "Service"
    items: Annotated[
        Path | None, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ] = None
    config: Path | None = option(None, "FILE", "Serve several experiments, from a TOML file, instead of ITEMS.")
    store: str = option("decisions.db", "STORE", "The log: a file, or postgresql://... for several processes.")
    update_catalogue: bool = option(False, None, "Bring the items into a store that holds others.")
    keep_catalogue: bool = option(False, None, "Go on with the store's items, whatever ITEMS holds.")
    host: str = option("127.0.0.1", "HOST", "Address to listen on; others than the default need a token.")
    port: int = option(8000, "PORT", "Port to listen on; 0 for a free one.", min=0, max=65535)
    token: str | None = option(None, "TOKEN", "Bearer token that may do everything.", envvar="BANDITREE_TOKEN")
    tokens: Path | None = option(
        None, "FILE", 'File of tokens with roles, a line each: "decide SECRET", read or admin.'
    )
    allow_host: list[str] | None = option(
        None, "HOST", "Another name that the service goes by; * for any. May be repeated."
    )
    keep: str | None = option(None, "TIME", "How long events stay in the store, such as 90d; needs --archive.")
    archive: Path | None = option(None, "FOLDER", "Folder for Parquet files of events that are older than --keep.")
    context: str | None = option(
        None, "FEATURES", "What requests tell: device=phone|tablet,age=18..90,returning=bool, or a JSON file."
    )


def _refuse_beside_config(experiment: Any, context: str | None) -> None:
    """Refuse options of one experiment beside a file that has those of all."""
    names = [part.name for part in fields(experiment) if getattr(experiment, part.name) != part.default]
    options = [f"--{name.replace('_', '-')}" for name in [*names, *(["context"] if context is not None else [])]]
    if options:
        raise InvalidValue(f"{', '.join(options)} would be ignored beside --config; write it into the file instead")


@group_options
def serve_command(*, experiment: Experiment, serving: Serving) -> None:  # type: ignore[valid-type]
    """Serve decisions over HTTP, with a live page and a log of every decision.

    Decisions and rewards are stored before they are answered.

    Started again on the same store, it continues where it stopped.

    Example: banditree serve items.csv --arm item --path category,subcategory
    """
    with exit_on_error():
        if serving.update_catalogue and serving.keep_catalogue:
            raise InvalidValue("give --update-catalogue or --keep-catalogue, not both")
        catalogue = "update" if serving.update_catalogue else "keep" if serving.keep_catalogue else "refuse"
        from banditree.service.serve import Access, Archive, make_plan, read_config, serve

        given = {name: value for name, value in vars(experiment).items() if value is not None}
        if serving.config is not None:
            if serving.items is not None:
                raise InvalidValue("give ITEMS or --config, not both")
            _refuse_beside_config(experiment, serving.context)
            plans = read_config(serving.config, catalogue)
        elif serving.items is None or not given.get("arm"):
            raise InvalidValue("give a file of items with --arm and --path, or --config")
        else:
            given |= {"items": serving.items, "context": serving.context}
            plans = [make_plan(MAIN, given, Path(), catalogue)]
        access = Access.of(serving.token, serving.tokens, serving.allow_host or ())
        if (serving.keep is None) != (serving.archive is None):
            raise InvalidValue("--keep and --archive go together: how long events stay, and where they go then")
        archive = None
        if serving.keep is not None and serving.archive is not None:
            archive = Archive(seconds(serving.keep, "--keep"), serving.archive)
        serve(plans, store=serving.store, host=serving.host, port=serving.port, access=access, archive=archive)
