"""The ``banditree`` script: combines the commands into one application and runs it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from banditree import __version__
from banditree.cli.exits import exit_on_error, replace_unprintable
from banditree.errors import missing_extra
from banditree.policy.engines import engine
from banditree.stream import native

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line. Errors of users print one sentence on stderr and exit with code 2, without a traceback."""
    replace_unprintable()
    with exit_on_error():
        application()()


def application() -> typer.Typer:
    """Build the Typer application with all commands."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError:
        raise missing_extra("cli", "the command line needs Typer and Rich") from None
    from banditree.cli.catalogue import advise_command, example_command, inspect_command, simulate_command
    from banditree.cli.evaluate import evaluate_command, replay_command
    from banditree.cli.options import PlainCommand, PlainGroup
    from banditree.cli.reproduce import reproduce_command
    from banditree.cli.serve import archive_command, serve_command

    app = typer.Typer(name="banditree", no_args_is_help=True, pretty_exceptions_enable=False, cls=PlainGroup)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"banditree {__version__}, {_engine()}")
            raise typer.Exit

    option = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version and the engine."
    )

    def banditree(version: bool = option) -> None:
        """Bandits on trees of arms: the paper's figures, and policies for your own catalogue."""
        print_what_is_logged()

    app.callback(cls=PlainGroup)(banditree)
    commands: list[Callable[..., None]] = [
        reproduce_command,
        inspect_command,
        simulate_command,
        advise_command,
        example_command,
        evaluate_command,
        replay_command,
        serve_command,
        archive_command,
    ]
    for command in commands:
        app.command(command.__name__.removesuffix("_command"), cls=PlainCommand)(command)
    return app


class _Stderr(logging.Handler):
    """Prints log messages on the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr, flush=True)


def print_what_is_logged() -> None:
    """Print what long work says, unless the logger ``banditree`` was given handlers."""
    logger = logging.getLogger("banditree")
    if not logger.handlers:
        logger.addHandler(_Stderr())
        logger.setLevel(logging.INFO)


def _engine() -> str:
    """Name the engine that policies run on, and say what to do if the native one is missing."""
    if native is None:
        return "readable engine (the native one was not built; reinstall with a C++ compiler for 20 times the speed)"
    return f"{engine()} engine"
