"""Make web pages from Jinja2 templates, with autoescape on: no value becomes markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from banditree.errors import missing_extra

SHARED = "banditree.output"  # its templates may be used by those of every package


def library() -> Any:
    """Import Jinja2, or raise an error that says how to install it."""
    try:
        import jinja2
    except ImportError:
        raise missing_extra("pages", "pages need Jinja2") from None
    return jinja2


def render(package: str, template: str, words: Mapping[str, Callable[..., Any]] | None = None, /, **values: Any) -> str:
    """Render a template from a package's ``templates`` folder. ``words`` are functions that serve as filters too."""
    library()
    environment = _environment(package)
    environment.filters.update(words or {})
    environment.globals.update(words or {})
    text: str = environment.get_template(template).render(values)
    return text


@cache
def _environment(package: str) -> Any:
    jinja2 = library()

    def source(name: str) -> str | None:
        files = [resources.files(place) / "templates" / name for place in (package, SHARED)]
        return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), None)

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )


def markup(text: str) -> Any:
    """Mark text as markup that is not escaped: our own, such as a picture, never what a user gave."""
    library()
    from markupsafe import Markup

    return Markup(text)
