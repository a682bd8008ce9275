"""The command line: one file per group of commands, and what the commands share."""
