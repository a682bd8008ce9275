"""Show results: a result describes itself once as a document, which becomes text, HTML, a notebook's cell or JSON.

`Result` is the base of every result, and the other classes are the parts of its document. `banditree.report.text` and
`banditree.report.html` render them, `banditree.report.words` formats numbers, and `banditree.report.intervals` computes
95% intervals.
"""

from typing import Any

_MODULES = {
    **dict.fromkeys(("Result",), "result"),
    **dict.fromkeys(("Row", "Table"), "tables"),
    **dict.fromkeys(
        (
            "Badge", "Bar", "Bullets", "Code", "Document", "Grid", "Line", "Link", "Note", "Outline", "Picture", "Quote",
            "Range", "Section",
        ),
        "document",
    ),
}  # fmt: skip
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Load a class when it is first asked for, so that `import banditree` costs little more than NumPy."""
    from importlib import import_module

    if name in _MODULES:
        return getattr(import_module(f"banditree.report.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'banditree.report' has no attribute {name!r}")
