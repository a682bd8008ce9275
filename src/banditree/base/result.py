"""The base of every result: it describes itself once, and is shown as text, as a page, in a notebook and as JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from banditree.base.files import Json
from banditree.base.tables import Table

if TYPE_CHECKING:
    from banditree.base.document import Document


class Result(ABC):
    """A result that shows itself. Define `document`, and `facts` where its dataclass fields are not what JSON needs.

    >>> from dataclasses import dataclass
    >>> from banditree.base.document import Document
    >>> @dataclass(frozen=True, repr=False)
    ... class Answer(Result):
    ...     number: float
    ...     def document(self):
    ...         return Document(f"The answer is {self.number}.")
    >>> Answer(42), Answer(42).to_dict()
    (The answer is 42., {'number': 42})
    """

    @abstractmethod
    def document(self) -> Document:
        """Describe the result: a headline, sentences, tables and pictures."""

    def facts(self) -> dict[str, object]:
        """Return what programs need, by name; the fields of the dataclass unless a result says otherwise."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def to_text(self, *, width: int | None = None) -> str:
        """Return the result as text for a terminal, wrapped to ``width`` columns if one is given."""
        from banditree.report.text import to_text

        return to_text(self.document(), width)

    def to_html(self, *, title: str = "") -> str:
        """Return a self-contained web page: no scripts, no external fonts, no network.

        ``title`` says what the result is about, such as the name of a file.
        """
        from banditree.report.html import page

        return page(self.document(), title=title)

    def to_dict(self) -> Json:
        """Convert to lists, numbers and strings for JSON; infinity and NaN become None."""
        return {name: jsonable(fact) for name, fact in self.facts().items()}

    def _repr_html_(self) -> str:
        return self.document().to_fragment(self.to_text())

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__


def jsonable(value: object) -> Any:
    """Convert to lists, mappings, numbers and strings; infinity and NaN become None.

    >>> jsonable({"a": (1, float("inf")), "b": np.float64(0.5)})
    {'a': [1, None], 'b': 0.5}
    """
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Table):
        return [jsonable(row) for row in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
