"""Benchmarks: ours, a plain NumPy loop and the libraries one could pick instead, in one run (`make bench`).

Nothing here is a test: times depend on the machine, so they are reported as ratios of one run and never asserted.
"""
