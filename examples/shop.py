"""A shop decides what to show, learns from clicks that come in batches, and keeps what it learned."""

import numpy as np

import banditree as bt

tree = bt.Tree(
    {
        "shoes": {"boots": ["rain boot", "work boot", "ski boot"], "light": ["sneaker", "sandal"]},
        "hats": {"warm": ["beanie", "fur hat"], "sun": ["straw hat", "cap", "visor"]},
    }
)
print(tree)

# What visitors would click. The shop does not know it.
click_rates = dict.fromkeys(tree.arms, 0.02) | {"sneaker": 0.05, "sandal": 0.04, "rain boot": 0.04}
visitors = np.random.default_rng(1)

policy = bt.HTS(tree, rng=7)
for _ in range(50):  # fifty days of two hundred visitors; the clicks of a day arrive in the evening
    shown = policy.choose_many(200)
    clicks = [visitors.random() < click_rates[item] for item in shown]
    policy.update_many(shown, clicks)

print(policy.table())
policy.save("shop.banditree")
print(bt.load("shop.banditree", rng=8))
