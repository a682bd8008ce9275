"""Web pages from Jinja2 templates, with autoescape on: no value becomes markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from banditree.errors import missing_extra


def library() -> Any:
    """Jinja2, or an error that says how to get it."""
    try:
        import jinja2
    except ImportError:
        raise missing_extra("pages", "pages need Jinja2") from None
    return jinja2


def render(package: str, template: str, words: Mapping[str, Callable[..., Any]], **values: Any) -> str:
    """A template of a package's ``templates`` folder as text. ``words`` are functions, also to be used as filters."""
    jinja2 = library()

    def source(name: str) -> str:
        return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(words)
    environment.globals.update(words)
    text: str = environment.get_template(template).render(values)
    return text


def markup(text: str) -> Any:
    """Text of our own making that is markup already, such as a picture; never what a user gave."""
    library()
    from markupsafe import Markup

    return Markup(text)
