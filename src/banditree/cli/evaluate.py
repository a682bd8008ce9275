"""The commands about logs: ``banditree evaluate`` for a verdict on policies, ``banditree replay`` to let them learn."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import numpy as np
import typer

from banditree.beliefs import Gaussian
from banditree.cli.exits import exit_on_error
from banditree.cli.options import AsJson, HtmlFile, Output, Quiet, Rng, at_least, option
from banditree.data.items import read_tree
from banditree.data.lake import is_lake, open_lake
from banditree.data.lazy import LazyLog
from banditree.data.log import CONTEXT_KINDS, ESTIMATED, Log, is_service_log, read_log
from banditree.errors import InvalidValue
from banditree.errors.checks import choice, split_names
from banditree.ope.contest import contest
from banditree.ope.rejection import replay
from banditree.ope.rows import ITEM, UNIFORM
from banditree.policy.algorithms import PolicyChoice, parse_policy
from banditree.simulation.progress import ProgressLines, say
from banditree.tree import Tree

NO_PROPENSITY = (
    "without --propensity a policy's choices cannot be told from luck: name the column of the probability with "
    "which each arm was chosen. From now on, log it: policy.decide().propensity. For this log, use --propensity "
    "estimated, which is right only if nothing but the --context columns decided what was shown"
)
NO_COLUMNS = (
    "name the columns: --arm, --reward and --propensity; only a log that `banditree serve` wrote needs none, and this "
    "one does not have its columns"
)
NO_CATEGORIES = "the arms have no categories; give them as --items FILE --path COLUMNS"
NEEDS_ROWS = (
    "{} looks at single rows, and these stay with DuckDB, which only sums them: give one CSV or Parquet file that fits "
    "into memory, such as a sample of the log"
)
AUTO, DUCKDB, MEMORY = "auto", "duckdb", "memory"  # engines
POLICIES = ("ATS", "TSC", "TS")
WITH_CONTEXTS = ("LinATS", *POLICIES)  # by default, if the log has contexts

LOG = "Log"  # box of the help
Column = str | None
Columns = list[str] | None

LOGS = "The log: a CSV or Parquet file, one row per decision. Or many files, as 'logs/*.parquet' or a folder."
LogFile = Annotated[Path, typer.Argument(metavar="LOG", help=LOGS)]
ARM = "Column of the arms, in the log and the items. Not needed for a log of the service."
Arm = Annotated[Column, option("--arm", "COLUMN", ARM, LOG)]
REWARD = "Column of the rewards; cells are empty while none has arrived."
Reward = Annotated[Column, option("--reward", "COLUMN", REWARD, LOG)]
PROPENSITY = "Column of the probability with which the arm was chosen; 'estimated' fits it to the log."
Propensity = Annotated[Column, option("--propensity", "COLUMN", PROPENSITY, LOG)]
ITEMS = "The items in their categories: a CSV or Parquet file."
ItemsFile = Annotated[Path | None, option("--items", "FILE", ITEMS, LOG)]
Levels = Annotated[Columns, option("--path", "COLUMNS", "Columns of the categories, coarse to fine: a,b,c.", LOG)]
CONTEXT = "Columns of the context: a,b,c. With a type where it is not clear: zip:category,age:number."
Context = Annotated[Columns, option("--context", "COLUMNS", CONTEXT, LOG)]
Time = Annotated[Column, option("--time", "COLUMN", "Column of the time. Default: rows are in order of time.", LOG)]
FOLD = "Column of whole numbers, such as a visitor's id: rows with the same fall into the same fold."
Fold = Annotated[Column, option("--fold", "COLUMN", FOLD, LOG)]
ENGINE = "What reads the log: auto (memory for one file that fits, else duckdb), duckdb, or memory."
Engine = Annotated[str, option("--engine", "ENGINE", ENGINE, LOG)]
NAMES = f"Policies. Default: {','.join(POLICIES)}, and LinATS with --context."
PolicyNames = Annotated[list[str] | None, option("--policy", "NAMES", NAMES)]


@dataclass(frozen=True)
class LogOptions:
    """The log that a command is about, and the categories of its arms."""

    log: Path
    arm: str | None
    reward: str | None
    propensity: str | None
    items: Path | None
    path: list[str] | None
    context: list[str] | None
    time: str | None
    fold: str | None = None
    engine: str = AUTO
    quiet: bool = False
    by_row: str | None = None  # what looks at single rows, if something does

    def read(self) -> tuple[Log, Tree]:
        """Read the log, and the tree of its arms: from the items, from the log's own paths, or flat."""
        levels, context = split_names("--path", self.path), _parse_context(split_names("--context", self.context))
        if self.items is None and levels:
            raise InvalidValue("--path names columns of the items; give their file as --items")
        log = self._read_log(context)
        if self.items is not None:
            if self.arm is None:
                raise InvalidValue("--items needs --arm, the column of its items")
            return log, read_tree(self.items, arm=[self.arm], path=levels)
        return log, log.tree or Tree(list(log.ids))

    def _read_log(self, context: dict[str, str | None]) -> Log:
        source = self._open()
        if self.reward is None and self.propensity is None and self.time is None and is_service_log(source):
            return self._watched(read_log(source, context=context))
        if self.arm is None or self.reward is None:
            raise InvalidValue(NO_COLUMNS)
        if self.propensity is None:
            raise InvalidValue(NO_PROPENSITY)
        columns: dict[str, Any] = {"arm": self.arm, "reward": self.reward, "propensity": self.propensity}
        return self._watched(read_log(source, **columns, context=context, time=self.time, fold=self.fold))

    def _open(self) -> object:
        """Return the file, or what DuckDB opens."""
        engine = choice("--engine", self.engine, (AUTO, DUCKDB, MEMORY))
        if engine == DUCKDB or (engine == AUTO and is_lake(self.log)):
            if self.by_row is not None:
                raise InvalidValue(NEEDS_ROWS.format(self.by_row))
            return open_lake(self.log, [self.arm or "arm"])
        return self.log

    def _watched(self, log: Log) -> Log:
        """Print what the engine of a lazy log computes, with its progress now and then."""
        if isinstance(log, LazyLog) and not self.quiet:
            log.report = say
            Thread(target=_say_how_far, daemon=True).start()
        return log


