"""The command ``banditree serve``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from banditree.cli import options
from banditree.cli.exits import exit_on_error
from banditree.cli.flags import Command
from banditree.errors import InvalidValue
from banditree.service.settings import DEFAULT_POLICY, Settings
from banditree.tables import read_tree

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("serve", cls=Command)(serve_command)


def serve_command(
    items: options.Items,
    arm: options.Arm,
    path: options.Levels,
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy: ATS, TSC, TS, HTS:2, ...")] = DEFAULT_POLICY,
    store: Annotated[
        str, typer.Option(metavar="STORE", help="The log: a file, or postgresql://... for several processes.")
    ] = "decisions.db",
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; others than the default need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on; 0 for a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Bearer token that clients must send. Default: BANDITREE_TOKEN, if set."),
    ] = None,
    explore: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of decisions made at random.")
    ] = 0.0,
    half_life: Annotated[
        float | None, typer.Option(metavar="N", help="Number of rewards after which evidence counts half.")
    ] = None,
    reward_window: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a reward may take: 90 (seconds), 30m, 2h, 1d.")
    ] = None,
    default_reward: Annotated[
        float | None, typer.Option(metavar="R", help="Reward of a decision whose window passes without one.")
    ] = None,
    learn_late: Annotated[bool, typer.Option("--learn-late", help="Learn from rewards after the window too.")] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Decide and log, but leave the choice to the caller, and learn from it.")
    ] = False,
    dim: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Length of the contexts, for LinTS and other linear policies."),
    ] = None,
    reward_sd: Annotated[
        float | None, typer.Option(metavar="SD", help="Standard deviation of rewards that are not rates.")
    ] = None,
) -> None:
    """Serve decisions over HTTP, with a live page and a log of every decision.

    Decisions and rewards are stored before they are answered.

    Started again on the same store, it continues where it stopped, with the catalogue that is in the store.

    Example: banditree serve items.csv --arm item --path category,subcategory
    """
    with exit_on_error():
        settings = Settings(
            policy=policy,
            explore=explore,
            half_life=half_life,
            dim=dim,
            reward_sd=reward_sd,
            reward_window=None if reward_window is None else _seconds(reward_window),
            default_reward=default_reward,
            learn_late=learn_late,
            shadow=shadow,
        )
        tree = read_tree(items, arm=options.split_names("--arm", [arm]), path=options.split_names("--path", path))
        from banditree.service.serve import serve

        arms = {str(route[-1]): [str(name) for name in route[:-1]] for route in tree.paths()}
        if len(arms) < tree.n_arms:
            raise InvalidValue("two items have the same name once numbers are written as text; rename one of them")
        if token is None:
            token = os.environ.get("BANDITREE_TOKEN") or None
        serve(arms, items.name, settings, store=store, host=host, port=port, token=token)


def _seconds(text: str) -> float:
    """Convert a time such as 90, 30m or 2h to seconds."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise InvalidValue(f"--reward-window {text!r} is not a time; write 90 (seconds), 30m, 2h or 1d") from None
