"""The pages of the docs that programs make, by name."""

from __future__ import annotations

from benchmarks.__main__ import PAGE as BENCHMARKS
from tools.pages import advice_table, estimator_table, robustness

PAGES = {
    page.name: page
    for page in (robustness.TREES, robustness.CONTEXTUAL, advice_table.PAGE, estimator_table.PAGE, BENCHMARKS)
}
