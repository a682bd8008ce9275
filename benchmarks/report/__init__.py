"""From findings to a page with tables and pictures."""
