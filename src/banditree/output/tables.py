"""Moved to `banditree.report.tables`; this name goes away."""

from banditree.report.tables import Row, Table

__all__ = ["Row", "Table"]
