"""The options that several commands share, each written once; reading a catalogue, and showing a result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from banditree import plots
from banditree.base.document import Document
from banditree.base.files import write_whole
from banditree.base.result import Result
from banditree.base.words import UNSEEN
from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import WAYS, read_catalogue
from banditree.catalogue.simulation import Workload
from banditree.cli.exits import STOPPED, USER_ERROR, can_write_unicode, check_outputs, exit_with
from banditree.data.lake import is_lake, open_lake
from banditree.data.sources import MAX_BYTES
from banditree.errors.checks import split_names
from banditree.report import html
from banditree.report.text import brief_lines, styled_lines
from banditree.simulation.progress import LONG_SECONDS, Progress, ProgressLines, say

STYLES = {"": "", "headline": "bold", "title": "bold blue", "header": "dim", "code": "cyan", "note": "dim"}
CATALOGUE, SIMULATION, OUTPUT = "Catalogue", "Simulation", "Output"  # boxes of the help


def at_least(low: int) -> Callable[[str | float], int]:
    """Make a parser of whole numbers, at least ``low``, written as 100000, 100_000 or 1e5."""

    def parse(text: str | float) -> int:
        try:
            value = int(text)
        except ValueError:
            try:
                value = int(float(text))
                if value != float(text):
                    raise ValueError
            except (ValueError, OverflowError):
                raise typer.BadParameter(f"{text!r} is not a whole number; write 100000 or 1e5") from None
        if value < low:
            raise typer.BadParameter(f"{text} is below {low}; give at least {low}")
        return value

    return parse


def option(flag: str, metavar: str | None, text: str, box: str | None = None, **more: Any) -> object:
    """Describe an option; ``box`` is the part of the help that it stands in."""
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=box, **more)


# The catalogue

Items = Annotated[
    Path, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, or many, as 'items/*.csv'.")
]
Arm = Annotated[
    str, option("--arm", "COLUMNS", "Column of the items; the values of several, a,b, are joined.", CATALOGUE)
]
Levels = Annotated[
    list[str], option("--path", "COLUMNS", "Columns of the categories, coarse to fine: a,b,c.", CATALOGUE)
]
Column = str | None
Plays = Annotated[Column, option("--plays", "COLUMN", "Column of past plays (views, impressions).", CATALOGUE)]
Successes = Annotated[Column, option("--successes", "COLUMN", "Column of past successes (clicks, sales).", CATALOGUE)]
Mean = Annotated[Column, option("--mean", "COLUMN", "Column of known means, instead of counts.", CATALOGUE)]
Weight = Annotated[Column, option("--weight", "COLUMN", "Column of weights, to average repeated means.", CATALOGUE)]
RewardMean = Annotated[
    Column,
    option("--reward-mean", "COLUMN", "Column of mean rewards that are not rates (revenue, ratings).", CATALOGUE),
]
RewardSd = Annotated[
    Column, option("--reward-sd", "COLUMN", "Column of the standard deviations of rewards.", CATALOGUE)
]
Reward = Annotated[
    Column, option("--reward", "COLUMN", "Column of rewards, in a log with one row per event.", CATALOGUE)
]
LARGEST = "Largest size to decompress a gzipped file to. Default: 5e8."
MaxBytes = Annotated[int | None, option("--max-bytes", "N", LARGEST, CATALOGUE, parser=at_least(1))]


def read_items(items: Path, arm: str, path: list[str], max_bytes: int | None, columns: dict[str, Column]) -> Catalogue:
    """Read the catalogue from the columns that were named."""
    named: dict[str, Any] = {what: column for what, column in columns.items() if column is not None}
    if not named or tuple(named) not in WAYS:
        ways = "--plays and --successes, or --mean, or --plays with --reward-mean and --reward-sd, or --reward"
        got = ", ".join(f"--{what.replace('_', '-')}" for what in named) or "none of them"
        averaged = "; --weight goes with --mean" if "weight" in named else ""
        raise typer.BadParameter(f"give {ways}; got {got}{averaged}")
    arms, levels = split_names("--arm", arm), split_names("--path", path)
    source = open_lake(items, [*arms, *levels]) if is_lake(items) else items
    return read_catalogue(source, arm=arms, path=levels, **named, max_bytes=max_bytes or MAX_BYTES)


# The simulation

Horizon = Annotated[int, option("--horizon", "T", "How many decisions will be made.", SIMULATION, parser=at_least(1))]
Policies = Annotated[
    list[str] | None,
    option("--policy", "NAMES", "Policies to try: ATS,TS,TSC,HTS:2,UCT. Default: all, at every depth.", SIMULATION),
]
Quick = Annotated[bool, option("--quick", None, "Simulate fewer worlds, for a first answer.", SIMULATION)]
Rng = Annotated[int, option("--rng", "N", "Random seed; the same seed gives the same result.", min=0)]
Jobs = Annotated[int, option("--jobs", "N", "Threads; -1 for all cores. Results do not depend on it.", SIMULATION)]

# The output

HtmlFile = Annotated[Path | None, option("--html", "FILE", "Write everything as one web page.", OUTPUT)]
AsJson = Annotated[bool, option("--json", None, "Print JSON instead of text.", OUTPUT)]
QUIET = "Show no progress bar, and only the essential lines."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET, rich_help_panel=OUTPUT)]


@dataclass(frozen=True)
class Output:
    """Shows the result of a command as these options ask."""

    html: Path | None = None
    as_json: bool = False
    quiet: bool = False

    @property
    def progress(self) -> Progress:
        """How to show progress: a bar on a terminal, else a line now and then; nothing with --quiet."""
        return False if self.quiet else None if sys.stderr.isatty() else ProgressLines()

    def announce(self, workload: Workload, jobs: int, *, could_be_quick: bool) -> None:
        """Say before long work how long it takes, and how to get a first answer sooner if there is a way."""
        if not self.quiet and (seconds := workload.estimate_seconds(jobs)) > LONG_SECONDS:
            sooner = " For a first answer sooner: --quick" if could_be_quick else ""
            say(f"{workload.describe(seconds).capitalize()}.{sooner}")

    @property
    def silent(self) -> bool:
        """Whether to print nothing but the result."""
        return self.quiet or self.as_json

    def check(self, source: Path, *others: Path | None, curves: bool = False) -> None:
        """Check before the work starts that the page and other files can be written."""
        check_outputs(*others, self.html, source=source)
        if self.html is not None:
            html.library()
            if curves:
                plots.style.library()

    def show(self, result: Result, document: Document | None = None) -> None:
        """Print the result as JSON, or its document as text: with --quiet, its essential lines."""
        if self.as_json:
            text = json.dumps(result.to_dict(), indent=2, ensure_ascii=not can_write_unicode(sys.stdout))
            typer.echo(UNSEEN.sub(lambda mark: f"\\u{ord(mark[0]):04x}" if mark[0] != "\n" else "\n", text))
            return
        document = result.document() if document is None else document
        console = Console(highlight=False)
        lines = (brief_lines if self.quiet else styled_lines)(document, console.width)
        for style, line in lines:
            console.print(Text(line, style=STYLES[style]), no_wrap=True, overflow="ignore", crop=False)

    def write_page(self, result: Result, source: Path) -> None:
        """Write the page, if it was asked for."""
        if self.html is not None:
            write_whole(self.html, [result.to_html(title=source.name).encode()])
            self.wrote(self.html)

    def wrote(self, file: Path) -> None:
        """Say that a file was written."""
        if not self.silent:
            typer.echo(f"Wrote {file}", err=True)


class _PlainFlags:
    """Shows flags in the help as ``--json``, not as ``--json <bool>``."""

    def get_params(self, ctx: object) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class PlainCommand(_PlainFlags, TyperCommand):
    """A command of the command line."""


class PlainGroup(_PlainFlags, TyperGroup):
    """The command line itself, a group of commands. A usage error is one sentence on stderr, and exit code 2."""

    def main(
        self, args: Sequence[str] | None = None, *_: object, standalone_mode: bool = True, **options: Any
    ) -> object:
        given = sys.argv[1:] if args is None else args
        try:
            result = super().main(args if given else ["--help"], standalone_mode=False, **options)
        except typer.Abort:
            exit_with("Stopped.", STOPPED)
        except Exception as error:
            if not standalone_mode or not hasattr(error, "format_message"):  # Typer has no public name for its errors
                raise
            exit_with(_usage_error(error), USER_ERROR)
        if standalone_mode:
            raise SystemExit(result if isinstance(result, int) else 0)
        return result


def _usage_error(error: Any) -> str:
    """Name the mistake in the options, and where they are explained."""
    context = getattr(error, "ctx", None)
    where = f"; see {context.command_path} --help" if context is not None else ""
    return f"Error: {error.format_message().strip().rstrip('.')}{where}"
