"""The pages of the docs that programs make, by name."""

from __future__ import annotations

from tools.pages.robustness import CONTEXTUAL, TREES

PAGES = {page.name: page for page in (TREES, CONTEXTUAL)}
