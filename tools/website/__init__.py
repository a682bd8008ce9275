"""The documentation as a web site: the Markdown of the repository, and a reference from the docstrings."""
