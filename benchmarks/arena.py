"""All contestants, each with its worker. One that fails is named and left out; the others go on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from benchmarks.contestants import OTHERS, OWN, Contestant
from benchmarks.environments import python_of
from benchmarks.process import Failed, Worker


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
