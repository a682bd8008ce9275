"""Examples on these pages are run where they stand; those of api.md are copies of docstrings, which are run in src."""

collect_ignore = ["api.md"]
