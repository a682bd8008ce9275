"""Moved to `banditree.report.words`; this name goes away."""

from banditree.report.words import UNSEEN, count, visible

__all__ = ["UNSEEN", "count", "visible"]
