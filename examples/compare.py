"""Policies side by side, where clusters help and where they mislead."""

import banditree as bt

dominated = bt.problems.strong_dominance(n_arms=100, n_clusters=10, n_best=10, width=0.1, distance=0.1)
runs = bt.simulate([bt.TS, bt.TSC, bt.UCB1, bt.UCBC], dominated, horizon=1000, seeds=10, rng=0)
print(runs)
print(runs.compare("TSC", "TS"))
runs.plot().figure.savefig("regret.png")
runs.save("runs.csv")  # every seed and time, for any tool

# The best arm sits among the worst: its cluster looks bad until it has been tried often enough.
tree = bt.Tree({"steady": [f"s{i}" for i in range(10)], "mixed": [f"m{i}" for i in range(10)]})
misplaced = bt.problems.bernoulli(tree, [0.5] * 10 + [0.7] + [0.1] * 9)
print(bt.theory.quality(tree, [0.5] * 10 + [0.7] + [0.1] * 9))
runs = bt.simulate([bt.TS, bt.TSC], misplaced, horizon=2000, seeds=10, rng=0)
print(f"\n{runs}")
print(runs.compare("TSC", "TS"))
