"""Read a user's data: tables (CSV or Parquet files, data frames, mappings of columns), logs, features of contexts.

`load` reads the named columns; `Columns` parses them and collects every defect with its column and rows; one
`TableError` reports them all. Catalogues and logs are read with it.

>>> from banditree.data import load
>>> table = load({"item": ["hat", "cap"], "price": ["1,200", "n/a"]}, ["item", "price"])
>>> table.names("item"), table.numbers("price", needed=False).tolist()
(['hat', 'cap'], [1200.0, nan])
"""

from typing import Any

__all__ = ["Columns", "Defect", "Features", "Log", "TableError", "column_names", "load", "read_log", "read_tree"]
_MODULES = {"Features": "features", "Log": "log", "read_log": "log", "read_tree": "items"}
_MODULES |= {"Defect": "defects", "TableError": "defects"}  # the others are in sources


def __getattr__(name: str) -> Any:
    """Load a class or function when it is first asked for, so that `import banditree` costs little more than NumPy."""
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(f"banditree.data.{_MODULES.get(name, 'sources')}"), name)
    raise AttributeError(f"module 'banditree.data' has no attribute {name!r}")
