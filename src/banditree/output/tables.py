"""Tables that people read: rows of named values, printed aligned and short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from banditree.output.words import visible


class Row(dict[str, Any]):
    """One row: values by column name, as ``row["plays"]`` or ``row.plays``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no column {name!r}; there are {', '.join(self)}") from None


class Table(Sequence[Row]):
    """Rows with the same columns. ``table[0]`` is a row, ``table["plays"]`` a column; printing shows the first rows.

    >>> print(Table(["name", "plays", "interval"], [("a", 3, (0.1, 0.25)), ("b", 12, (0.5, 0.75))]))
    name  plays       interval
    a         3     0.1 … 0.25
    b        12     0.5 … 0.75
    """

    SHOWN = 20  # rows printed

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Row | Table | list[Any]:
        if isinstance(key, slice):
            return Table(self.columns, self._rows[key])
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"no column {key!r}; there are {', '.join(self.columns)}")
            at = self.columns.index(key)
            return [row[at] for row in self._rows]
        return Row(zip(self.columns, self._rows[key], strict=True))

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def shown(self) -> tuple[list[list[str]], list[bool], str]:
        """What is printed: the first rows as texts, which columns are words, and how many rows are left out."""
        first = self._rows[: self.SHOWN]
        words = [
            all(isinstance(row[i], str | tuple) and not _numbers(row[i]) for row in first)
            for i in range(len(self.columns))
        ]
        more = len(self) - self.SHOWN
        return [[_text(value) for value in row] for row in first], words, f"... and {more:,} more rows" * (more > 0)

    def __str__(self) -> str:
        shown, words, note = self.shown()
        widths = [max(map(len, column)) for column in zip(self.columns, *shown, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(w) if to_left else cell.rjust(w)
                for cell, w, to_left in zip(line, widths, words, strict=True)
            ).rstrip()
            for line in (self.columns, *shown)
        ]
        return "\n".join([*lines, note] if note else lines)

    def _repr_html_(self) -> str:
        from banditree.output import notebook

        return notebook.table(self)

    __repr__ = __str__


def _numbers(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(part, float) for part in value)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if _numbers(value):
        return " … ".join(map(_text, value))
    if isinstance(value, tuple):
        return visible(" / ".join(map(str, value))) or "(all)"
    return visible(value)
