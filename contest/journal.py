"""What was played: one line per environment, offer and seed in `docs/data/contest.csv`, so that a run can go on.

A line says what it was measured with. Lines of another world, of another version of a package or of another law of our
policies are left out when the file is read, and played again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from contest.page import Row
from tools.pages import journal

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

    def texts(self) -> dict[str, str]:
        """The line as it stands in the file."""
        values = asdict(self)
        values |= {name: f"{values[name]:.6g}" for name in ("regret", "seconds", "stating")}
        return {name: "" if value is None else str(value) for name, value in values.items()}

    @classmethod
    def read(cls, line: journal.Line) -> Line:
        numbers = {name: float(line[name]) for name in ("regret", "seconds", "stating")}
        counts = {"seed": int(line["seed"]), "reached": int(line["reached"]) if line["reached"] else None}
        return cls(**{**line, **numbers, **counts})  # type: ignore[arg-type]


class Journal:
    """The lines of a file by offer, to which new ones are added as they are measured."""

    def __init__(self, path: Path, worlds: Mapping[str, str], version_of: Callable[[str, str], str | None]) -> None:
        def is_current(line: journal.Line) -> bool:
            """Whether a line is of the worlds and packages of this run; what does not take part stays as it is."""
            world, version = worlds.get(line["environment"]), version_of(line["package"], line["label"])
            return world in (None, line["world"]) and version in (None, line["version"])

        self._file = journal.Journal(path, [one.name for one in fields(Line)], is_current)
        self._offers: dict[Offered, list[Line]] = {}
        for line in map(Line.read, self._file.lines):
            self._offers.setdefault(line.offer, []).append(line)

    @property
    def lines(self) -> list[Line]:
        return [Line.read(line) for line in self._file.lines]

    def of(self, offer: Offered) -> list[Line]:
        """The lines of an offer in an environment."""
        return self._offers.get(offer, [])

    def add(self, line: Line) -> None:
        self._offers.setdefault(line.offer, []).append(line)
        self._file.add([line.texts()])

    def close(self) -> None:
        """Leave the file sorted."""
        self._file.write()


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
        regrets={line.seed: line.regret for line in ended},
        seconds=[line.seconds for line in ended],
        probability=next((line.probability for line in lines if line.probability), "none"),
        reached=early.reached if early else None,
        stating=max(line.stating for line in lines),
        failure=early.failure if early else "",
    )
