"""The parent's side of a worker."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

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
