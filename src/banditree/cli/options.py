"""The options that several commands share, in groups: what to read, what to simulate, how to show the result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from banditree import plots
from banditree.catalogue.contexts import ContextModel
from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import WAYS, read_catalogue
from banditree.catalogue.simulation import Plan
from banditree.cli.exits import can_write_unicode, check_outputs
from banditree.errors.checks import split_names
from banditree.ope.log import Log, read_log
from banditree.report import html
from banditree.report.document import Document
from banditree.report.files import write_whole
from banditree.report.text import brief_lines, styled_lines
from banditree.report.words import UNSEEN
from banditree.simulation.progress import LONG_SECONDS, Progress, ProgressLines, say
from banditree.tables import read_tree

STYLES = {"": "", "headline": "bold", "title": "bold blue", "header": "dim", "code": "cyan", "note": "dim"}


def number(low: int, metavar: str, text: str, **options: Any) -> Any:
    """Make an option for a whole number that is at least ``low``, written as 100000, 100_000 or 1e5."""

    def parse(written: Any) -> int:
        try:
            value = int(written)
        except ValueError:
            try:
                value = int(float(written))
                if value != float(written):
                    raise ValueError
            except (ValueError, OverflowError):
                raise typer.BadParameter(f"{written!r} is not a whole number; write 100000 or 1e5") from None
        if value < low:
            raise typer.BadParameter(f"{written} is below {low}; give at least {low}")
        return value

    return typer.Option(parser=parse, metavar=metavar, help=text, **options)


def _column(text: str) -> Any:
    return typer.Option(metavar="COLUMN", help=text, show_default=False)


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
Rng = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed; the same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar, and only the essential lines.")]


@dataclass(kw_only=True)
class Source:
    """The catalogue that a command is about."""

    items: Items
    arm: Arm
    path: Levels
    plays: Annotated[str | None, _column("Column of past plays (views, impressions).")] = None
    successes: Annotated[str | None, _column("Column of past successes (clicks, sales).")] = None
    mean: Annotated[str | None, _column("Column of known means, instead of counts.")] = None
    weight: Annotated[str | None, _column("Column of weights, to average repeated means.")] = None
    reward_mean: Annotated[str | None, _column("Column of mean rewards that are not rates (revenue, ratings).")] = None
    reward_sd: Annotated[str | None, _column("Column of the standard deviations of rewards.")] = None
    reward: Annotated[str | None, _column("Column of rewards, in a log with one row per event.")] = None
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="COLUMNS", help="Columns of the context, in a log with --reward: a,b,c."),
    ] = None
    max_bytes: Annotated[int | None, number(1, "N", "Largest size to decompress a gzipped file to. Default: 5e8.")] = (
        None
    )

    def read(self) -> Catalogue:
        """Read the catalogue."""
        columns = {what for way in WAYS for what in way}
        named = {what: column for what, column in vars(self).items() if what in columns and column is not None}
        if not named or tuple(named) not in WAYS:
            ways = "--plays and --successes, or --mean, or --plays with --reward-mean and --reward-sd, or --reward"
            got = ", ".join(f"--{what.replace('_', '-')}" for what in named) or "none of them"
            averaged = "; --weight goes with --mean" if "weight" in named else ""
            raise typer.BadParameter(f"give {ways}; got {got}{averaged}")
        limit: dict[str, Any] = {} if self.max_bytes is None else {"max_bytes": self.max_bytes}
        arm, path = split_names("--arm", self.arm), split_names("--path", self.path)
        return read_catalogue(self.items, arm=arm, path=path, **named, **limit)

    def fit(self) -> tuple[Log, ContextModel]:
        """Read a log with contexts, and fit a model to it."""
        others = ("plays", "successes", "mean", "weight", "reward_mean", "reward_sd")
        if self.reward is None or any(getattr(self, name) is not None for name in others):
            raise typer.BadParameter("--context goes with --reward, in a log with one row per event, and nothing else")
        limit: dict[str, Any] = {} if self.max_bytes is None else {"max_bytes": self.max_bytes}
        arm, path = split_names("--arm", self.arm), split_names("--path", self.path)
        if len(arm) > 1:
            raise typer.BadParameter("--arm names one column where there is a --context")
        columns = split_names("--context", self.context)
        log = read_log(self.items, arm=arm[0], reward=self.reward, context=columns, **limit)
        return log, ContextModel.fit(log, read_tree(self.items, arm=arm, path=path, **limit))


@dataclass(kw_only=True)
class Simulated:
    """What a command simulates."""

    horizon: Annotated[int, number(1, "T", "How many decisions will be made.", show_default=False)]
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAMES", help="Policies to try: ATS,TS,TSC,HTS:2,UCT. Default: all, at every depth."
        ),
    ] = None
    quick: Annotated[bool, typer.Option("--quick", help="Simulate fewer worlds, for a first answer.")] = False
    rng: Rng = 0
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores. Results do not depend on it.")] = -1

    def size(self, *, has_contexts: bool) -> dict[str, Any]:
        """What to simulate, as the functions take it; with contexts they choose the policies themselves."""
        if has_contexts and self.policy:
            raise typer.BadParameter("--policy is not used with --context: LinATS, ATS and LinTS are compared")
        policies = {} if has_contexts else {"policies": split_names("--policy", self.policy) or None}
        return {"horizon": self.horizon, "quick": self.quick, **policies}


@dataclass(kw_only=True)
class Output:
    """How a command shows its result."""

    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as one web page.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False
    quiet: Quiet = False

    @property
    def progress(self) -> Progress:
        """How to show progress: a bar on a terminal, else a line now and then; nothing with --quiet."""
        return False if self.quiet else None if sys.stderr.isatty() else ProgressLines()

    def announce(self, plan: Plan, jobs: int, *, could_be_quick: bool) -> None:
        """Say before long work how long it takes, and how to get a first answer sooner if there is a way."""
        if not self.quiet and (seconds := plan.estimate_seconds(jobs)) > LONG_SECONDS:
            sooner = " For a first answer sooner: --quick" if could_be_quick else ""
            say(f"{plan.describe(seconds).capitalize()}.{sooner}")

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

    def show(self, result: Any, document: Document | None = None) -> None:
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

    def write_page(self, result: Any, source: Path) -> None:
        """Write the page, if it was asked for."""
        if self.html is not None:
            write_whole(self.html, [result.to_html(title=source.name).encode()])
            self.wrote(self.html)

    def wrote(self, file: Path) -> None:
        """Say that a file was written."""
        if not self.silent:
            typer.echo(f"Wrote {file}", err=True)


def group_options(command: Callable[..., None]) -> Callable[..., None]:
    """Make the fields of dataclasses options: a parameter that is annotated with one stands for its fields.

    All parameters must be keyword-only. In the help, required options come first.
    """
    hints = get_type_hints(command, include_extras=True)
    given = signature(command).parameters
    groups = {name: hints[name] for name in given if is_dataclass(hints[name])}
    options: list[Parameter] = []
    for name, parameter in given.items():
        if name not in groups:
            options.append(parameter.replace(annotation=hints[name]))
            continue
        types = get_type_hints(groups[name], include_extras=True)
        for part in fields(groups[name]):
            default = Parameter.empty if part.default is MISSING else part.default
            options.append(Parameter(part.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[part.name]))
    options.sort(key=lambda option: option.default is not Parameter.empty)

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{part.name: values.pop(part.name) for part in fields(group)})
        command(**values)

    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


class _PlainFlags:
    """Shows flags in the help as ``--json``, not as ``--json <bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class PlainCommand(_PlainFlags, TyperCommand):
    """A command of the command line."""


class PlainGroup(_PlainFlags, TyperGroup):
    """The command line itself, which is a group of commands."""
