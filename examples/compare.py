"""Policies side by side where clusters help and where they do not."""

import banditree as bt

dominated = bt.problems.strong_dominance(n_arms=100, n_clusters=10, n_best=10, width=0.1, distance=0.1)
runs = bt.simulate([bt.TS, bt.TSC, bt.TSMax, bt.UCB1, bt.UCBC], dominated, horizon=3000, seeds=20, rng=0)
print(runs)
print(runs.compare("TSC", "TS"))
runs.plot().figure.savefig("regret.png")
runs.save("runs.csv")  # every seed and time, for any tool

# The same number of arms and clusters, but the clusters say nothing about rewards.
runs = bt.simulate([bt.TS, bt.TSC], bt.problems.unstructured(n_arms=100, n_clusters=10), horizon=3000, seeds=20, rng=0)
print(f"\n{runs}")
print(runs.compare("TSC", "TS"))
