"""Run the notebooks of docs/notebooks and store what their cells show: ``python -m tools.notebooks``.

A notebook runs here without Jupyter: its cells in order in one namespace, in an empty folder. What they print, the
value of a cell's last line and pictures become outputs, in the format that Jupyter and GitHub show.
"""

from __future__ import annotations

import ast
import base64
import code
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells as they are now. What a cell raises is raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with _empty_folder():
        cells = [
            cell if cell["cell_type"] != "code" else {**cell, "execution_count": None, "outputs": _run(cell, names)}
            for cell in notebook["cells"]
        ]
    return {**notebook, "cells": cells}


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    import matplotlib.pyplot as plt

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        plt.switch_backend("Agg")
        try:
            yield
        finally:
            plt.close("all")
            os.chdir(here)


class _Cell(code.InteractiveInterpreter):
    def showtraceback(self) -> None:
        raise  # noqa: PLE0704 (called where the exception is handled)


def _run(cell: dict[str, Any], names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; its last line is shown as an interactive Python would, unless it is a statement."""
    body = ast.parse("".join(cell["source"])).body
    shown: list[Any] = []
    printed, hook = io.StringIO(), sys.displayhook
    interpreter = _Cell(names)
    sys.displayhook = shown.append
    try:
        with contextlib.redirect_stdout(printed):
            interpreter.runcode(compile(ast.Module(body[:-1], []), "cell", "exec"))
            interpreter.runcode(compile(ast.Interactive(body[-1:]), "cell", "single"))
    finally:
        sys.displayhook = hook
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    return outputs + [_display(value) for value in shown if value is not None]


def _display(value: Any) -> dict[str, Any]:
    """A picture of what has a figure, and the text of everything else."""
    figure = getattr(value, "figure", None)
    if figure is None:
        data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    else:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a picture"]}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def texts(notebook: dict[str, Any]) -> list[str]:
    """What the cells show, pictures left out."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return ["".join(output.get("text") or output["data"]["text/plain"]) for output in outputs]


def markdown(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as a page, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell above shows]({name})")
            else:
                parts.append(f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```")
    return "\n\n".join([*parts, f"[This page as a notebook]({path.name})"]) + "\n", pictures


def main() -> None:
    for path in NOTEBOOKS:
        text = json.dumps(executed(read(path)), indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
        print(path.name, flush=True)


if __name__ == "__main__":
    main()
