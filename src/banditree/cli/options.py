"""The options that commands share, and reading a catalogue with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import WAYS, read_catalogue
from banditree.errors import InvalidValue


def whole(low: int) -> Callable[[Any], int]:
    """Make a parser of whole numbers, at least ``low``, written as 100000, 100_000 or 1e5."""

    def number(text: Any) -> int:
        try:
            found = int(text)
        except ValueError:
            try:
                parsed = float(text)
                if not parsed.is_integer():
                    raise ValueError
                found = int(parsed)
            except (ValueError, OverflowError):
                raise typer.BadParameter(f"{text!r} is not a whole number; write 100000 or 1e5") from None
        if found < low:
            raise typer.BadParameter(f"{text} is below {low}; give at least {low}")
        return found

    return number


def _column(text: str) -> Any:
    return typer.Option(metavar="COLUMN", help=text, show_default=False)


def _number(low: int, metavar: str, text: str, **options: Any) -> Any:
    return typer.Option(parser=whole(low), metavar=metavar, help=text, **options)


Items = Annotated[Path, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")]
Arm = Annotated[
    str, typer.Option(metavar="COLUMNS", help="Column of the items; the values of several, a,b, are joined.")
]
Levels = Annotated[
    list[str],
    typer.Option(
        "--path", metavar="COLUMNS", help="Columns of the categories, coarse to fine: a,b,c.", show_default=False
    ),
]
Plays = Annotated[str | None, _column("Column of past plays (views, impressions).")]
Successes = Annotated[str | None, _column("Column of past successes (clicks, sales).")]
Mean = Annotated[str | None, _column("Column of known means, instead of counts.")]
Weight = Annotated[str | None, _column("Column of weights, to average repeated means.")]
RewardMean = Annotated[str | None, _column("Column of mean rewards that are not rates (revenue, ratings).")]
RewardSd = Annotated[str | None, _column("Column of the standard deviations of rewards.")]
Reward = Annotated[str | None, _column("Column of rewards, in a log with one row per event.")]
MaxBytes = Annotated[int | None, _number(1, "N", "Largest size to decompress a gzipped file to. Default: 5e8.")]
Horizon = Annotated[int, _number(1, "T", "How many decisions will be made.", show_default=False)]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="NAMES", help="Policies to try: ATS,TS,TSC,HTS:2,UCT. Default: all, at every depth."
    ),
]
Seeds = Annotated[int | None, _number(1, "N", "Worlds to simulate. Default: by size, 8 to 100.")]
Worlds = Annotated[int | None, _number(4, "N", "Worlds to simulate, at least 4. Default: by size, 8 to 100.")]
Rng = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed; the same seed gives the same result.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores. Results do not depend on it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as one web page.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar, and only the essential lines.")]


def read_items(items: Path, arm: str, path: list[str], max_bytes: int | None, **columns: str | None) -> Catalogue:
    """Read the catalogue that a command is about."""
    named = {what: column for what, column in columns.items() if column is not None}
    if tuple(named) not in WAYS:
        normal = "--plays with --reward-mean and --reward-sd"
        raise typer.BadParameter(f"give --plays and --successes, or --mean, or {normal}, or --reward")
    limit = {} if max_bytes is None else {"max_bytes": max_bytes}
    return read_catalogue(items, arm=split_names("--arm", [arm]), path=split_names("--path", path), **named, **limit)  # type: ignore[arg-type]


def simulation_options(policy: list[str] | None, seeds: int | None, rng: int, jobs: int, quiet: bool) -> dict[str, Any]:
    """Collect the options that commands pass on to a simulation."""
    policies = split_names("--policy", policy or []) or None
    return {"policies": policies, "seeds": seeds, "rng": rng, "jobs": jobs, "progress": False if quiet else None}


def split_names(option: str, given: list[str]) -> list[str]:
    """Split "a,b,c" into names, for an option that may be repeated."""
    found = []
    for text in given:
        names = [part.strip() for part in text.split(",") if part.strip()]
        if not names:
            raise InvalidValue(f"{option} {text!r} contains no name; give names separated by commas: a,b,c")
        found += names
    return found
