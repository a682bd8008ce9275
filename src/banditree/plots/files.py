"""Write pictures to files, always with the same bytes for the same picture."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditree.base.files import write_whole
from banditree.errors import InvalidValue
from banditree.plots.style import house_style, library

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: dict[str, dict[str, object]] = {  # options of savefig; without dates, so that the bytes are always the same
    "png": {"dpi": 160},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}
METADATA = "Creator", "Date", "Format", "Type"  # savefig writes these into an SVG file by default


def save(ax: Axes, stem: Path) -> tuple[Path, Path]:
    """Write the figure of these axes as ``stem.png`` and ``stem.svg``."""
    png, svg = (stem.parent / f"{stem.name}.{kind}" for kind in ("png", "svg"))
    write(ax, png)
    write(ax, svg)
    return png, svg


def write(ax: Axes, path: Path) -> None:
    """Write the figure of these axes; the suffix names the kind of file."""
    write_whole(path, [data(ax, check(path))])


def data(ax: Axes, kind: str) -> bytes:
    """Return the figure of these axes as the content of a file: png, svg or pdf."""
    return _render(ax, format=kind, **KINDS[kind])


def svg(ax: Axes) -> str:
    """Return the figure of these axes as an SVG element for a web page: transparent, with no links to other files."""
    text = _render(ax, format="svg", transparent=True, metadata=dict.fromkeys(METADATA)).decode()
    return text[text.index("<svg") :]


def check(path: Path) -> str:
    """Return the kind of picture that the suffix names, or raise: call it before the work that is to be drawn."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InvalidValue(f"cannot draw {path}: the name must end in one of .{', .'.join(KINDS)}")
    library()
    return kind


def _render(ax: Any, **options: object) -> bytes:
    content = io.BytesIO()
    with house_style(), warnings.catch_warnings():
        if options["format"] == "svg":  # its text stays text, which is drawn with the fonts of whoever looks at it
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        ax.figure.savefig(content, **options)
    return content.getvalue()
