"""What was played: one line per environment, offer and seed in `docs/data/contest.csv`, so that a run can go on.

A line says what it was measured with. Lines of another world, of another version of a package or of another law of our
policies are left out when the file is read, and played again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Lock

from contest.page import Row

Offered = tuple[str, str, str, str]  # environment, package, label, note


@dataclass(frozen=True)
class Line:
    """One offer on the world of one seed."""

    environment: str
    package: str
    label: str
    note: str
    seed: int
    regret: float = float("nan")
    seconds: float = 0.0
    probability: str = ""  # tested with the first seed
    stating: float = 0.0
    reached: int | None = None  # the round at which it was stopped
    failure: str = ""
    world: str = ""  # digest of the environment
    version: str = ""  # of the package; for ours the digest of its behaviour

    @property
    def offer(self) -> Offered:
        return self.environment, self.package, self.label, self.note

    @property
    def ended_early(self) -> bool:
        return bool(self.failure) or self.reached is not None


class Journal:
    """The lines of a file, to which new ones are added as they are measured."""

    def __init__(self, path: Path, worlds: dict[str, str], versions: dict[str, str]) -> None:
        self._path, self._lock = path, Lock()
        found = read(path) if path.exists() else []
        self._offers: dict[Offered, list[Line]] = {}
        for line in found:
            if is_current(line, worlds, versions):
                self._offers.setdefault(line.offer, []).append(line)
        self._rewrite()

    @property
    def lines(self) -> list[Line]:
        """All lines, sorted, so that two runs of the same give the same file."""
        lines = [line for some in self._offers.values() for line in some]
        return sorted(lines, key=lambda line: (*line.offer, line.seed))

    def of(self, offer: Offered) -> list[Line]:
        """The lines of an offer in an environment."""
        return self._offers.get(offer, [])

    def add(self, line: Line) -> None:
        with self._lock:
            self._offers.setdefault(line.offer, []).append(line)
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, _NAMES, lineterminator="\n").writerow(_texts(line))

    def close(self) -> None:
        """Leave the file sorted."""
        self._rewrite()

    def _rewrite(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, _NAMES, lineterminator="\n")
            writer.writeheader()
            writer.writerows(_texts(line) for line in self.lines)


def is_current(line: Line, worlds: dict[str, str], versions: dict[str, str]) -> bool:
    """Whether a line is of the worlds and packages of this run; what does not take part now stays as it is."""
    return all(
        now.get(name, then) == then
        for now, name, then in ((worlds, line.environment, line.world), (versions, line.package, line.version))
    )


def read(path: Path) -> list[Line]:
    with path.open(encoding="utf-8", newline="") as file:
        return [_line(row) for row in csv.DictReader(file)]


def rows(lines: Iterable[Line]) -> list[Row]:
    """The lines of each offer as one row."""
    offers: dict[Offered, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.seed):
        offers.setdefault(line.offer, []).append(line)
    return [_row(offer, some) for offer, some in offers.items()]


def _row(offer: Offered, lines: list[Line]) -> Row:
    ended = [line for line in lines if not line.ended_early]
    early = next((line for line in lines if line.ended_early), None)
    return Row(
        *offer,
        regrets=[line.regret for line in ended],
        seconds=[line.seconds for line in ended],
        probability=next((line.probability for line in lines if line.probability), "none"),
        reached=early.reached if early else None,
        stating=max(line.stating for line in lines),
        failure=early.failure if early else "",
    )


_NAMES = [one.name for one in fields(Line)]


def _texts(line: Line) -> dict[str, str]:
    values = asdict(line)
    values |= {name: f"{values[name]:.6g}" for name in ("regret", "seconds", "stating")}
    return {name: "" if value is None else str(value) for name, value in values.items()}


def _line(row: dict[str, str]) -> Line:
    numbers = {name: float(row[name]) for name in ("regret", "seconds", "stating")}
    counts = {"seed": int(row["seed"]), "reached": int(row["reached"]) if row["reached"] else None}
    return Line(**{**row, **numbers, **counts})  # type: ignore[arg-type]
