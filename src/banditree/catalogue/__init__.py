"""Read a table of items in categories, measure how much the categories explain, and advise on a policy.

>>> from banditree import catalogue
>>> table = {"item": ["a", "b", "c"], "kind": ["x", "x", "y"], "ctr": [0.1, 0.12, 0.3]}
>>> items = catalogue.read_catalogue(table, arm="item", path=["kind"], mean="ctr")
>>> catalogue.inspect(items).quality.dominance
True
"""

from banditree.catalogue.advice import Advice, advise
from banditree.catalogue.comparison import Lead
from banditree.catalogue.inspection import Inspection, Uncertain, inspect
from banditree.catalogue.items import Catalogue
from banditree.catalogue.read import CatalogueError, read_catalogue
from banditree.catalogue.simulation import Candidate, Simulation, simulate
from banditree.data.defects import Defect
from banditree.problems.real import write_example

__all__ = [
    "Advice", "Candidate", "Catalogue", "CatalogueError", "Lead", "Uncertain", "Inspection",
    "Simulation", "Defect", "advise", "inspect", "read_catalogue", "simulate", "write_example",
]  # fmt: skip
