"""The lines of a generated page, in a CSV file beside it: a run adds lines as it measures, and the next one goes on."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

Line = Mapping[str, str]


class Journal:
    """The lines of a file that are current, and new ones as they are measured.

    Lines measured with other code are left out when the file is read, and so are measured again.
    """

    def __init__(self, path: Path, columns: Sequence[str], is_current: Callable[[Line], bool]) -> None:
        self._path, self._columns, self._lock = path, list(columns), Lock()
        self.lines: list[Line] = [line for line in read(path) if list(line) == self._columns and is_current(line)]
        self.write()

    def add(self, lines: Iterable[Line]) -> None:
        """Keep lines, in memory and in the file."""
        with self._lock, self._path.open("a", encoding="utf-8", newline="") as file:
            new = list(lines)
            csv.DictWriter(file, self._columns, lineterminator="\n").writerows(new)
            self.lines.extend(new)

    def write(self) -> None:
        """Write the file again, sorted, so that runs that measured the same leave the same file."""
        self.lines.sort(key=lambda line: [_number(value) for value in line.values()])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self._columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.lines)


def read(path: Path) -> list[dict[str, str]]:
    """All lines of a file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(text: str) -> tuple[float, str]:
    """Sort whole numbers by their value, and other text after them."""
    return (float(text), "") if text.isdecimal() else (float("inf"), text)
