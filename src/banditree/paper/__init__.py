"""Reproduce the paper: its figures, the runner (`reproduce`), the runs on disk (`results`), claims and report.

Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021.
"""
