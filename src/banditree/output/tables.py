"""Tables of results: rows of named values, printed in aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from banditree.output.frames import frame
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

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, Polars or PyArrow, whichever is installed.

        An interval becomes two columns, ``interval_low`` and ``interval_high``; a path becomes text, joined by /.
        """
        columns: dict[str, list[Any]] = {}
        for name in self.columns:
            values = self[name]
            if values and all(_numbers(value) and len(value) == 2 for value in values):
                columns[f"{name}_low"], columns[f"{name}_high"] = (list(ends) for ends in zip(*values, strict=True))
            else:
                columns[name] = [_text(value) if isinstance(value, tuple) else value for value in values]
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
        to_left = self._left(self._rows)
        lines = [" & ".join(_latex(_text(value)) for value in row) + r" \\" for row in (self.columns, *self._rows)]
        columns = "".join("l" if left else "r" for left in to_left)
        parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        return "\n".join([*parts, r"\end{tabular}"])

    def _left(self, rows: Sequence[Sequence[Any]]) -> list[bool]:
        """Say which columns are text, and therefore aligned left."""
        return [
            all(isinstance(row[i], str | tuple) and not _numbers(row[i]) for row in rows)
            for i in range(len(self.columns))
        ]

    def shown(self) -> tuple[list[list[str]], list[bool], str]:
        """Return what is printed: the first rows as text, which columns are aligned left, and a note on the rest."""
        first, more = self._rows[: self.SHOWN], len(self) - self.SHOWN
        texts = [[_text(value) for value in row] for row in first]
        return texts, self._left(first), f"... and {more:,} more rows" if more > 0 else ""

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


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "…": r"\dots{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return "".join(SPECIAL.get(sign, sign) for sign in text)
