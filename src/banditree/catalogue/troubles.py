"""What is wrong with a table: all of it, by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from banditree.errors import InvalidValue

SHOWN = 20  # troubles that a message lists


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong. In a file the header is row 1; in a data frame the first row is row 0."""

    row: int | None
    column: str | None
    message: str

    def __str__(self) -> str:
        places = ([] if self.row is None else [f"row {self.row}"]) + (
            [] if self.column is None else [f"column {self.column!r}"]
        )
        return f"{', '.join(places)}: {self.message}" if places else self.message


class CatalogueError(InvalidValue):
    """A table that cannot be read as a catalogue. ``problems`` has every trouble, the message the first of them."""

    problems: list[Trouble]

    def __init__(self, source: str, problems: Sequence[Trouble]) -> None:
        self.problems = sorted(problems, key=lambda trouble: -1 if trouble.row is None else trouble.row)
        things = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
        lines = [f"  {trouble}" for trouble in self.problems[:SHOWN]]
        if len(problems) > SHOWN:
            lines.append(f"  ... and {len(problems) - SHOWN:,} more")
        super().__init__("\n".join([f"{things} in {source}", *lines]))
