"""Pictures as files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from banditree.plots.style import house_style
from banditree.store import write_whole

DPI = 160


def save(ax: Any, stem: Path) -> tuple[Path, Path]:
    """Write the figure of these axes as ``stem.png`` and ``stem.svg``. The same picture, the same bytes."""
    written = []
    with house_style():
        for kind, options in (("png", {"dpi": DPI}), ("svg", {"metadata": {"Date": None}})):
            data = io.BytesIO()
            ax.figure.savefig(data, format=kind, **options)
            path = stem.parent / f"{stem.name}.{kind}"
            write_whole(path, [data.getvalue()])
            written.append(path)
    return written[0], written[1]