def _say_how_far() -> None:
    """Watch what DuckDB computes."""
    import duckdb

    lines = ProgressLines("DuckDB: ")
    while True:
        lines(max(duckdb.query_progress() / 100, 0.0))
        clock.sleep(1.0)


def _parse_context(names: list[str]) -> dict[str, str | None]:
    """Split "zip:category" into a column and its type, if there is one."""
    parts = [name.rpartition(":") for name in names]
    return {
        (column if kind in CONTEXT_KINDS else name): (kind if kind in CONTEXT_KINDS else None)
        for name, (column, _, kind) in zip(names, parts, strict=True)
    }


def evaluate_command(
    *,
    log: LogFile,
    arm: Arm = None,
    reward: Reward = None,
    propensity: Propensity = None,
    items: ItemsFile = None,
    path: Levels = None,
    context: Context = None,
    time: Time = None,
    fold: Fold = None,
    engine: Engine = AUTO,
    policy: PolicyNames = None,
    target: Annotated[
        list[str] | None, option("--target", "NAMES", "Targets that do not learn: 'uniform', or 'item:ID'.")
    ] = None,
    adaptive: Annotated[
        bool | None,
        typer.Option(
            "--adaptive/--not-adaptive",
            help="Whether a learning policy wrote the log. Default: yes for a log of the service.",
        ),
    ] = None,
    share: Annotated[
        float, option("--share", "SHARE", "Share of the log that policies learn from.", min=0.01, max=0.99)
    ] = 0.5,
    rng: Rng = 0,
    html: HtmlFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate what policies would have earned in place of the one that wrote a log.

    Each policy learns from the first part of the log and is evaluated on the rest, next to the logging policy. Targets
    that do not learn are evaluated as they are.

    With --quiet, print only the verdict.

    Example: banditree evaluate log.csv --arm item --reward click --propensity pscore --items items.csv --path category

    Example: banditree evaluate log.csv    (a log that `banditree serve` wrote)

    Example: banditree evaluate 'logs/*.parquet' --arm item --reward click --propensity p --time at   (by DuckDB)
    """
    with exit_on_error():
        output = Output(html, as_json, quiet)
        output.check(log, curves=True)
        by_row = "--context" if context else None
        options = LogOptions(log, arm, reward, propensity, items, path, context, time, fold, engine, quiet, by_row)
        rows, tree = options.read()
        targets = {_target_name(name): name for name in split_names("--target", target)}
        policies = _policies(policy, rows, tree, none_by_default=bool(targets))
        is_adaptive = rows.learned_online if adaptive is None else adaptive
        if is_adaptive:
            rows.notes = (*rows.notes, "a learning policy wrote this log: its rows are weighted for that")
        result = contest(
            policies | targets,
            rows,
            tree=tree,
            share=share,
            adaptive=ESTIMATED if is_adaptive else False,
            rng=rng,
            in_command=True,
        )
        output.show(result)
        output.write_page(result, log)


def replay_command(
    *,
    log: LogFile,
    arm: Arm = None,
    reward: Reward = None,
    propensity: Propensity = None,
    items: ItemsFile = None,
    path: Levels = None,
    context: Context = None,
    time: Time = None,
    policy: PolicyNames = None,
    orders: Annotated[
        int | None,
        option(
            "--orders",
            "N",
            "Orders of the rows: by time first, then random. Default: 1 to 20, by length.",
            parser=at_least(1),
        ),
    ] = None,
    rng: Rng = 0,
    html: HtmlFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let policies learn from a log of random choices, as if they had been live.

    A row counts if the policy chooses the arm that was shown; a log that is not uniform is thinned until it is.

    Example: banditree replay log.csv --arm item --reward click --propensity pscore --items items.csv --path category
    """
    with exit_on_error():
        output = Output(html, as_json, quiet)
        output.check(log, curves=True)
        rows, tree = LogOptions(log, arm, reward, propensity, items, path, context, time, by_row="replay").read()
        result = replay(_policies(policy, rows, tree), rows, tree=tree, orders=orders, rng=rng)
        output.show(result)
        output.write_page(result, log)


def _target_name(target: str) -> str:
    """Name a fixed target in results, and refuse what is not one."""
    if target == UNIFORM:
        return UNIFORM
    if target.startswith(ITEM) and target != ITEM:
        return f"always {target.removeprefix(ITEM)}"
    raise InvalidValue(f"--target {target!r} must be 'uniform', or 'item:ID' for always the same item")


def _policies(
    given: list[str] | None, log: Log, tree: Tree, *, none_by_default: bool = False
) -> dict[str, Callable[..., object]]:
    """Look up policies by name; by default those that the log and the tree allow."""
    names = split_names("--policy", given)
    if not names and none_by_default:
        return {}
    choices = [parse_policy(name, tree=tree) for name in names or (POLICIES if log.contexts is None else WITH_CONTEXTS)]
    if not names and tree.depth == 0:
        left_out = [choice.label for choice in choices if _needs_categories(choice)]
        choices = [choice for choice in choices if not _needs_categories(choice)]
        log.notes = (*log.notes, f"left out: {', '.join(left_out)}; {NO_CATEGORIES}")
    return {choice.label: _factory(choice, log, tree) for choice in choices}


def _needs_categories(choice: PolicyChoice) -> bool:
    about = choice.kind.about
    return not about.adapts and about.levels != 0


def _factory(choice: PolicyChoice, log: Log, tree: Tree) -> Callable[..., object]:
    """Return what builds a policy. Linear ones need contexts; for rewards outside [0, 1] beliefs are Gaussian."""
    about = choice.kind.about
    factory: Callable[..., object] = choice.factory
    if tree.depth == 0 and _needs_categories(choice):
        raise InvalidValue(f"policy {choice.label} is the same as one without categories here: {NO_CATEGORIES}")
    if about.takes_contexts:
        if log.contexts is None:
            raise InvalidValue(f"policy {choice.label!r} needs contexts; name their columns as --context a,b,c")
        return factory
    sums = log.summed()
    low, high = sums.extremes
    if low >= 0 and high <= 1:
        return factory
    if not about.takes_prior:  # they only take rewards in [0, 1]
        raise InvalidValue(f"policy {choice.label!r} takes rewards from 0 to 1; scale them, or use ATS or TSC")
    mean = float(np.average(sums.rewards, weights=sums.counted))
    variance = np.average((sums.rewards - mean) ** 2 + sums.squares / sums.counted, weights=sums.counted)
    return partial(factory, prior=Gaussian(max(float(np.sqrt(variance)), 1e-6), mean=mean))
