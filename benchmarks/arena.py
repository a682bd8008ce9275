"""The contestants and their processes: environments are made, workers asked; one that fails is named and left out."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from benchmarks.contestants import OTHERS, OWN, Contestant
from benchmarks.words import short

ROOT = Path(__file__).resolve().parent.parent

# One thread each, so that a library that starts one a core is compared on one core like the rest.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
}


class Failed(Exception):
    """A contestant could not do what it was asked."""


def environ(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BANDITREE"))}
    return {**kept, **ONE_THREAD, **more}


class Worker:
    """A process of one contestant, kept alive between questions."""

    def __init__(self, python: str, module: str, more: Mapping[str, str]) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 (closed with the worker)
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=environ(more),
        )

    def ask(self, job: str, *, patience: float = 300.0, **arguments: Any) -> dict[str, Any]:
        """The answer of a job. A worker that is silent for ``patience`` seconds is stopped."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        if process.poll() is not None:
            raise Failed(self._last_words())
        try:
            process.stdin.write(json.dumps({"job": job, "arguments": arguments}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_words()) from None
        if not select.select([process.stdout], [], [], patience)[0]:
            self.close()
            raise Failed(f"no answer within {patience:.0f} s")
        line = process.stdout.readline()
        if not line:
            raise Failed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failed(short(answer["error"]))
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return short(lines[-1]) if lines else f"ended with code {code}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._errors.close()


# ---------------------------------------------------------------- environments of peers


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


# ---------------------------------------------------------------- all contestants


class Arena:
    """Asks contestants to do jobs."""

    def __init__(self, *, peers: bool, patience: float) -> None:
        self.contestants: dict[str, Contestant] = {}
        self.versions: dict[str, str] = {}
        self.failures: dict[str, str] = {}  # who, or who and what -> why
        self.python: dict[str, str] = {}
        self._patience = patience
        self._workers: dict[str, Worker] = {}
        for contestant in (*OWN, *(OTHERS if peers else ())):
            self._admit(contestant)

    def _admit(self, contestant: Contestant) -> None:
        name = contestant.name
        try:
            python = sys.executable
            if contestant.peer is not None:
                python = python_of(contestant.peer, contestant.load().REQUIRES, patience=900.0)
            self.contestants[name], self.python[name] = contestant, python
            self.versions[name] = self.ask(name, "version")["version"]
        except Failed as error:
            self.contestants.pop(name, None)
            self.failures[name] = str(error)

    @property
    def peers(self) -> list[str]:
        """The peers that take part."""
        return [name for name, contestant in self.contestants.items() if contestant.peer is not None]

    def ask(self, name: str, job: str, **arguments: Any) -> dict[str, Any]:
        """Have a contestant do a job. A worker that died is started anew at the next question."""
        if name not in self._workers:
            contestant = self.contestants[name]
            self._workers[name] = Worker(self.python[name], contestant.module, contestant.environ)
        try:
            return self._workers[name].ask(job, patience=self._patience + 240.0, **arguments)
        except Failed:
            self.retire([name])
            raise

    def fresh(self, name: str, job: str, **arguments: Any) -> dict[str, Any]:
        """The same in a process of its own that has done nothing before."""
        contestant = self.contestants[name]
        worker = Worker(self.python[name], contestant.module, contestant.environ)
        try:
            return worker.ask(job, patience=self._patience + 240.0, **arguments)
        finally:
            worker.close()

    def retire(self, names: Iterable[str]) -> None:
        """Stop workers; memory of cases that are over is given back."""
        for name in names:
            worker = self._workers.pop(name, None)
            if worker is not None:
                worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.retire(list(self._workers))
