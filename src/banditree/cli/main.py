"""The command line. The commands stand beside what they run; here they become one application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from banditree import __version__
from banditree.cli.outcomes import mistakes, show_what_can_be_shown
from banditree.errors import missing_extra
from banditree.policy.engines import engine
from banditree.stream import native

if TYPE_CHECKING:
    import typer


def main() -> None:
    """What the ``banditree`` script calls: an error of ours is a sentence on stderr and exit code 2, no traceback."""
    show_what_can_be_shown()
    with mistakes():
        application()()


def application() -> typer.Typer:
    """The commands, as a Typer application."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError:
        raise missing_extra("cli", "the command line needs Typer and Rich") from None
    from banditree.cli import catalogue, evaluate, reproduce
    from banditree.cli.flags import Commands

    app = typer.Typer(name="banditree", no_args_is_help=True, pretty_exceptions_enable=False, cls=Commands)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"banditree {__version__}, {_engine()}")
            raise typer.Exit

    option: Any = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Say which version and which engine this is."
    )

    def banditree(version: bool = option) -> None:
        """Bandits on trees of arms: the paper's figures, and policies for a catalogue of your own."""

    app.callback(cls=Commands)(banditree)
    reproduce.register(app)
    catalogue.register(app)
    evaluate.register(app)
    return app


def _engine() -> str:
    """The engine that policies run on, and what to do where it is not the native one."""
    if native is None:
        return "readable engine (the native one was not built; reinstall with a C++ compiler for 20 times the speed)"
    return f"{engine()} engine"
