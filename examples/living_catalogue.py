"""Items arrive, move and leave under a live policy. What was learned about those that stay, stays."""

import banditree as bt

policy = bt.TSC(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]}), rng=7)
for arm, plays, successes in [("s1", 30, 12), ("h1", 20, 4), ("h2", 10, 2)]:
    policy.update_many([arm] * plays, [1] * successes + [0] * (plays - successes))
print(policy.table())

policy.add_arms({"h4": ("hats",), "b1": ("bags",)})  # a new hat, and the first bag
policy.move_arms({"h1": ("bags",)})  # h1 was a bag all along: its 20 plays move with it
policy.remove_arms(["s2"])
print(policy.table())

# Another way to group the same items: one call, and the policy is as if it had had this tree from the start.
policy.retree(bt.Tree({"cheap": ["s1", "h2", "h4"], "dear": ["h1", "h3", "b1"]}))
print(policy.table())
