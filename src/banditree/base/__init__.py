"""What every other room may use: words, intervals, files that are written whole, and documents about results."""
