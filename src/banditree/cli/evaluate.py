"""The command ``banditree evaluate``: from a log to a verdict on policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from banditree.beliefs import Gaussian
from banditree.catalogue.candidates import named
from banditree.cli.exits import exit_on_error
from banditree.cli.flags import Command, grouped
from banditree.cli.options import Output, Rng, split_names
from banditree.errors import InvalidValue
from banditree.ope.contest import Contest, contest
from banditree.ope.log import Log, read_log
from banditree.policy.algorithms import parse_policy
from banditree.report import words
from banditree.report.document import Bullets, Document, Grid, Note
from banditree.report.words import count, number
from banditree.tables import read_tree
from banditree.tree import Tree

NO_PROPENSITY = (
    "without --propensity a policy's choices cannot be told from luck: name the column of the probability with "
    "which each arm was chosen. From now on, log it: policy.decide().propensity. For this log, use --propensity "
    "estimated, which is right only if nothing but the --context columns decided what was shown"
)
POLICIES = ("ATS", "TSC", "TS")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("evaluate", cls=Command)(evaluate_command)


@grouped
def evaluate_command(
    *,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log: a CSV or Parquet file, one row per decision.")],
    arm: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the arms, in the log and the items.")],
    reward: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the rewards; cells are empty while none has arrived.")
    ],
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the probability with which the arm was chosen; 'estimated' fits it to the log.",
        ),
    ] = None,
    items: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The items in their categories: a CSV or Parquet file.")
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option("--path", metavar="COLUMNS", help="Columns of the categories, coarse to fine: a,b,c."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAMES", help=f"Policies to evaluate. Default: {','.join(POLICIES)}."),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", metavar="COLUMNS", help="Columns of the context: a,b,c.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the time. Default: rows are in order of time.")
    ] = None,
    share: Annotated[
        float, typer.Option(min=0.01, max=0.99, metavar="SHARE", help="Share of the log that policies learn from.")
    ] = 0.5,
    rng: Rng = 0,
    output: Output,
) -> None:
    """Estimate what policies would have earned in place of the one that wrote a log.

    Each policy learns from the first part of the log and is evaluated on the rest, next to the logging policy.

    With --quiet, print only the verdict.

    Example: banditree evaluate log.csv --arm item --reward click --propensity pscore --items items.csv --path category
    """
    with exit_on_error():
        output.check(log, curves=True)
        levels = split_names("--path", path or [])
        if items is None and levels:
            raise InvalidValue("--path names columns of the items; give their file as --items")
        if propensity is None:
            raise InvalidValue(NO_PROPENSITY)
        columns = split_names("--context", context or [])
        found = read_log(log, arm=arm, reward=reward, propensity=propensity, context=columns, time=time)
        tree = Tree(list(found.ids)) if items is None else read_tree(items, arm=[arm], path=levels)
        wanted = split_names("--policy", policy or []) or list(POLICIES)
        result = contest(_factories(wanted, tree, found), found, tree=tree, share=share, rng=rng)
        output.show(result, _document(result))
        output.write_page(result, log)


def _factories(names: list[str], tree: Tree, log: Log) -> dict[str, Callable[..., Any]]:
    """Look up policies by name. Linear ones need contexts; for rewards outside [0, 1] beliefs are Gaussian."""
    found: dict[str, Callable[..., Any]] = {}
    for name in names:
        choice = parse_policy(name, tree=tree)
        about = choice.kind.about
        if about.takes_contexts:
            if log.contexts is None:
                raise InvalidValue(f"policy {name!r} needs contexts; name their columns as --context a,b,c")
            found[choice.label] = choice.factory
            continue
        (candidate,) = named([name], tree)
        found[candidate.label] = candidate.factory
        if log.rewards.min() < 0 or log.rewards.max() > 1:
            if not about.takes_prior:  # they only take rewards in [0, 1]
                raise InvalidValue(f"policy {name!r} takes rewards from 0 to 1; scale them, or use ATS or TSC")
            sd = max(float(log.rewards.std()), 1e-6)
            found[candidate.label] = partial(candidate.factory, prior=Gaussian(sd, mean=float(log.rewards.mean())))
    return found


def _document(result: Contest) -> Document:
    """Lay out the verdict, then what it is based on."""
    learned, evaluated = count(result.learned, "row"), count(result.any.rows, "row")
    rows = [
        (row.policy, number(row.value), words.interval(row.interval), f"{row.ess:,}", row.answer)
        for row in result.table()
    ]
    table = Grid(("policy", "value", "95% interval", "effective rows", "better?"), rows)
    note = Note(f"Learned from {learned}, evaluated on {evaluated} (by {result.any.trusted.estimator.name}).")
    return Document(result.verdict, (note, table, Bullets(result.notes)))
