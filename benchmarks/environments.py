"""An environment for each peer, made with venv and pip, so that none can break another or ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.process import ROOT, Failed, environ
from benchmarks.words import short

HOME = ROOT / ".venv-peers"


def python_of(peer: str, requires: Sequence[str], *, patience: float, folder: Path = HOME) -> str:
    """The Python of a peer's environment, which is made at the first call. Raises Failed with pip's last words."""
    home = folder / peer
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / "ready"
    if ready.exists() and ready.read_text() == " ".join(requires):
        return str(python)
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    print(f"installing {peer} ...", flush=True)
    _call([sys.executable, "-m", "venv", "--clear", str(home)], patience)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requires]
    _call(pip, patience)
    ready.write_text(" ".join(requires))
    return str(python)


def _call(command: list[str], patience: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False, env=environ({}))
    except subprocess.TimeoutExpired:
        raise Failed(f"not installed within {patience:.0f} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise Failed(short(lines[-1]) if lines else f"pip ended with code {done.returncode}")
