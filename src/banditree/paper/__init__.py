"""The paper, re-run: its figures (`figures`), the runner (`reproduce`), what it keeps (`results`), claims and report.

Carlsson, Dubhashi and Johansson, "Thompson Sampling for Bandits with Clustered Arms", IJCAI 2021.
"""
