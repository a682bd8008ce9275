"""Contestants take turns in processes of their own: environments are made, workers asked, failures named and left out.

Used by the benchmarks and by the contest. A worker (``python -m benchmarks.harness MODULE:NAME``) reads a line of JSON
and answers with one. Contestants are asked one at a time, so that other load on the machine affects all of them.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-peers"

# One thread each, so that a library that starts one a core is compared on one core like the rest.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
}


class Failed(Exception):
    """A contestant could not do what it was asked."""


@dataclass(frozen=True)
class Contestant:
    """Who takes part.

    ``spec`` is ``module:name`` of an object that says how the library is called; the module imports the library only
    where it is used, so every Python can read it. ``requires`` is what pip installs into an environment of its own;
    empty for this one.
    """

    name: str
    spec: str
    package: str
    requires: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Any:
        return loaded(self.spec)


def loaded(spec: str) -> Any:
    """The object that ``module:name`` stands for."""
    module, _, name = spec.partition(":")
    return getattr(import_module(module), name)


def environ(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BANDITREE"))}
    return {**kept, **ONE_THREAD, **more}


def short(message: str, length: int = 160) -> str:
    """One line without the paths of this machine."""
    line = re.sub(r"(\w+:/)?/[^\s'\",;)]*", "...", " ".join(message.split()))
    return line if len(line) <= length else line[: length - 3] + "..."


# ---------------------------------------------------------------- one process


class Worker:
    """A process of one contestant, kept alive between questions."""

    def __init__(self, python: str, spec: str, more: Mapping[str, str]) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 (closed with the worker)
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.harness", spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=environ(more),
        )

    def ask(self, job: str, *, patience: float = 300.0, **arguments: Any) -> dict[str, Any]:
        """The answer of a job (``module:function``). A worker that is silent for ``patience`` seconds is stopped."""
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


def work(spec: str) -> None:
    """The loop of a worker: a line of JSON in, a line of JSON out."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer
    warnings.simplefilter("ignore")
    contestant = loaded(spec)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = loaded(request["job"])(contestant, **request["arguments"])
        except Exception as error:  # told to the parent, which reports it and goes on
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def package_version(contestant: object, *, package: str) -> dict[str, str]:
    """A job: which version runs."""
    return {"version": version(package)}


# ---------------------------------------------------------------- environments


def python_of(name: str, requires: Sequence[str], *, patience: float = 900.0) -> str:
    """The Python of an environment, which is made at the first call. Raises Failed with pip's last words."""
    home = HOME / name
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / "ready"
    if ready.exists() and ready.read_text() == " ".join(requires):
        return str(python)
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    print(f"installing {name} ...", flush=True)
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
    """Asks contestants to do jobs.

    Parameters
    ----------
    contestants
        Who would take part. Those that cannot be installed or imported are in `failures`.
    install
        Whether to make environments; otherwise only packages of this Python take part.
    patience
        Seconds without an answer after which a worker is stopped.
    """

    def __init__(self, contestants: Iterable[Contestant], *, install: bool = True, patience: float = 300.0) -> None:
        self.contestants: dict[str, Contestant] = {}
        self.versions: dict[str, str] = {}
        self.failures: dict[str, str] = {}  # who, or who and what -> why
        self.python: dict[str, str] = {}
        self._patience = patience
        self._workers: dict[str, Worker] = {}
        for contestant in contestants:
            self._admit(contestant, install)

    def _admit(self, contestant: Contestant, install: bool) -> None:
        name = contestant.name
        try:
            python = sys.executable
            if contestant.requires and install:
                python = python_of(contestant.package, contestant.requires)
            elif contestant.requires and find_spec(contestant.package) is None:
                raise Failed("not installed")
            self.contestants[name], self.python[name] = contestant, python
            answer = self.ask(name, "benchmarks.harness:package_version", package=contestant.package)
            self.versions[name] = answer["version"]
        except Failed as error:
            self.contestants.pop(name, None)
            self.failures[name] = str(error)

    @property
    def peers(self) -> list[str]:
        """The other libraries that take part."""
        return [name for name, contestant in self.contestants.items() if contestant.requires]

    def ask(self, name: str, job: str, **arguments: Any) -> dict[str, Any]:
        """Have a contestant do a job. A worker that died is started again at the next question."""
        if name not in self._workers:
            contestant = self.contestants[name]
            self._workers[name] = Worker(self.python[name], contestant.spec, contestant.environ)
        try:
            return self._workers[name].ask(job, patience=self._patience, **arguments)
        except Failed:
            self.retire([name])
            raise

    def fresh(self, name: str, job: str, **arguments: Any) -> dict[str, Any]:
        """The same in a process of its own that has done nothing before."""
        self.retire([name])
        try:
            return self.ask(name, job, **arguments)
        finally:
            self.retire([name])

    def retire(self, names: Iterable[str] | None = None) -> None:
        """Stop workers, all of them by default; memory of cases that are over is given back."""
        for name in list(self._workers) if names is None else names:
            worker = self._workers.pop(name, None)
            if worker is not None:
                worker.close()

    def lane(self) -> Arena:
        """The same contestants with workers of their own, for another thread."""
        other = Arena((), patience=self._patience)
        other.contestants, other.versions, other.python = self.contestants, self.versions, self.python
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.retire()


if __name__ == "__main__":
    work(sys.argv[1])
