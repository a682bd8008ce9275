"""Tables of results: rows of named values, printed in aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, overload

from banditree.base.words import UNKNOWN, number, path, visible
from banditree.errors import MissingExtra

if TYPE_CHECKING:
    from banditree.base.document import Grid

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # the first one installed is used


def frame(columns: Mapping[str, Sequence[object]]) -> Any:
    """Make a data frame of these columns, in pandas, Polars or PyArrow, whichever is installed."""
    from importlib import import_module

    for library, maker in FRAMES.items():
        try:
            module = import_module(library)
        except ImportError:
            continue
        return getattr(module, maker)(dict(columns))
    raise MissingExtra("no data frame library is installed; pip install pandas, polars or pyarrow")


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
            column = self.columns.index(key)
            return [row[column] for row in self._rows]
        return Row(zip(self.columns, self._rows[key], strict=True))

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, Polars or PyArrow, whichever is installed.

        An interval becomes two columns, ``interval_low`` and ``interval_high``; a path becomes text, joined by /.
        """
        columns: dict[str, list[object]] = {}
        for name in self.columns:
            values = self[name]
            if values and all(_is_interval(value) and len(value) == 2 for value in values):
                columns[f"{name}_low"], columns[f"{name}_high"] = (list(ends) for ends in zip(*values, strict=True))
            else:
                columns[name] = [_format(value) if isinstance(value, tuple) else value for value in values]
        return frame(columns)

    def to_latex(self) -> str:
        r"""Write all rows as a LaTeX table for the package booktabs, with numbers as they are printed.

        >>> print(Table(["name", "share"], [("a_1", 0.25), ("b", 0.5)]).to_latex())
        \begin{tabular}{lr}
        \toprule
        name & share \\
        \midrule
        a\_1 & 0.25 \\
        b & 0.5 \\
        \bottomrule
        \end{tabular}
        """
        names = self._text_columns()
        lines = [
            " & ".join(_format(value).translate(LATEX) for value in row) + r" \\" for row in (self.columns, *self._rows)
        ]
        columns = "".join("l" if i in names else "r" for i in range(len(self.columns)))
        parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        return "\n".join([*parts, r"\end{tabular}"])

    def _text_columns(self) -> set[int]:
        rows = self._rows[: self.SHOWN]
        return {
            i
            for i in range(len(self.columns))
            if all(isinstance(row[i], str | tuple) and not _is_interval(row[i]) for row in rows)
        }

    def grid(self) -> Grid:
        """Return the table as a part of a document, with values formatted by their types."""
        from banditree.base.document import Grid

        rows = [[_format(value) for value in row] for row in self._rows[: self.SHOWN]]
        return Grid(self.columns, rows, names=self._text_columns(), most=None)

    def __str__(self) -> str:
        from banditree.report.text import grid_lines

        hidden = len(self) - self.SHOWN
        lines = [line for _, line in grid_lines(self.grid())]
        return "\n".join([*lines, f"... and {hidden:,} more rows"] if hidden > 0 else lines)

    def _repr_html_(self) -> str:
        from banditree.base.document import Document, Note

        hidden = len(self) - self.SHOWN
        note = (Note(f"... and {hidden:,} more rows"),) if hidden > 0 else ()
        return Document("", (self.grid(), *note)).to_fragment(str(self))

    __repr__ = __str__


def _is_interval(value: object) -> TypeGuard[tuple[float, ...]]:
    return isinstance(value, tuple) and bool(value) and all(isinstance(part, float) for part in value)


def _format(value: object) -> str:
    if isinstance(value, float):
        return number(value, 4)
    if _is_interval(value):
        ends = [_format(end) for end in value]
        return UNKNOWN if UNKNOWN in ends else " … ".join(ends)
    return visible(path(value) if isinstance(value, tuple) else value)


LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "…": r"\dots{}"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
)
