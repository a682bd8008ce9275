"""Pictures as files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from banditree.errors import InvalidValue
from banditree.output.files import write_whole
from banditree.plots.style import house_style, library

KINDS: dict[str, dict[str, Any]] = {  # what savefig is told, so that the same picture is the same file
    "png": {"dpi": 160},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}

DESCRIBED = "Creator", "Date", "Format", "Type"  # what savefig would write into an SVG file by itself


def save(ax: Any, stem: Path) -> tuple[Path, Path]:
    """Write the figure of these axes as ``stem.png`` and ``stem.svg``. The same picture, the same bytes."""
    png, svg = (stem.parent / f"{stem.name}.{kind}" for kind in ("png", "svg"))
    write(ax, png)
    write(ax, svg)
    return png, svg


def write(ax: Any, path: Path) -> None:
    """Write the figure of these axes as the kind of file that the suffix names."""
    write_whole(path, [data(ax, check(path))])


def data(ax: Any, kind: str) -> bytes:
    """The figure of these axes as the content of a file: png, svg or pdf."""
    content = io.BytesIO()
    with house_style():
        ax.figure.savefig(content, format=kind, **KINDS[kind])
    return content.getvalue()


def svg(ax: Any) -> str:
    """The figure of these axes as an SVG element for a web page: see-through, and nothing that would be fetched."""
    data = io.StringIO()
    with house_style():
        ax.figure.savefig(data, format="svg", transparent=True, metadata=dict.fromkeys(DESCRIBED))
    text = data.getvalue()
    return text[text.index("<svg") :]


def check(path: Path) -> str:
    """The kind of picture that the suffix names, or an error: to be asked before the work that is drawn."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InvalidValue(f"cannot draw {path}: the name must end in one of .{', .'.join(KINDS)}")
    library()
    return kind
