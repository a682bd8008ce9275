"""Extend Typer: flags shown as ``--json``, not as ``--json <bool>``, and options in groups that commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows flags without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class Commands(TyperGroup):
    """A group of commands whose help shows flags without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def _without_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


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
