"""The directive ``{commands}``: every command and option of the command line, as ``--help`` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive


class Commands(Directive):  # type: ignore[misc]  # docutils carries no types
    """One section per command, with its help and its options."""

    def run(self) -> list[nodes.Node]:
        return list(_sections())


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _sections() -> Iterator[nodes.Node]:
    from typer.main import get_command

    from banditree.cli import main as cli

    group: Any = get_command(cli.application())
    for name, command in group.commands.items():
        section = nodes.section(ids=[f"banditree-{name}"])
        section += nodes.title(text=f"banditree {name}")
        for paragraph in (command.help or "").split("\n\n"):
            section += nodes.paragraph(text=" ".join(paragraph.split()))
        options = nodes.definition_list()
        for parameter in command.params:
            call, words = _option(parameter)
            term = nodes.term("", "", nodes.literal(text=call))
            options += nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph(text=words)))
        section += options
        yield section


def _option(parameter: Any) -> tuple[str, str]:
    """How it is written, and what it does."""
    label = (parameter.metavar or "").strip("{}")
    if parameter.param_type_name == "argument":
        call = label or parameter.name.upper()
    else:
        names = ", ".join(parameter.opts)
        call = names if parameter.is_flag or not label else f"{names} {label}"
    return call, f"{parameter.help or ''}{' Required.' if parameter.required else ''}"
