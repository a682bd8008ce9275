"""Examples on these pages are run where they stand; the settings of the site are not Python to test."""

collect_ignore = ["website/conf.py"]
