"""Read any table of a user's: a CSV or Parquet file, a data frame, or a mapping of columns.

`load` reads the named columns; `Columns` parses them and collects every problem with its column and rows; one
`TableError` reports them all. Catalogues and logs are read with it.

>>> table = load({"item": ["hat", "cap"], "price": ["1,200", "n/a"]}, ["item", "price"])
>>> table.names("item"), table.numbers("price", needed=False).tolist()
(['hat', 'cap'], [1200.0, nan])
"""

from banditree.tables.items import read_tree
from banditree.tables.problems import Problem, TableError
from banditree.tables.sources import Columns, column_names, load

__all__ = ["Columns", "Problem", "TableError", "column_names", "load", "read_tree"]
