"""A real catalogue: the items of a fashion shop by category (data/README.md has the source and the licence)."""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np

from banditree.errors.checks import choice
from banditree.problems.instance import Instance
from banditree.problems.problem import Problem, Rng
from banditree.problems.rewards import Bernoulli
from banditree.tree import Tree

CAMPAIGNS = ("all", "men", "women")


def open_bandit(campaign: str = "all") -> Problem:
    """Clicks on items of the Open Bandit Dataset: category -> subcategory -> item, click rates of 0.09% to 0.5%.

    The mean of an item is alpha / (alpha + beta), the mean of what the shop's own policy had come to believe. Strong
    dominance does not hold. ``campaign`` is "all" (80 items), "men" (34) or "women" (46).

    >>> open_bandit().instance(0).tree
    Tree(80 arms, 28 clusters, depth 2)
    """
    return Problem("open_bandit", _draw, {"campaign": choice("campaign", campaign, CAMPAIGNS)}, fixed=True)


def _draw(rng: Rng, campaign: str) -> Instance:
    table = resources.files("banditree.problems") / "data" / "open_bandit_items.csv"
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    items = [row for row in rows if row["campaign"] == campaign]
    alpha, beta = (np.array([float(row[name]) for row in items]) for name in ("alpha", "beta"))  # (arms,)
    tree = Tree.from_paths([(row["category"], row["subcategory"], int(row["item"])) for row in items])
    return Instance({"category": tree}, Bernoulli(), means=alpha / (alpha + beta))
