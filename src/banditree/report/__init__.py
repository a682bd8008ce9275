"""Show results: a result describes itself once as a document, which becomes text, HTML, a notebook's cell or JSON.

`Result` is the base of every result, and the other classes are the parts of its document. `banditree.report.text` and
`banditree.report.html` render them, `banditree.base.words` formats numbers, and `banditree.base.intervals` computes
95% intervals.
"""

__all__ = [
    "Badge", "Bar", "Bullets", "Code", "Document", "Grid", "Line", "Link", "Note", "Outline", "Picture", "Quote",
    "Range", "Result", "Row", "Section", "Table",
]  # fmt: skip
_MODULES = {"Result": "result", "Row": "tables", "Table": "tables"}  # the others are parts of a document


def __getattr__(name: str) -> object:
    """Load a class when it is first asked for, so that `import banditree` costs little more than NumPy."""
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(f"banditree.base.{_MODULES.get(name, 'document')}"), name)
    raise AttributeError(f"module 'banditree.report' has no attribute {name!r}")
