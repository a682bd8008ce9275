"""The command ``banditree serve``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from banditree.catalogue.read import read_tree
from banditree.cli import options
from banditree.cli.exits import exit_on_error
from banditree.cli.flags import Command
from banditree.errors import InvalidValue
from banditree.service.settings import DEFAULT_POLICY, Settings

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("serve", cls=Command)(serve_command)


def serve_command(
    items: options.Items,
    arm: options.Arm,
    path: options.Levels,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="What decides: ATS, TSC, TS, HTS:2, ...")
    ] = DEFAULT_POLICY,
    store: Annotated[
        str, typer.Option(metavar="PLACE", help="The log: a file, or postgresql://... for several processes.")
    ] = "decisions.db",
    host: Annotated[str, typer.Option(help="The address to listen on; any but this one needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(help="What clients must send as bearer token. Default: BANDITREE_TOKEN, if set.")
    ] = None,
    explore: Annotated[float, typer.Option(min=0, max=1, help="The part of decisions made at random.")] = 0.0,
    half_life: Annotated[
        float | None, typer.Option(metavar="N", help="Rewards after which what was learned counts half.")
    ] = None,
    reward_window: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a reward may take: 90 (seconds), 30m, 2h, 1d.")
    ] = None,
    default_reward: Annotated[
        float | None, typer.Option(metavar="R", help="What a decision earns when its window passes without a reward.")
    ] = None,
    learn_late: Annotated[bool, typer.Option("--learn-late", help="Learn from rewards after the window too.")] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Decide and log, but leave the choice to the caller; learn from that.")
    ] = False,
    dim: Annotated[int | None, typer.Option(min=1, metavar="N", help="Length of contexts, for LinTS and such.")] = None,
    reward_sd: Annotated[
        float | None, typer.Option(metavar="SD", help="Rewards are not rates but vary by about this much.")
    ] = None,
) -> None:
    """Serve decisions over HTTP, with a live page, and keep every one of them.

    Decisions and rewards are written to the store before they are answered. Started again on the same store, the
    service goes on where it was; the catalogue is then the one in the store, as POST /v1/arms has changed it.

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
    """A time such as 90, 30m or 2h, in seconds."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise InvalidValue(f"--reward-window {text!r} is not a time; write 90 (seconds), 30m, 2h or 1d") from None
