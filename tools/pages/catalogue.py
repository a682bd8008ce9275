"""Puts the output of its commands into catalogue.md: ``python -m tools.pages.catalogue``."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from banditree.cli import main as cli

TARGET = Path(__file__).parents[2] / "docs" / "catalogue.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = "110"


def text() -> str:
    """The page, with every command of a console block run again, in order, in an empty folder."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return CONSOLE.sub(lambda block: f"```console\n{_run(block[1])}```", TARGET.read_text(encoding="utf-8"))
        finally:
            os.chdir(here)


def _run(block: str) -> str:
    return "".join(f"{line}\n{_output(line)}" for line in block.splitlines() if line.startswith("$ "))


def _output(line: str) -> str:
    command, *arguments = shlex.split(line.removeprefix("$ "))
    if command == "head":  # head -n FILE
        lines = Path(arguments[1]).read_text(encoding="utf-8").splitlines()
        return "".join(f"{each}\n" for each in lines[: -int(arguments[0])])
    result = CliRunner(env={"COLUMNS": WIDTH, "NO_COLOR": "1"}).invoke(cli.application(), arguments)
    if result.exit_code:
        raise RuntimeError(f"{line}\n{result.output}")
    return "".join(f"{each.rstrip()}\n" for each in result.stdout.splitlines())


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
