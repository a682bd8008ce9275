"""Write docs/api.md from the docstrings: ``python docs/make_api.py``. A test fails when it is out of date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import banditree as bt

TARGET = Path(__file__).with_name("api.md")
HEAD = """# API

Every public name, made from the docstrings by `python docs/make_api.py`. Names on this page are below `banditree`,
which the examples import as `bt`; parameters after `*` are keyword-only.
"""
GROUPS = {
    "Trees": ("Tree",),
    "Policies": ("Policy", *bt.ALGORITHMS, "load", "from_bytes", "engine"),
    "Beliefs": ("Beta", "Gaussian", "Counts", "Linear", "Belief"),
    "Rules": ("Thompson", "UCB", "BestArm", "Rule", "View"),
    "Logs": ("read_log", "evaluate", "replay"),
    "Simulation": ("simulate", "on", "Runs", "sweep", "Sweep", "simulation.runs.Comparison", "output.tables.Table"),
}
MODULES = ("clustering", "problems", "theory", "catalogue", "ope", "plots", "testing", "errors")


def text() -> str:
    """The whole page."""
    parts = [HEAD, _contents()]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _entry(name, _find(name))
    for module in _modules():
        parts.append(f"## {_short(module)}\n")
        parts.append(_markdown(inspect.getdoc(module)))
        for name in _public(module):
            parts += _entry(f"{_short(module)}.{name}", getattr(module, name))
    parts += _command_line()
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _contents() -> str:
    titles = [*GROUPS, *map(_short, _modules()), "Command line"]
    return ", ".join(f"[{title}](#{title.lower().replace(' ', '-')})" for title in titles) + "\n"


def _modules() -> list[ModuleType]:
    return [getattr(bt, name, None) or import_module(f"banditree.{name}") for name in MODULES]


def _find(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(f"banditree.{module}") if module else bt, last)


def _short(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _public(module: ModuleType) -> list[str]:
    """What the module says is public, else what it defines; values without a docstring of their own are left out."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    things = {name: getattr(module, name) for name in names}
    return [name for name, thing in things.items() if inspect.isclass(thing) or inspect.isroutine(thing)]


def _entry(name: str, thing: Any) -> Iterator[str]:
    """A heading with the call, the docstring, and for a class its own methods and properties."""
    yield f"### {name}\n"
    yield f"`{name}{_signature(thing)}`\n"
    yield _markdown(_own_doc(thing))
    if inspect.isclass(thing):
        members = [line for member in _members(thing) if (line := _member(member, thing))]
        if members:
            yield "\n".join(members) + "\n"


def _members(thing: type) -> list[str]:
    """Methods and properties in the order of the source; what a base of ours has is told there."""
    bases = [base for base in thing.__mro__[1:] if base.__module__.startswith("banditree")]
    return [name for name in vars(thing) if not name.startswith("_") and not any(hasattr(base, name) for base in bases)]


def _member(name: str, thing: type) -> str | None:
    """One line a method or property: its call and the first paragraph of its docstring."""
    raw = inspect.getattr_static(thing, name)
    value = getattr(thing, name)
    is_value = isinstance(raw, property) or hasattr(raw, "attrname")  # the latter: a cached property
    doc = (raw.__doc__ if is_value else inspect.getdoc(value)) or ""
    if not doc or not (is_value or inspect.isroutine(value)):
        return None
    call = f"{name}" if is_value else f"{name}{_signature(value)}"
    first = _markdown(inspect.cleandoc(doc).split("\n\n")[0]).strip().replace("\n", " ")
    return f"- `.{call}`: {first}"


def _own_doc(thing: Any) -> str | None:
    """The docstring, but not the one line that dataclasses invent."""
    doc = inspect.getdoc(thing)
    return None if doc and inspect.isclass(thing) and re.fullmatch(rf"{thing.__name__}\(.*\)", doc) else doc


def _signature(thing: Any) -> str:
    """Names and defaults; types are in the source."""
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return ""
    if getattr(thing, "_is_protocol", False):
        return ""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.Signature(plain)))


def _markdown(doc: str | None) -> str:
    """Docstrings are reStructuredText in a small way: code, mathematics, references and doctests."""
    found: list[str] = []
    for block in re.split(r"\n{2,}", doc or ""):
        if block.lstrip().startswith(">>>"):
            found.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif block.startswith(".. math::"):
            formula = " ".join(block.removeprefix(".. math::").split())
            found.append(f"$$\n{formula}\n$$")
        else:
            words = re.sub(r":math:`([^`]*)`", r"$\1$", block)
            words = re.sub(r":\w+:`([^`]*)`", r"`\1`", words)
            found.append(re.sub(r"``([^`]*)``", r"`\1`", words))
    joined = "\n\n".join(found).replace("\n```\n\n```pycon\n", "\n\n")  # an example with an empty line in it
    return joined + "\n" if joined else ""


def _command_line() -> Iterator[str]:
    """Every command and option, as ``--help`` has them."""
    from typer.main import get_command

    from banditree.cli import main as cli

    yield "## Command line\n"
    group: Any = get_command(cli.application())
    for name, command in group.commands.items():
        yield f"### banditree {name}\n"
        yield "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n")) + "\n"
        yield "\n".join(_option(parameter) for parameter in command.params) + "\n"


def _option(parameter: Any) -> str:
    label = (parameter.metavar or "").strip("{}")
    if parameter.param_type_name == "argument":
        call = label or parameter.name.upper()
    else:
        names = ", ".join(parameter.opts)
        call = names if parameter.is_flag or not label else f"{names} {label}"
    return f"- `{call}`{' (required)' if parameter.required else ''}: {parameter.help or ''}"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
