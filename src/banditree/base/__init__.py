"""Shared by all packages: words, intervals, atomic files, and documents about results."""
