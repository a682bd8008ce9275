"""Render documents as HTML by Jinja2 templates, with autoescape on: no value becomes markup."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING

from banditree.base.document import Bar, Document, Grid, Picture, Range
from banditree.base.words import visible
from banditree.errors import MissingExtra, missing_extra
from banditree.report.text import cut_rows

if TYPE_CHECKING:
    from jinja2 import Environment

SHARED = "banditree.report"  # its templates may be used by those of every package


def library() -> ModuleType:
    """Import Jinja2, or raise an error that says how to install it."""
    try:
        import jinja2
    except ImportError:
        raise missing_extra("pages", "pages need Jinja2") from None
    return jinja2


def page(document: Document, *, title: str = "") -> str:
    """Return a document as a self-contained web page."""
    return render(SHARED, "page.html", document=document, title=title)


def fragment(document: Document, text: str) -> str:
    """Return a document as HTML for a notebook, without pictures; ``text`` in a box where Jinja2 is not installed."""
    try:
        return render(SHARED, "fragment.html", document=document)
    except MissingExtra:
        return f"<pre>{escape(visible(text, lines=True))}</pre>"


def render(package: str, template: str, /, **values: object) -> str:
    """Render a template from a package's ``templates`` folder."""
    library()
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    jinja2 = library()

    def source(name: str) -> str | None:
        files = [resources.files(place) / "templates" / name for place in (package, SHARED)]
        return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), None)

    environment: Environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        finalize=_show_controls,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.filters["cut"] = lambda grid: cut_rows(grid, grid.most)
    environment.filters["picture"] = _embed
    environment.globals["cell_class"] = _cell_class
    return environment


def _show_controls(value: object) -> object:
    """Make control characters visible in everything but markup."""
    return visible(value, lines=True) if type(value) is str else value


def _embed(picture: Picture) -> object:
    """Draw a picture: SVG, in which `plots` has escaped all text, becomes part of the page, a PNG file an image."""
    from markupsafe import Markup

    content = picture.draw()
    if isinstance(content, str):
        return Markup('<span role="img" aria-label="{}">{}</span>').format(visible(picture.alt), Markup(content))
    data = b64encode(content).decode()
    return Markup('<img src="data:image/png;base64,{}" alt="{}">').format(data, visible(picture.alt))


def _cell_class(grid: Grid, column: int, cell: object = "") -> str:
    is_mark = isinstance(cell, Bar | Range) or (
        not grid.columns[column] and bool(grid.rows) and isinstance(grid.rows[0][column], Bar | Range)
    )
    return "mark" if is_mark else "word" if column in set(grid.names) else "number"
