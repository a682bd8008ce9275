"""The options that several commands share, in groups: what to read, what to simulate, how to show the result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from banditree import plots
from banditree.base.document import Document
from banditree.base.files import write_whole
from banditree.base.words import UNSEEN
from banditree.catalogue.contexts import ContextModel
from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import WAYS, read_catalogue
from banditree.catalogue.simulation import Plan
from banditree.cli.exits import can_write_unicode, check_outputs
from banditree.data.items import read_tree
from banditree.data.log import Log, read_log
from banditree.errors.checks import split_names
from banditree.report import html
from banditree.report.text import brief_lines, styled_lines
from banditree.simulation.progress import LONG_SECONDS, Progress, ProgressLines, say

STYLES = {"": "", "headline": "bold", "title": "bold blue", "header": "dim", "code": "cyan", "note": "dim"}


def option(default: Any, metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    """Describe an option of a command, for `group_options`. With ``...`` as its default, it is required."""
    described = {"metavar": metavar, "help": text, "names": names, **more}
    return field(metadata=described) if default is ... else field(default=default, metadata=described)


def whole(low: int) -> Callable[[Any], int]:
    """Make a parser of whole numbers, at least ``low``, written as 100000, 100_000 or 1e5."""

    def parse(text: Any) -> int:
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


Rng = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed; the same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar, and only the essential lines.")]


@dataclass(kw_only=True)
class Source:
    """The catalogue that a command is about."""

    title: ClassVar = "Catalogue"
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="The catalogue: a CSV or Parquet file, one row per item.")
    ]
    arm: str = option(..., "COLUMNS", "Column of the items; the values of several, a,b, are joined.")
    path: list[str] = option(..., "COLUMNS", "Columns of the categories, coarse to fine: a,b,c.")
    plays: str | None = option(None, "COLUMN", "Column of past plays (views, impressions).")
    successes: str | None = option(None, "COLUMN", "Column of past successes (clicks, sales).")
    mean: str | None = option(None, "COLUMN", "Column of known means, instead of counts.")
    weight: str | None = option(None, "COLUMN", "Column of weights, to average repeated means.")
    reward_mean: str | None = option(None, "COLUMN", "Column of mean rewards that are not rates (revenue, ratings).")
    reward_sd: str | None = option(None, "COLUMN", "Column of the standard deviations of rewards.")
    reward: str | None = option(None, "COLUMN", "Column of rewards, in a log with one row per event.")
    context: list[str] | None = option(None, "COLUMNS", "Columns of the context, in a log with --reward: a,b,c.")
    max_bytes: int | None = option(
        None, "N", "Largest size to decompress a gzipped file to. Default: 5e8.", parser=whole(1)
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

    title: ClassVar = "Simulation"
    horizon: int = option(..., "T", "How many decisions will be made.", parser=whole(1))
    policy: list[str] | None = option(
        None, "NAMES", "Policies to try: ATS,TS,TSC,HTS:2,UCT. Default: all, at every depth."
    )
    quick: bool = option(False, None, "Simulate fewer worlds, for a first answer.")
    rng: Rng = 0
    jobs: int = option(-1, "N", "Threads; -1 for all cores. Results do not depend on it.")

    def size(self, *, has_contexts: bool) -> dict[str, Any]:
        """What to simulate, as the functions take it; with contexts they choose the policies themselves."""
        if has_contexts and self.policy:
            raise typer.BadParameter("--policy is not used with --context: LinATS, ATS and LinTS are compared")
        policies = {} if has_contexts else {"policies": split_names("--policy", self.policy) or None}
        return {"horizon": self.horizon, "quick": self.quick, **policies}


@dataclass(kw_only=True)
class Output:
    """How a command shows its result."""

    title: ClassVar = "Output"
    html: Path | None = option(None, "FILE", "Write everything as one web page.")
    as_json: bool = option(False, None, "Print JSON instead of text.", "--json")
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
    """Make a command of a function whose parameters, all keyword-only, have an `option` as a default.

    A parameter that is annotated with a dataclass stands for its fields, which the help shows in a box of their own,
    with the ``title`` of that class. In each box, required options come first.
    """
    hints = get_type_hints(command, include_extras=True)
    given = signature(command).parameters
    groups = {name: hints[name] for name in given if is_dataclass(hints[name])}
    options: list[Parameter] = []
    for name, parameter in given.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            for part in fields(groups[name]):
                options.append(_in_box(groups[name].title, _parameter(part.name, types[part.name], part)))
        else:
            options.append(_parameter(name, hints[name], parameter.default))
    options.sort(key=lambda option: option.default is not Parameter.empty)

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{part.name: values.pop(part.name) for part in fields(group)})
        command(**values)

    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """Make a parameter as Typer has it, of one whose default may be an `option`."""
    if isinstance(default, Field):
        if described := dict(default.metadata):
            names = described.pop("names", ()) or [f"--{name.replace('_', '-')}"]
            annotation = Annotated[annotation, typer.Option(*names, **described)]
        default = Parameter.empty if default.default is MISSING else default.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _in_box(title: str, parameter: Parameter) -> Parameter:
    """Show an option in the box of the help with this title; arguments stay in theirs."""
    described = copy(parameter.annotation.__metadata__[0])
    if isinstance(described, OptionInfo):
        described.rich_help_panel = title
    return parameter.replace(annotation=Annotated[parameter.annotation.__origin__, described])


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
